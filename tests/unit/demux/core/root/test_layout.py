"""Where what belongs to a root is, and what belongs to the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from demux.core.root.layout import cache_folder


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"XDG_CACHE_HOME": "/somewhere"}, lambda: Path("/somewhere/protobuf-demux")),
        ({"XDG_CACHE_HOME": ""}, lambda: Path.home() / ".cache" / "protobuf-demux"),
        ({}, lambda: Path.home() / ".cache" / "protobuf-demux"),
    ],
    ids=["set", "empty", "not set"],
)
def test_the_cache_is_where_the_user_has_it(environment: Mapping[str, str], expected: Callable[[], Path]) -> None:
    assert cache_folder(environment) == expected()
