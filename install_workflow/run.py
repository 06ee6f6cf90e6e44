"""The plan stage: see what bronze has, plan, apply, and run one round of everything that has something to do."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timezone

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from demux.control import Control, History, KnownGame, Outcome, TaskRecord
from demux.delta_log import Growth, growth
from demux.reports import GameReport, IngestReport
from demux.roots import layout_of
from demux.settings import Settings
from demux.storage import table_exists
from demux.tables import Layout
from install_workflow.balance import Balance
from install_workflow.engine import Ended, run_tasks
from install_workflow.plan import Action, Plan, Task, make_plan

Deserialize = Callable[[str], GameReport]
OnEnd = Callable[[Ended[GameReport]], None]
# runs tasks and tells of each end: a fleet, or `run_tasks`
RunTasks = Callable[[tuple[Task, ...], OnEnd], tuple[Ended[GameReport], ...]]


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
    ended: tuple[Ended[GameReport], ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class Observer:
    """Who is told of a round's progress."""

    ingested: Callable[[IngestReport], None] = lambda _: None
    planned: Callable[[Plan, int], None] = lambda *_: None
    ended: Callable[[Ended[GameReport]], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class Outlook:
    """What bronze has, compared with what runs: the plan, and which of its tasks have something to do."""

    plan: Plan
    due: tuple[Task, ...]
    bronze_version: int


def look(
    spark: SparkSession, settings: Settings, control: Control, registered: Collection[str] = frozenset()
) -> Outlook:
    """Return the plan for what is in bronze now, and for the games that the registry has; changes nothing."""
    layout = layout_of(settings)
    known, history = control.known_games(), control.history()
    grown = growth(spark, layout.bronze, "game_name", history.bronze_version)
    # nobody is known at first, and after `demux destroy`
    anew = not known or grown.partitions is None
    seen = set(known) | (games_in_bronze(spark, layout) if anew else (grown.partitions or frozenset()))
    running = {game.name: game.cluster for game in known.values() if game.cluster is not None}
    per_cluster = settings.run.per_cluster
    rebalance = balance_now(known.values(), history)
    plan = make_plan(seen, running, settings.games, per_cluster, history.loads, rebalance, registered)
    done = {game for game, record in history.last.items() if record.outcome is Outcome.DONE}
    due = _due(plan, grown, done)
    # only a game that the registry named, or that waited, has neither new rows nor a past
    unsure = {task.game for task in due} - history.last.keys() - (grown.partitions or frozenset())
    empty = unsure - games_in_bronze(spark, layout, unsure) if unsure else unsure
    return Outlook(plan, tuple(task for task in due if task.game not in empty), grown.version)


def balance_now(known: Iterable[KnownGame], history: History) -> Balance:
    """Return whether games may move for balance: not before a task ended where the last plan put it.

    So a plan made again at once moves nobody, whatever the one before it left for later.
    """
    return balance_since(max((game.since for game in known if game.cluster is not None), default=None), history)


def balance_since(changed: datetime | None, history: History) -> Balance:
    """Return whether games may move for balance, where a game was placed last at this time; None for never."""
    ended = history.last_end
    return Balance.MOVE if changed is not None and ended is not None and ended > changed else Balance.KEEP


def apply(control: Control, plan: Plan, now: datetime) -> None:
    """Write down which game runs where and which waits; a second call changes nothing."""
    known = control.known_games()
    wanted = {task.game: task.cluster for task in plan.tasks} | {waiting.game: None for waiting in plan.waiting}
    games = [
        known[game] if game in known and known[game].cluster == cluster else KnownGame(game, cluster, plan.plan_id, now)
        for game, cluster in sorted(wanted.items())
    ]
    if games != sorted(known.values(), key=lambda game: game.name):
        control.replace_games(games)


def run_round(
    spark: SparkSession,
    settings: Settings,
    control: Control,
    ingest: Callable[[], IngestReport],
    deserialize: Deserialize,
    stop: threading.Event,
    observer: Observer,
    registered: Callable[[], Collection[str]] = frozenset,
    together: RunTasks | None = None,
) -> Round:
    """Return what one round did: bronze, then a plan, then each game that has something new.

    Once `stop` is set, tasks under way finish and no other begins. A second round does only what is new or left.

    Args:
        spark: the session.
        settings: all settings.
        control: the root's control tables; the same for all rounds of a process.
        ingest: runs the bronze stage.
        deserialize: runs the silver stage for one game; called from several threads.
        stop: see above.
        observer: told of the progress.
        registered: gives the games that the registry has.
        together: runs the tasks in one Spark job; without it, `deserialize` runs each.
    """

    def one_by_one(tasks: tuple[Task, ...], on_end: OnEnd) -> tuple[Ended[GameReport], ...]:
        return run_tasks(spark, tasks, lambda task: deserialize(task.game), settings.run, stop, on_end)

    ingested = ingest()
    observer.ingested(ingested)
    outlook = look(spark, settings, control, registered())
    apply(control, outlook.plan, datetime.now(timezone.utc))
    observer.planned(outlook.plan, len(outlook.due))
    ended = (together or one_by_one)(outlook.due, observer.ended)
    complete = len(ended) == len(outlook.due)
    round_id = uuid.uuid4().hex[:12]
    # a round that was stopped has not looked at every game: the next one must look again
    version = outlook.bronze_version if complete else None
    control.close_round([record_of(end, round_id) for end in ended], version)
    return Round(round_id, ingested, outlook.plan, ended, complete)


def record_of(end: Ended[GameReport], round_id: str) -> TaskRecord:
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


def _outcome(report: GameReport | None) -> Outcome:
    if report is None:
        return Outcome.FAILED
    return Outcome.BEHIND if report.rows_waiting else Outcome.DONE


def _due(plan: Plan, grown: Growth, done: set[str]) -> tuple[Task, ...]:
    return tuple(
        change.task
        for change in plan.changes
        if change.action is not Action.DELETE
        and (
            change.action is Action.CREATE
            or change.task.game not in done
            or grown.partitions is None
            or change.task.game in grown.partitions
        )
    )


def games_in_bronze(spark: SparkSession, layout: Layout, among: Collection[str] | None = None) -> set[str]:
    """Return the names of all games that have rows in bronze, or of those among them.

    Reads the table's log; where only Spark opens the table, the footers of all its files, or of those of these games.
    """
    if (table := layout.storage.known_table(layout.bronze)) is not None:
        found = {partition["game_name"] for partition in table.partitions()} - {None}
        return found if among is None else found & set(among)
    if not table_exists(spark, layout.bronze):
        return set()
    names = spark.read.format("delta").load(layout.bronze).select("game_name")
    if among is not None:
        names = names.where(F.col("game_name").isin(sorted(among)))
    return {row.game_name for row in names.distinct().collect()}
