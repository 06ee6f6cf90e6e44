"""One round: bronze, the plan, the games that have something to do, and what is written down of them."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial

from demux.core.control.freshness import NO_FRESHNESS
from demux.core.control.games_and_rounds import TaskOutcome, TaskRecord
from demux.core.reports import GameReport, IngestReport
from demux.core.streaming.query import TAKE_ALL, Trigger
from demux.pipeline.context import CommandContext
from demux.pipeline.drain import drain
from demux.pipeline.engines import Decode, decode_of
from demux.pipeline.observers.monitors import monitors_of
from demux.pipeline.observers.observer import Observer, Observers, RoundStage
from demux.pipeline.task_pool import TaskEnd
from install_workflow.planning.plan import Plan, Task
from install_workflow.planning.round_plan import apply, preview_round

# returns what bronze took in, and calls back for each batch
TakeIn = Callable[[Callable[[IngestReport], None]], IngestReport]


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did.

    Attributes:
        round_id: its id in the control table.
        ingested: what bronze took in; with rounds beside it, since the last round.
        ended: how each game's task ended, by game name; games without new rows have none.
        complete: every task that had something to do was begun.
    """

    round_id: str
    ingested: IngestReport
    plan: Plan
    ended: tuple[TaskEnd[GameReport], ...]
    complete: bool


def run_all(place: CommandContext, *, observer: Observer | None = None) -> Round:
    """Return what a round did that decodes all rows which bronze has at its begin, however many a game has."""
    decode = decode_of(place, place.settings.round_engine)
    return run_round(place, partial(drain, decode=decode, stop=place.stop), observer=observer)


def run_round(
    place: CommandContext, decode: Decode, take: TakeIn | None = None, observer: Observer | None = None
) -> Round:
    """Return what one round did: bronze, then a plan, then each game that has something new.

    Once the place's `stop` is set, tasks under way finish and no other begins. A second round does only what is new or
    left.

    Args:
        decode: decodes the games of a round; the same one for all rounds of a process.
        take: says what bronze took in since the last round; by default the bronze stage runs now, with all that is new.
        observer: learns of the progress.
    """
    watched, round_id = _observers(place, observer), _new_id()
    with watched.run("round", round_id):
        with watched.stage(RoundStage.INGEST):
            ingested = place.ingest(on_batch=watched.batches) if take is None else take(watched.batches)
            watched.ingested(ingested)
        with watched.stage(RoundStage.PLAN):
            registered = place.registered()
            watched.registered(registered)
            planned = preview_round(place.spark, place.settings, place.control, registered.games)
            apply(place.control, planned.plan, _now())
            watched.planned(planned.plan, len(planned.due))
        with watched.stage(RoundStage.DECODE):
            ended = sorted(watched.each(decode(planned.due)), key=lambda end: end.task.game)
        with watched.stage(RoundStage.CLOSE):
            complete = len(ended) == len(planned.due)
            # a round that was stopped has not looked at every game: the next one must look again
            version = planned.bronze_version if complete else None
            place.control.close_round([record_of(end, round_id) for end in ended], version)
    return Round(round_id, ingested, planned.plan, tuple(ended), complete)


def run_ingest(
    place: CommandContext,
    trigger: Trigger = TAKE_ALL,
    *,
    accept_gaps: bool = False,
    on_batch: Callable[[IngestReport], None] = lambda _: None,
) -> IngestReport:
    """Return what the bronze stage took in, alone; as `CommandContext.ingest`."""
    watched = _observers(place)

    def one_batch(report: IngestReport) -> None:
        watched.batches(report)
        on_batch(report)

    with watched.run("ingest", _new_id()), watched.stage(RoundStage.INGEST):
        report = place.ingest(trigger, accept_gaps=accept_gaps, on_batch=one_batch)
        watched.ingested(report)
    return report


def run_games(
    place: CommandContext, tasks: tuple[Task, ...], observer: Observer | None = None
) -> tuple[TaskEnd[GameReport], ...]:
    """Return how the tasks of these games ended, without bronze and without a plan; one that was not begun is left out.

    All rows are decoded that wait at its begin.
    """
    watched, round_id = _observers(place, observer), _new_id()
    with watched.run("deserialize", round_id):
        with watched.stage(RoundStage.DECODE):
            ended = tuple(watched.each(drain(tasks, decode_of(place, place.settings.task_engine), place.stop)))
        with watched.stage(RoundStage.CLOSE):
            place.control.close_round([record_of(end, round_id) for end in ended], None)
    return ended


def record_of(end: TaskEnd[GameReport], round_id: str) -> TaskRecord:
    """Return the control table's row for a task that ended now."""
    report, error = end.report, end.error
    return TaskRecord(
        round_id,
        end.task.game,
        _outcome(report),
        report.rows_in if report else 0,
        report.rows_silver if report else 0,
        report.rows_quarantined if report else 0,
        report.schema_ids if report else (),
        end.seconds,
        error.condition if error else None,
        f"{error.message} {error.remedy}" if error else None,
        _now(),
        report.freshness if report else NO_FRESHNESS,
    )


def _outcome(report: GameReport | None) -> TaskOutcome:
    if report is None:
        return TaskOutcome.FAILED
    return TaskOutcome.BEHIND if report.rows_waiting else TaskOutcome.DONE


def _observers(place: CommandContext, observer: Observer | None = None) -> Observers:
    return Observers(observer or Observer(), monitors_of(place.settings, os.environ, place.warn), _now)


def _new_id() -> str:
    return uuid.uuid4().hex[:12]


def _now() -> datetime:
    return datetime.now(timezone.utc)
