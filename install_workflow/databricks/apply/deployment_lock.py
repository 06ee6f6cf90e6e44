"""The lock of a deployment: optimistic, on its record. Two installers at once double nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

from demux.core.control.deployment_record import DeploymentRecord, InstallerClaim, deployment_format, record_folder
from demux.core.errors import DemuxError, DeploymentLocked
from install_workflow.databricks.api.client import WorkspaceConnection
from install_workflow.databricks.api.versioned_file import FileVersion, RecordFiles
from install_workflow.databricks.api.workspace_files import missing_folders
from install_workflow.databricks.diff.deployed_games import Filled, PlacementOutcome, Places, record_placements

# longer than another process needs to find out that the file is locked
_LOOK_S = 1.0
# what a claim says comes from a file that others can write
_PROCESS = re.compile(r"[0-9A-Za-z-]{1,100}")


class InstallerPresence(Protocol):
    """Knowledge of other installers that needs no call to the workspace."""

    def hold(self, process: str) -> None:
        """Show from now on that this process, ours, is at work; a second call changes nothing."""
        ...

    def leave(self, process: str) -> None:
        """Show no longer that this process, ours, is at work."""
        ...

    def is_dead(self, process: str) -> bool:
        """Return whether the process was at work on this machine and has ended; False where that is not known."""
        ...


class LocalPresence:
    """A locked file for each process, in a folder of the user on this machine.

    Where no such file can be made or locked, nothing is known, and others wait for the claim's end.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, FileLock] = {}

    def hold(self, process: str) -> None:
        """Lock a file of this name until `leave`, or until the process ends."""
        lock = self._held.setdefault(process, FileLock(self._path(process)))
        with suppress(OSError, Timeout, NotImplementedError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not lock.is_locked:
                lock.acquire(timeout=_LOOK_S)

    def leave(self, process: str) -> None:
        """Remove the file; safe to call twice."""
        lock = self._held.pop(process, None)
        if lock is not None:
            with suppress(OSError):
                self._path(process).unlink(missing_ok=True)
            lock.release()

    def is_dead(self, process: str) -> bool:
        """Return whether there is a file of this name that no process locks."""
        if not _PROCESS.fullmatch(process) or not self._path(process).is_file():
            return False
        try:
            with FileLock(self._path(process)).acquire(timeout=0):
                return True
        except (OSError, Timeout, NotImplementedError):
            return False

    def _path(self, process: str) -> Path:
        return self._folder / f"{process}.lock"


# how long others wait for a process that died on another machine
LEASE = timedelta(minutes=15)
# a call with all its tries takes less than what is left then
RENEW = timedelta(minutes=3)


class OnClaim(Enum):
    """The behaviour of a command where another one has claimed the deployment."""

    REFUSE = "refuse"
    TAKE_OVER = "take over"


@dataclass(frozen=True, slots=True)
class InstallerId:
    """The identity of an installer.

    Attributes:
        process: what no other process has.
    """

    by: str
    process: str
    presence: InstallerPresence


class DeploymentLock:
    """One command's lock of a deployment; all raise as `WorkspaceConnection.tried`.

    `begin` comes before the jobs are read, `run` makes the changes: it claims the version after the one that was read,
    which no other installer can have written then. So whoever makes a call has a plan from the state that is there.
    """

    def __init__(
        self,
        connection: WorkspaceConnection,
        wheel_path: str,
        deployment: str,
        who: InstallerId,
        clock: Callable[[], datetime],
        record_id: str,
    ) -> None:
        """Make a lock that is not held.

        Args:
            wheel_path: the folder that has the record's.
            record_id: what no other record has, for one that begins with this lock.
        """
        form = deployment_format(deployment)
        self.deployment = deployment
        self.folder = record_folder(wheel_path, deployment)
        self._files = RecordFiles(connection, self.folder, form)
        self._connection, self._wheel_path = connection, wheel_path
        self._who = who
        self._clock = clock
        self._record_id = record_id
        self._kept: FileVersion[DeploymentRecord] = FileVersion(0, form.empty)

    @property
    def has_record(self) -> bool:
        """Whether there is a record, as read or written last."""
        return self._kept.version > 0

    @property
    def games(self) -> frozenset[str]:
        """The names of the games that the record has."""
        return frozenset(each.place.game for each in self._kept.record.games if each.place.game is not None)

    @property
    def filled(self) -> Filled:
        """The fields that the server added to each job, by the record."""
        return self._kept.record.filled

    @property
    def made(self) -> tuple[str, ...]:
        """The folders above the record's that were made with it, the innermost first."""
        return self._kept.record.made

    @property
    def last_change(self) -> datetime | None:
        """When a game was placed last (UTC), as the record has it; None where it has no game."""
        return max((each.since for each in self._kept.record.games), default=None)

    def look(self) -> InstallerClaim | None:
        """Return the claim of the installer that changes the deployment now; reads the newest record, changes nothing.

        A process of the same user and machine that has ended changes nothing any more.

        Raises:
            PlanRefused: the record cannot be used.
        """
        self._kept = self._files.read()
        claim = self._kept.record.claim
        if claim is None or self._clock() >= claim.until or self._is_dead(claim):
            return None
        return claim

    def begin(self, on_claim: OnClaim = OnClaim.REFUSE) -> None:
        """Read the record, before anything that the plan is made from; changes nothing.

        Raises:
            DeploymentLocked: another command changes the deployment.
            PlanRefused: the record cannot be used.
        """
        claim = self.look()
        if claim is not None and on_claim is OnClaim.REFUSE:
            raise _locked(self.deployment, claim)

    def run(
        self,
        plan_id: str,
        work: Callable[[], PlacementOutcome],
        look_again: Callable[[], Places],
        written: Collection[int] = (),
    ) -> None:
        """Do the work while no other installer can, and record the placement of the games; the claim ends in any case.

        Args:
            work: makes the changes, and returns how the jobs are afterwards.
            look_again: reads from the jobs where they have each game; called where the work failed.
            written: the ids of the jobs that the work writes or removes: what the server adds to them is not known
                before it has ended.

        Raises:
            ConcurrentChange: another command has changed the deployment since `begin`, or took over.
        """
        try:
            self._claim(plan_id, written)
            outcome = work()
            if self.has_record:
                self._free(plan_id, outcome)
        except BaseException:
            self._give_up(plan_id, look_again)
            raise

    def keep(self) -> None:
        """Renew the claim where some of its time is over; to be called before each call that changes something.

        Raises:
            ConcurrentChange: another installer took over.
        """
        claim = self._kept.record.claim
        assert claim is not None, "only a claim can be renewed"
        now = self._clock()
        if now >= claim.until - LEASE + RENEW:
            self._write(replace(self._kept.record, claim=replace(claim, until=now + LEASE)))

    def heal(self, plan_id: str, outcome: PlacementOutcome) -> bool:
        """Return whether the record had to be written, as it did not say where the games are; a second call does not.

        Raises:
            ConcurrentChange: another command has changed the deployment since `begin`.
        """
        before = self._kept.record
        after = self._updated_record(outcome, plan_id)
        # claims of dead installers are removed too
        if after == before:
            return False
        self._write(after)
        return True

    def forget(self) -> None:
        """Remove the record, within `run`: its newest version, with our claim, comes last."""
        self._files.remove()
        self._kept = FileVersion(0, DeploymentRecord())
        self._who.presence.leave(self._who.process)

    def _is_dead(self, claim: InstallerClaim) -> bool:
        return claim.by == self._who.by and self._who.presence.is_dead(claim.process)

    def _claim(self, plan_id: str, written: Collection[int]) -> None:
        now = self._clock()
        claim = InstallerClaim(self._who.by, self._who.process, plan_id, now, now + LEASE)
        filled = {job_id: fields for job_id, fields in self.filled.items() if job_id not in written}
        # before the claim: who finds it must not take us for dead
        self._who.presence.hold(self._who.process)
        self._write(replace(self._kept.record, claim=claim, filled=filled))

    def _free(self, plan_id: str, outcome: PlacementOutcome) -> None:
        self._write(self._updated_record(outcome, plan_id))
        self._who.presence.leave(self._who.process)

    def _updated_record(self, outcome: PlacementOutcome, plan_id: str) -> DeploymentRecord:
        """Return the record without a claim, and with the jobs as they are."""
        games = record_placements(outcome.places, self._kept.record.games, plan_id, self._clock())
        return replace(self._kept.record, games=games, claim=None, filled=dict(outcome.filled))

    def _write(self, record: DeploymentRecord) -> None:
        if not self.has_record:
            made = missing_folders(self._connection, self._wheel_path)
            record = replace(record, record_id=self._record_id, made=made)
        self._kept = self._files.write(self._kept, record)

    def _give_up(self, plan_id: str, look_again: Callable[[], Places]) -> None:
        """End the claim if it is ours: a call whose answer was lost may have made it."""
        with suppress(DemuxError):
            self._kept = self._files.read()
            claim = self._kept.record.claim
            if claim is None or claim.process != self._who.process:
                self._who.presence.leave(self._who.process)
                return
            try:
                places = look_again()
            except DemuxError:
                # the next apply puts right what is not so
                places = tuple(game.place for game in self._kept.record.games)
            self._free(plan_id, PlacementOutcome(places, self.filled))


def _locked(deployment: str, claim: InstallerClaim) -> DeploymentLocked:
    return DeploymentLocked(
        f"Another command installs {deployment} since {claim.at:%H:%M:%S} UTC ({claim.by}, process {claim.process}).",
        f"Wait until {claim.until:%H:%M:%S} UTC, or give --take-over if it is dead.",
        deployment=deployment,
        by=claim.by,
        process=claim.process,
        until=claim.until,
    )
