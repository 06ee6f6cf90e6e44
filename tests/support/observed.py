"""A command's progress as its monitors learn of it, without Spark; as a program it is one round, by the environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone

from demux.core.errors import DemuxError, SchemaInvalid
from demux.core.reports import GameReport, IngestReport, Period
from demux.core.settings.settings import Settings
from demux.pipeline.observers.monitors import monitors_of
from demux.pipeline.observers.observer import Observer, Observers, RoundStage
from demux.pipeline.task_pool import TaskEnd
from install_workflow.planning.plan import Action, Plan, Task, TaskChange

BEGAN = datetime(2026, 11, 3, 12, tzinfo=timezone.utc)
WRONG = SchemaInvalid("Schema 7 is wrong.", "Correct it.")


def seconds() -> Iterator[datetime]:
    """Yield a time that is a second later each time."""
    at = BEGAN
    while True:
        yield at
        at += timedelta(seconds=1)


def task(game: str) -> Task:
    """A game's task."""
    return Task(game, f"game_{game}", "cluster_001")


def done(game: str, rows: int = 10, bad: int = 1, waiting: int = 0) -> TaskEnd[GameReport]:
    """A task that ended well; its commit is in the second of the stage `decode`."""
    at = BEGAN.timestamp() + 7.5
    report = GameReport(game, rows, rows - bad, bad, (101,), waiting, bytes_in=rows * 100)
    return TaskEnd(task(game), report, None, 0.75, Period(at, at + 0.25))


def failed(game: str, error: DemuxError = WRONG) -> TaskEnd[GameReport]:
    """A task that failed."""
    return TaskEnd(task(game), None, error, 0.5)


def plan_of(*games: str) -> Plan:
    """A plan that runs these games as before."""
    return Plan(tuple(TaskChange(Action.KEEP, task(game), "") for game in games), ())


def observe_round(
    monitors: Sequence[Observer],
    ends: Sequence[TaskEnd[GameReport]],
    idle: Sequence[str] = (),
    first: Observer | None = None,
) -> None:
    """Tell the monitors of a round in which bronze had two batches, and these tasks ended."""
    clock = seconds()
    observers = Observers(first or Observer(), monitors, lambda: next(clock))
    plan = plan_of(*sorted({*idle, *(end.task.game for end in ends)}))
    with observers.run("round", "r1"):
        with observers.stage(RoundStage.INGEST):
            observers.batches(IngestReport(12, 11, 1))
            observers.batches(IngestReport(8, 8, 0))
            observers.ingested(IngestReport(20, 19, 1))
        with observers.stage(RoundStage.PLAN):
            observers.planned(plan, len(ends))
        with observers.stage(RoundStage.DECODE):
            list(observers.each(ends))
        with observers.stage(RoundStage.CLOSE):
            pass


if __name__ == "__main__":
    settings = Settings(root=sys.argv[1])
    monitors = monitors_of(settings, os.environ, print)
    print(" ".join(type(each).__name__ for each in monitors))
    observe_round(monitors, [done("chess"), failed("go")], idle=["ludo"])
