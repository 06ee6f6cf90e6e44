"""What of the file system's rules is ours to know."""

from __future__ import annotations

import pytest

from demux.core.storage.location import literal_path


@pytest.mark.parametrize(
    ("path", "literal"),
    [
        ("/data/key=chess/part.parquet", "/data/key=chess/part.parquet"),
        ("/data/game_name=a b%20c/part.parquet", "/data/game_name=a b%20c/part.parquet"),
        ("/data/[x]{y,z}*?\\w", "/data/\\[x\\]\\{y,z\\}\\*\\?\\\\w"),
    ],
)
def test_a_wildcard_in_a_path_stands_for_itself(path: str, literal: str) -> None:
    assert literal_path(path) == literal
