"""The difference between what should run and what runs now, as data: one change with a reason for each game. Pure."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from demux.core.control.games_and_rounds import Load
from demux.core.errors import PlanRefused
from demux.core.names import names_of
from demux.core.schemas.registry_selection import RegisteredGames
from demux.core.settings.games import GamesSettings, Policy
from demux.core.text import printable
from install_workflow.planning.rebalance import Balance, GameMove, balance, pack, weights_ms


class Action(Enum):
    """The action of a change on a game's task."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Task:
    """One game's deserializer."""

    game: str
    key: str
    cluster: str


@dataclass(frozen=True, slots=True)
class TaskChange:
    """The action on one task, and the reason."""

    action: Action
    task: Task
    reason: str


@dataclass(frozen=True, slots=True)
class WaitingGame:
    """A game whose rows stay in bronze, or whose readers get nothing yet, and why."""

    game: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that should run after the plan is applied.

    Attributes:
        changes: one for each task that runs now or should, by game name.
        waiting: the games that are not admitted, by name.
    """

    changes: tuple[TaskChange, ...]
    waiting: tuple[WaitingGame, ...]

    @property
    def plan_id(self) -> str:
        """12 hex digits that depend on the content alone."""
        content = [[c.action.value, c.task.game, c.task.cluster] for c in self.changes]
        waiting = [[w.game, w.reason] for w in self.waiting]
        return digest([content, waiting])[:12]

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks that run once the plan is applied."""
        return tuple(change.task for change in self.changes if change.action is not Action.DELETE)

    @property
    def is_empty(self) -> bool:
        """Whether applying the plan would change nothing."""
        return all(change.action is Action.KEEP for change in self.changes)


def make_plan(
    seen: Iterable[str],
    running: Mapping[str, str],
    games: GamesSettings,
    per_cluster: int,
    loads: Mapping[str, Load] | None = None,
    rebalance: Balance = Balance.KEEP,
    registered: Collection[str] = (),
) -> Plan:
    """Return the plan that takes the running games to what the settings want.

    Args:
        seen: every game with rows in bronze.
        running: cluster by game, as it runs now.
        loads: what is known of the games' loads; without any, games are counted.
        rebalance: whether an overloaded cluster gives games away.
        registered: games that the registry has, with or without rows.

    Raises:
        PlanRefused: two games would share a table, or a cluster has more pinned games than room.
    """
    seen = set(seen)
    wanted, waiting = _admit(seen | set(running) | set(registered), running, games, seen)
    _require_distinct_keys(wanted)
    where = _place(wanted, running, games.pinned, per_cluster, weights_ms(wanted, loads or {}), rebalance)
    changes = [_change(game, where.get(game), running.get(game), seen) for game in sorted(wanted | set(running))]
    return Plan(tuple(changes), tuple(waiting))


def left_out(registered: RegisteredGames) -> tuple[WaitingGame, ...]:
    """Return the names that subjects have and no game can; they are shown, and are in no plan."""
    return tuple(
        WaitingGame(game, f"its subject names what no game can be called. {why}") for game, why in registered.left_out
    )


def _place(
    wanted: set[str],
    running: Mapping[str, str],
    pinned: Mapping[str, str],
    per_cluster: int,
    weights: Mapping[str, int],
    rebalance: Balance,
) -> dict[str, GameMove]:
    """Return each game's cluster, and why it moves there if it does."""
    packed = pack(wanted, running, per_cluster, pinned, weights)
    where = {
        game: GameMove(cluster, _reason(running[game], game in pinned) if game in running else "")
        for game, cluster in packed.items()
    }
    match rebalance:
        case Balance.KEEP:
            return where
        case Balance.MOVE:
            # a game changes clusters for one reason in a plan
            movable = {game for game, cluster in packed.items() if running.get(game) == cluster and game not in pinned}
            return where | balance(packed, movable, weights, per_cluster)


def _reason(running: str, is_pinned: bool) -> str:
    return f"moved from {running}: games.pinned says so" if is_pinned else f"moved from {running}, which is full"


def digest(content: object) -> str:
    """Return 64 hex digits that depend on JSON data alone, whatever the order of its fields."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _admit(
    everything: set[str], running: Mapping[str, str], games: GamesSettings, seen: Collection[str]
) -> tuple[set[str], list[WaitingGame]]:
    allowed = everything & set(games.allow)
    if games.policy is Policy.ALLOW_LIST:
        reason = "games.policy is allow-list and games.allow does not name it"
        return allowed, [WaitingGame(game, reason) for game in sorted(everything - allowed)]
    kept = {game for game in running if game not in allowed}
    # rows that wait come before names that have none yet
    new = sorted(everything - allowed - kept, key=lambda game: (game not in seen, game))
    room = max(0, games.limit - len(kept))
    reason = f"games.limit is {games.limit} and as many games are running"
    return allowed | kept | set(new[:room]), [WaitingGame(game, reason) for game in sorted(new[room:])]


def _change(game: str, wanted: GameMove | None, running: str | None, seen: Collection[str]) -> TaskChange:
    key = names_of(game).task_key
    if wanted is None:
        assert running is not None
        return TaskChange(Action.DELETE, Task(game, key, running), "games.allow does not name it any more")
    task = Task(game, key, wanted.cluster)
    if running == wanted.cluster:
        return TaskChange(Action.KEEP, task, "nothing changed")
    if running is None:
        return TaskChange(Action.CREATE, task, f"new game in {'bronze' if game in seen else 'the registry'}")
    return TaskChange(Action.UPDATE, task, wanted.reason)


def _require_distinct_keys(games: Iterable[str]) -> None:
    by_key: dict[str, str] = {}
    for game in sorted(games):
        key = names_of(game).key
        other = by_key.setdefault(key, game)
        if other != game:
            raise PlanRefused(
                f"The games {other!r} and {game!r} would share the table {key}.",
                "Rename one of them, or leave one out by games.policy: allow-list.",
                games=(other, game),
            )


# of every plan's actions, by their words; what stays has none
_SIGNS = {
    **dict.fromkeys(("create", "grant"), "+"),
    **dict.fromkeys(("update", "confirm", "forget"), "~"),
    **dict.fromkeys(("delete", "remove double", "revoke"), "-"),
}


def change_line(action: Enum, what: str, reason: str, width: int = 6) -> str:
    """Return the line of a change in any plan: its sign and action, what it is about, and why."""
    return f"{sign_of(action)} {action.value:{width}} {what}: {printable(reason)}"


def sign_of(action: Enum) -> str:
    """Return the sign of an action: `+`, `~`, `-`, or a blank for what stays."""
    return _SIGNS.get(action.value, " ")


def count_actions(done: Iterable[Enum], actions: Iterable[Enum]) -> str:
    """Return how often there is each of the actions, such as `2 to create, 0 to delete`."""
    counted = Counter(done)
    return ", ".join(f"{counted[action]} to {action.value}" for action in actions)


def as_text(plan: Plan, with_kept: bool = False) -> str:
    """Return one line for each change, the waiting games, and a summary; control characters are made visible."""
    lines = [
        change_line(
            each.action, f"{each.task.key} on {each.task.cluster} (game {printable(each.task.game)})", each.reason
        )
        for each in plan.changes
        if each.action is not Action.KEEP or with_kept
    ]
    summary = count_actions((each.action for each in plan.changes), Action)
    return "\n".join(
        [*lines, *waiting_lines(plan.waiting), f"Plan {plan.plan_id}: {summary}, {len(plan.waiting)} waiting."]
    )


def waiting_lines(waiting: Iterable[WaitingGame], width: int = 6) -> list[str]:
    """Return a line for each game that waits; control characters are made visible."""
    return [f"! {'waits':{width}} game {printable(each.game)}: {printable(each.reason)}" for each in waiting]


def content_of(plan: Plan) -> dict[str, Any]:
    """Return the plan as JSON data: plan_id, changes (action, game, task, cluster, reason), waiting."""
    changes = [
        {
            "action": change.action.value,
            "game": change.task.game,
            "task": change.task.key,
            "cluster": change.task.cluster,
            "reason": change.reason,
        }
        for change in plan.changes
    ]
    return {"plan_id": plan.plan_id, "changes": changes, "waiting": [asdict(each) for each in plan.waiting]}
