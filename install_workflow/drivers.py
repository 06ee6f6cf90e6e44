"""Drivers of a plan's clusters: what each has to do, what is left after one died, what is said to and by it. Pure.

A line of JSON for each message, both ways. A command says `Hello`, its driver `Ready`, then the command `Work`; the
driver says `Begun` and `Over` of each game, or `Broken` when it cannot work. `Stop` may come at any time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from demux.errors import DemuxError, TaskFailed
from demux.reports import GameReport
from install_workflow.engine import Ended
from install_workflow.plan import Task

_MOST_WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Rest:
    """What a driver has to do still.

    Attributes:
        games: the games without a report.
        suspected: in how many deaths of a driver a game was under way.
        in_vain: deaths of a driver while no game was under way.
        fruitless: whether no game has had a report yet.
    """

    games: frozenset[str]
    suspected: Mapping[str, int] = field(default_factory=dict)
    in_vain: int = 0
    fruitless: bool = True

    @property
    def together(self) -> tuple[str, ...]:
        """The games to be decoded side by side, sorted."""
        return tuple(sorted(game for game in self.games if game not in self.suspected))

    @property
    def alone(self) -> tuple[str, ...]:
        """The games to be decoded after them, one at a time, so that one that kills its driver is found."""
        return tuple(sorted(self.games & self.suspected.keys(), key=lambda game: (self.suspected[game], game)))

    def without(self, game: str) -> Rest:
        """Return what is left once the game has a report."""
        return replace(self, games=self.games - {game}, fruitless=False)

    def wait_s(self, first_s: float) -> float:
        """Return the seconds to wait before another driver is started, a minute at most.

        Twice as many for each further death of the game that is most suspected, not for each death of a driver: with
        many games that kill their drivers these are many.
        """
        deaths = max((self.in_vain, *(self.suspected.get(game, 0) for game in self.games)))
        return min(_MOST_WAIT_S, first_s * 2.0 ** max(0, deaths - 1))

    def after_death(self, under_way: frozenset[str], retries: int) -> tuple[Rest, frozenset[str]]:
        """Return what another driver has to do, and the games that are given up.

        Where each has killed a driver alone and none has had a report, it is not the games: they share the further
        tries.

        Args:
            under_way: the games that the dead driver had begun and not ended.
            retries: how many deaths are forgiven to a game, and to drivers that died with none under way.
        """
        suspected = {**self.suspected, **{game: self.suspected.get(game, 0) + 1 for game in under_way}}
        in_vain = self.in_vain if under_way else self.in_vain + 1
        # the first time a game may have been beside the one that killed the driver
        alone = [suspected.get(game, 0) - 1 for game in self.games]
        hopeless = self.fruitless and all(died > 0 for died in alone) and sum(alone) >= len(alone) + retries - 1
        given_up = in_vain > retries or hopeless
        lost = frozenset(game for game in self.games if given_up or suspected.get(game, 0) > retries)
        return replace(self, games=self.games - lost, suspected=suspected, in_vain=in_vain), lost


def by_cluster(tasks: Iterable[Task]) -> dict[str, dict[str, Task]]:
    """Return the tasks of each cluster by game, the clusters in the order of their names."""
    found: dict[str, dict[str, Task]] = {}
    for task in sorted(tasks, key=lambda task: (task.cluster, task.game)):
        found.setdefault(task.cluster, {})[task.game] = task
    return found


@dataclass(frozen=True, slots=True)
class Hello:
    """The first word to a driver.

    Attributes:
        root: the root's path or URI.
        cluster: whose games it will decode.
        logs: the folder of its log files.
    """

    root: str
    cluster: str
    logs: str


@dataclass(frozen=True, slots=True)
class Work:
    """What a driver has to do.

    Attributes:
        settings: as `Settings.model_dump(mode="json")` gives them; no secret is in them.
        together: games to be decoded side by side.
        alone: games to be decoded afterwards, one at a time.
    """

    settings: Mapping[str, Any]
    together: tuple[str, ...]
    alone: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stop:
    """Finish what is under way, begin no other game."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The driver holds the lock of its cluster, and waits for work."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The driver begins a game, or tries it again."""

    game: str


@dataclass(frozen=True, slots=True)
class Over:
    """How a game ended, as in `Ended`; an error without its fields."""

    game: str
    report: GameReport | None
    error: DemuxError | None
    seconds: float

    def ended(self, task: Task) -> Ended[GameReport]:
        """Return it as the end of the task."""
        return Ended(task, self.report, self.error, self.seconds)


@dataclass(frozen=True, slots=True)
class Broken:
    """The driver cannot work, and why; the error without its fields."""

    error: DemuxError


Message = Hello | Work | Stop | Ready | Begun | Over | Broken
_KINDS: Mapping[str, type[Message]] = {kind.__name__: kind for kind in (Hello, Work, Stop, Ready, Begun)}


def to_line(message: Message) -> bytes:
    """Return the message as one line, its end included."""
    match message:
        case Over(game, report, error, seconds):
            content: dict[str, Any] = {
                "game": game,
                "report": None if report is None else asdict(report),
                "error": None if error is None else _told(error),
                "seconds": seconds,
            }
        case Broken(error):
            content = {"error": _told(error)}
        case _:
            content = asdict(message)
    # ASCII alone: a name may have line ends, and letters that no encoding has
    return json.dumps([type(message).__name__, content]).encode("ascii") + b"\n"


def from_line(line: bytes) -> Message:
    """Return the message of a line that `to_line` made."""
    kind, content = json.loads(line)
    if kind == Over.__name__:
        return _over(content)
    if kind == Broken.__name__:
        return Broken(_error(*content["error"]))
    if kind == Work.__name__:
        return Work(content["settings"], tuple(content["together"]), tuple(content["alone"]))
    return _KINDS[kind](**content)


def _over(content: Mapping[str, Any]) -> Over:
    report, error = content["report"], content["error"]
    if report is not None:
        report = GameReport(**{**report, "schema_ids": tuple(report["schema_ids"])})
    return Over(content["game"], report, None if error is None else _error(*error), content["seconds"])


def _told(error: DemuxError) -> tuple[str, str, str]:
    return error.condition, error.cause, error.remedy


def _error(condition: str, cause: str, remedy: str) -> DemuxError:
    """Return the error of this condition, from which transient or terminal and the exit code follow."""
    kinds = {kind.condition: kind for kind in DemuxError.__subclasses__()}
    return kinds.get(condition, TaskFailed)(cause, remedy)
