"""A workspace of the fake kind, and the real client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from databricks.sdk import WorkspaceClient

from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.client import client_of
from tests.fakes.workspace.http.server import serving


@pytest.fixture
def workspace() -> Iterator[FakeWorkspace]:
    """An empty workspace that answers."""
    with serving(FakeWorkspace()) as workspace:
        yield workspace


@pytest.fixture
def client(workspace: FakeWorkspace) -> WorkspaceClient:
    """A client of it."""
    return client_of(workspace)
