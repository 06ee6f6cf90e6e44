"""What is said of a command while it works, and to whom; nothing here decides what is done."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum

from demux.core.reports import GameReport, IngestReport
from demux.core.schemas.registry_selection import RegisteredGames
from demux.pipeline.task_pool import TaskEnd
from install_workflow.planning.plan import Plan

_LOG = logging.getLogger("demux")


class RoundStage(Enum):
    """A stage of a round; a game's commit is a part of `DECODE`."""

    INGEST = "ingest"
    PLAN = "plan"
    DECODE = "decode"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class CommandRun:
    """One run of a command that works on a root.

    Attributes:
        command: `round`, or the stage that runs alone: `ingest` or `deserialize`.
        run_id: its id, which the control table has too.
        began: when (UTC).
    """

    command: str
    run_id: str
    began: datetime


class Observer:
    """Learns of a command's progress, in order of time; this one ignores it."""

    def began(self, run: CommandRun) -> None:
        """Learn that a command begins."""

    def stage_began(self, stage: RoundStage, at: datetime) -> None:
        """Learn that a stage begins."""

    def batch(self, report: IngestReport, at: datetime) -> None:
        """Learn what a micro-batch of bronze took in."""

    def ingested(self, report: IngestReport) -> None:
        """Learn what bronze took in."""

    def registered(self, registered: RegisteredGames) -> None:
        """Learn which games the registries name."""

    def planned(self, plan: Plan, due: int) -> None:
        """Learn the plan, and how many of its games have something to do."""

    def ended(self, end: TaskEnd[GameReport]) -> None:
        """Learn how a game's task ended."""

    def stage_ended(self, stage: RoundStage, at: datetime, error: BaseException | None) -> None:
        """Learn that a stage ends."""

    def closed(self, at: datetime, error: BaseException | None) -> None:
        """Learn that the command ends."""


def end_of(end: TaskEnd[GameReport]) -> datetime:
    """Return when a task ended that has just been reported (UTC)."""
    return (
        datetime.now(timezone.utc) if end.commit is None else datetime.fromtimestamp(end.commit.ended_s, timezone.utc)
    )


class Observers(Observer):
    """Passes on what it learns to all of them, and adds the time.

    A failure of the first one, which a person watches, is the command's; what monitors must fail nothing.
    """

    def __init__(self, first: Observer, monitors: Sequence[Observer], clock: Callable[[], datetime]) -> None:
        """Prepare."""
        self._first = first
        self._monitors = list(monitors)
        self._clock = clock

    @contextmanager
    def run(self, command: str, run_id: str) -> Iterator[None]:
        """Say that a command begins and ends."""
        run = CommandRun(command, run_id, self._clock())
        self._tell(lambda each: each.began(run))
        with self._until_the_end(lambda each, at, error: each.closed(at, error)):
            yield

    @contextmanager
    def stage(self, stage: RoundStage) -> Iterator[None]:
        """Say that a stage begins and ends."""
        at = self._clock()
        self._tell(lambda each: each.stage_began(stage, at))
        with self._until_the_end(lambda each, at, error: each.stage_ended(stage, at, error)):
            yield

    def batches(self, report: IngestReport) -> None:
        """Say what a micro-batch of bronze took in, just now."""
        self.batch(report, self._clock())

    def each(self, ends: Iterable[TaskEnd[GameReport]]) -> Iterator[TaskEnd[GameReport]]:
        """Yield how each task ended, and say it."""
        for end in ends:
            self.ended(end)
            yield end

    def batch(self, report: IngestReport, at: datetime) -> None:
        """Pass it on."""
        self._tell(lambda each: each.batch(report, at))

    def ingested(self, report: IngestReport) -> None:
        """Pass it on."""
        self._tell(lambda each: each.ingested(report))

    def registered(self, registered: RegisteredGames) -> None:
        """Pass it on."""
        self._tell(lambda each: each.registered(registered))

    def planned(self, plan: Plan, due: int) -> None:
        """Pass it on."""
        self._tell(lambda each: each.planned(plan, due))

    def ended(self, end: TaskEnd[GameReport]) -> None:
        """Pass it on."""
        self._tell(lambda each: each.ended(end))

    @contextmanager
    def _until_the_end(self, say: Callable[[Observer, datetime, BaseException | None], None]) -> Iterator[None]:
        failure: BaseException | None = None
        try:
            yield
        except BaseException as error:
            failure = error
            raise
        finally:
            at = self._clock()
            self._tell(lambda each: say(each, at, failure))

    def _tell(self, say: Callable[[Observer], None]) -> None:
        say(self._first)
        for each in tuple(self._monitors):
            try:
                say(each)
            except Exception:  # a round must not fail for what monitors it
                self._monitors.remove(each)
                _LOG.exception("%s failed; nothing more is sent of this run", type(each).__name__)
