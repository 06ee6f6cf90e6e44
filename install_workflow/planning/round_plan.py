"""The plan stage: see what bronze has, plan, apply, and run one round of everything that has something to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from demux.core.control.games_and_rounds import Control, KnownGame, RoundHistory, TaskOutcome
from demux.core.delta.bronze_games import games_in_bronze
from demux.core.delta.log import growth
from demux.core.root.layout import layout_of
from demux.core.settings.settings import Settings
from install_workflow.planning.plan import Action, Plan, Task, make_plan
from install_workflow.planning.rebalance import Balance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class RoundPreview:
    """The plan of a round, and which of its tasks have new rows."""

    plan: Plan
    due: tuple[Task, ...]
    bronze_version: int


def preview_round(
    spark: SparkSession | None, settings: Settings, control: Control, registered: Collection[str] = frozenset()
) -> RoundPreview:
    """Return the plan for what is in bronze now, and for the games that the registry has; changes nothing."""
    layout = layout_of(settings)
    known, history = control.known_games(), control.history()
    grown = growth(layout.storage, layout.bronze, "game_name", history.bronze_version)
    # made of all files that came, so once
    with_rows = grown.partitions
    # no game is known at first, and after `demux destroy`
    seen = set(known) | (with_rows if known and with_rows is not None else games_in_bronze(spark, layout))
    running = {game.name: game.cluster for game in known.values() if game.cluster is not None}
    per_cluster = settings.run.per_cluster
    rebalance = balance_now(known.values(), history)
    plan = make_plan(seen, running, settings.games, per_cluster, history.loads, rebalance, registered)
    done = {game for game, record in history.last.items() if record.outcome is TaskOutcome.DONE}
    due = _due(plan, with_rows, done)
    # only a game that the registry named, or that waited, has neither new rows nor a past
    unsure = {task.game for task in due} - history.last.keys() - (with_rows or frozenset())
    empty = unsure - games_in_bronze(spark, layout, unsure) if unsure else unsure
    return RoundPreview(plan, tuple(task for task in due if task.game not in empty), grown.version)


def balance_now(known: Iterable[KnownGame], history: RoundHistory) -> Balance:
    """Return whether games may move for balance: not before a task ended where the last plan put it.

    So a plan made again at once moves no game, whatever the one before it left for later.
    """
    return balance_since(max((game.since for game in known if game.cluster is not None), default=None), history)


def balance_since(changed: datetime | None, history: RoundHistory) -> Balance:
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


def _due(plan: Plan, with_rows: Set[str] | None, done: Set[str]) -> tuple[Task, ...]:
    """Return the tasks of games with new rows, or that did not end well; of all games where new rows are unknown."""
    return tuple(
        change.task
        for change in plan.changes
        if change.action is not Action.DELETE
        and (
            change.action is Action.CREATE
            or change.task.game not in done
            or with_rows is None
            or change.task.game in with_rows
        )
    )
