"""Installers of one deployment in a fake workspace, who hold against each call what must be true at all times."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, TypeVar

from demux.core.control.deployment_record import DeploymentRecord, deployment_format
from demux.core.http.client import Tries
from demux.core.settings.loading.loader import load
from demux.core.settings.settings import Settings
from install_workflow.databricks.api.client import WorkspaceConnection
from install_workflow.databricks.apply.deploy import install, preview_deployment, preview_removal, remove_all, settle
from install_workflow.databricks.apply.deployment_lock import (
    LEASE,
    DeploymentLock,
    InstallerId,
    InstallerPresence,
    OnClaim,
)
from install_workflow.databricks.apply.wheel import Wheel
from install_workflow.databricks.diff.deployed_games import DiscoveredGames
from install_workflow.databricks.diff.fields import comparable
from install_workflow.databricks.jobs.job import PART_TAG, with_parts
from install_workflow.databricks.jobs.jobs_api import Workspace
from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.exchange import Request

T = TypeVar("T")

WHEELS = "/Volumes/main/ops/wheels"
RECORDS = f"{WHEELS}/deployment.prod"
NOW = datetime(2025, 3, 30, 12, 3, 4, tzinfo=timezone.utc)
AFTER_ALL = LEASE + timedelta(minutes=1)
NEW = Wheel(f"{WHEELS}/prod/protobuf_demux-0.1.0-0bbbbbbbbbbbb-py3-none-any.whl", b"new")
OLD = Wheel(f"{WHEELS}/prod/protobuf_demux-0.1.0-0aaaaaaaaaaaa-py3-none-any.whl", b"old")
LOSERS = "Another command (installs prod since|changed the deployment prod at the same time)"
CHANGES = ("/api/2.2/jobs/create", "/api/2.2/jobs/reset", "/api/2.2/jobs/delete")


def settings_of(games: str, **changes: str) -> Settings:
    base = {
        "root": "s3://bucket/demux",
        "games.policy": "allow-list",
        "games.allow": games,
        "run.streams_per_cluster": "2",
        "databricks.name": "prod",
        "maintain.every": "never",
        "databricks.tasks_per_job": "3",
        "databricks.cluster.node_type": "i3.xlarge",
        "databricks.wheel_path": WHEELS,
    }
    return load(None, {}, {**base, **{key.replace("__", "."): value for key, value in changes.items()}})


OFTEN, ONCE = Tries(retries=3, timeout_s=20), Tries(retries=0, timeout_s=20)

# three jobs: two of games, and bronze's; one of the two was another before
WANTED = settings_of("[chess, go, ludo, tag]")
BEFORE = settings_of("[chess, poker, puzzle]", games__pinned="{poker: big, puzzle: big}")


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


class Watched(WorkspaceConnection):
    """A connection that does something before each call, and holds what must be true at all times against it."""

    def __init__(self, fake: FakeWorkspace, process: str, clock: Clock, tries: Tries) -> None:
        super().__init__({"host": fake.url, "token": fake.token, "auth_type": "pat"}, tries, sleep=lambda _: None)
        self.before: Callable[[], None] = lambda: None
        self._fake, self._process, self._clock = fake, process, clock

    def retry(self, doing: str, call: Callable[[], T]) -> T:
        self.before()
        try:
            return super().retry(doing, call)
        finally:
            parts = [job.settings["tags"][PART_TAG] for job in self._fake.jobs.held.values()]
            assert len(parts) == len(set(parts)), doing

    def once(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:
        if path in CHANGES or method == "PUT":
            claim = newest(self._fake).claim
            assert claim is not None, f"{path} without a claim"
            assert (claim.process, self._clock.now < claim.until) == (self._process, True), path
        return super().once(method, path, query, body)


class Machine:
    """The processes of one user on one machine: those that are at work, and those that were killed."""

    def __init__(self) -> None:
        self.alive: set[str] = set()
        self.killed: set[str] = set()

    def hold(self, process: str) -> None:
        self.alive.add(process)

    def leave(self, process: str) -> None:
        self.alive.discard(process)

    def is_dead(self, process: str) -> bool:
        return process in self.killed

    def kill(self) -> None:
        """End all that are at work."""
        self.killed |= self.alive
        self.alive.clear()


class Installer:
    """One who runs `apply` and `destroy`, on a machine with this clock."""

    def __init__(
        self,
        fake: FakeWorkspace,
        process: str,
        clock: Clock,
        tries: Tries = OFTEN,
        machine: InstallerPresence | None = None,
        by: str = "ann@laptop",
    ) -> None:
        self.connection = Watched(fake, process, clock, tries)
        self._workspace = Workspace(self.connection)
        self._who, self._clock = InstallerId(by, process, machine or Machine()), clock

    def turn(self) -> DeploymentLock:
        return DeploymentLock(self.connection, WHEELS, "prod", self._who, self._clock, uuid.uuid4().hex)

    def apply(
        self,
        settings: Settings = WANTED,
        wheel: Wheel = NEW,
        on_claim: OnClaim = OnClaim.REFUSE,
        tell: Callable[[object], None] = lambda _: None,
    ) -> bool:
        """Whether there was anything to do."""
        turn = self.turn()
        turn.begin(on_claim)
        outlook = preview_deployment(self._workspace, settings, wheel, DiscoveredGames(), turn.filled)
        if outlook.plan.is_empty and not outlook.must_upload:
            return settle(self._workspace, outlook.plan, turn)
        install(self._workspace, wheel, outlook.plan, tell, turn)
        return True

    def destroy(self, on_claim: OnClaim = OnClaim.REFUSE) -> None:
        turn = self.turn()
        turn.begin(on_claim)
        removal = preview_removal(self._workspace, WANTED, turn)
        if not removal.is_empty:
            remove_all(self._workspace, removal, lambda _: None, turn)


def newest(fake: FakeWorkspace) -> DeploymentRecord:
    paths = sorted(path for path in fake.files.held if re.match(rf"{RECORDS}/\d+\.json$", path))
    return deployment_format("prod").from_text(fake.files.held[paths[-1]].decode(), "") if paths else DeploymentRecord()


def state(fake: FakeWorkspace) -> list[object]:
    """The jobs without ids, where the record has the games without times, and whether somebody has claimed it."""
    jobs = fake.jobs.held.values()
    parts = {job.job_id: job.settings["tags"][PART_TAG] for job in jobs}
    record = newest(fake)
    return [
        sorted((parts[job.job_id], with_parts(comparable(job.settings), parts)) for job in jobs),
        [(each.place.game, each.place.job, parts.get(each.place.job_id), each.place.task) for each in record.games],
        record.claim,
    ]


def emptied(fake: FakeWorkspace) -> None:
    fake.faults.clear()
    fake.jobs.held.clear()
    fake.files.held.clear()
    fake.files.folders.clear()
    fake.calls.clear()
    fake.jobs.next_id = 1001


def before_call(number: int, do: Callable[[], None], *, again: bool = False) -> Callable[[], None]:
    """Something to be called before each call, that does this before one of them, or before all from there on."""
    calls = iter(range(1_000_000))

    def count() -> None:
        now = next(calls)
        if now == number or (again and now > number):
            do()

    return count


def has_effect(call: Request) -> bool:
    return call.method not in {"GET", "HEAD"}


def calls_of(work: Callable[[], object], installer: Installer) -> int:
    """How many calls it takes, by doing it."""
    seen: list[None] = []
    installer.connection.before = lambda: seen.append(None)
    work()
    installer.connection.before = lambda: None
    return len(seen)
