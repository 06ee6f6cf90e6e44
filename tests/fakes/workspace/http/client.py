"""The real client of the workspace, with a clock that does not let anybody wait."""

from __future__ import annotations

from databricks.sdk import WorkspaceClient
from databricks.sdk.clock import Clock
from databricks.sdk.config import Config

from tests.fakes.workspace.fake import FakeWorkspace


class HastyClock(Clock):
    """A clock that goes on by itself only when somebody sleeps, at once.

    Attributes:
        slept: how long each sleep was meant to be, in seconds.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def time(self) -> float:
        """Return the seconds that were slept so far."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let the time be past."""
        self.slept.append(seconds)
        self.now += seconds


def client_of(
    workspace: FakeWorkspace, *, http_timeout_s: float = 60, retry_timeout_s: int = 300, clock: Clock | None = None
) -> WorkspaceClient:
    """A client of the workspace that waits for an answer as long as it is told, and never between two tries."""
    config = Config(
        host=workspace.url,
        token=workspace.token,
        auth_type="pat",
        http_timeout_seconds=http_timeout_s,
        retry_timeout_seconds=retry_timeout_s,
        clock=clock or HastyClock(),
    )
    return WorkspaceClient(config=config)
