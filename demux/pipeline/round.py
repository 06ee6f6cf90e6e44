"""One round: bronze, the plan, the games that have something to do, and what is written down of them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timezone

from demux.core.control.games_and_rounds import TaskOutcome, TaskRecord
from demux.core.reports import GameReport, IngestReport
from demux.core.schemas.game_discovery import RegisteredGames
from demux.core.streaming.query import TAKE_ALL, Trigger
from demux.pipeline.context import CommandContext
from demux.pipeline.engines import Decode
from demux.pipeline.task_pool import TaskEnd
from install_workflow.planning.plan import Plan
from install_workflow.planning.round_plan import apply, preview_round


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did.

    Attributes:
        round_id: its id in the control table.
        ingested: what bronze took in.
        plan: the plan that was applied.
        ended: how each game's task ended, by game name; games without new rows have none.
        complete: every task that had something to do was begun.
    """

    round_id: str
    ingested: IngestReport
    plan: Plan
    ended: tuple[TaskEnd[GameReport], ...]
    complete: bool


class Observer:
    """Learns of a round's progress; this one ignores it."""

    def ingested(self, report: IngestReport) -> None:
        """Learn what bronze took in."""

    def registered(self, registered: RegisteredGames) -> None:
        """Learn which games the registries name."""

    def planned(self, plan: Plan, due: int) -> None:
        """Learn the plan, and how many of its games have something to do."""

    def ended(self, end: TaskEnd[GameReport]) -> None:
        """Learn how a game's task ended."""


def run_round(
    place: CommandContext, decode: Decode, trigger: Trigger = TAKE_ALL, observer: Observer | None = None
) -> Round:
    """Return what one round did: bronze, then a plan, then each game that has something new.

    Once the place's `stop` is set, tasks under way finish and no other begins. A second round does only what is new or
    left.

    Args:
        place: the root.
        decode: decodes the games of a round; the same one for all rounds of a process.
        trigger: when bronze's batches begin, and when its query ends.
        observer: learns of the progress.
    """
    observer = observer or Observer()
    ingested = place.ingest(trigger)
    observer.ingested(ingested)
    registered = place.registered()
    observer.registered(registered)
    planned = preview_round(place.spark, place.settings, place.control, registered.games)
    apply(place.control, planned.plan, datetime.now(timezone.utc))
    observer.planned(planned.plan, len(planned.due))
    ended: list[TaskEnd[GameReport]] = []
    for end in decode(planned.due):
        observer.ended(end)
        ended.append(end)
    complete = len(ended) == len(planned.due)
    round_id = uuid.uuid4().hex[:12]
    # a round that was stopped has not looked at every game: the next one must look again
    version = planned.bronze_version if complete else None
    ended.sort(key=lambda end: end.task.game)
    place.control.close_round([record_of(end, round_id) for end in ended], version)
    return Round(round_id, ingested, planned.plan, tuple(ended), complete)


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
        f"{error.cause} {error.remedy}" if error else None,
        datetime.now(timezone.utc),
    )


def _outcome(report: GameReport | None) -> TaskOutcome:
    if report is None:
        return TaskOutcome.FAILED
    return TaskOutcome.BEHIND if report.rows_waiting else TaskOutcome.DONE
