"""A workspace, and two who install there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.server import serving
from tests.support.databricks.installers import (
    Clock,
    Installer,
    emptied,
)


@pytest.fixture(scope="module")
def served() -> Iterator[FakeWorkspace]:
    with serving(FakeWorkspace()) as workspace:
        workspace.catalog.add("volume", "main.ops.wheels")
        yield workspace


@pytest.fixture
def fake(served: FakeWorkspace) -> FakeWorkspace:
    emptied(served)
    return served


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ann(fake: FakeWorkspace, clock: Clock) -> Installer:
    return Installer(fake, "1-ann", clock)


@pytest.fixture
def bob(fake: FakeWorkspace, clock: Clock) -> Installer:
    return Installer(fake, "2-bob", clock)
