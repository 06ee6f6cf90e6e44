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


@dataclass(frozen=True, slots=True)
class Rest:
    """What a driver has to do still.

    Attributes:
        games: the games without a report.
        suspected: in how many deaths of a driver a game was under way.
        in_vain: deaths of a driver while no game was under way.
    """

    games: frozenset[str]
    suspected: Mapping[str, int] = field(default_factory=dict)
    in_vain: int = 0

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
        return replace(self, games=self.games - {game})

    def after_death(self, under_way: frozenset[str], retries: int) -> tuple[Rest, frozenset[str]]:
        """Return what another driver has to do, and the games that are given up.

        Args:
            under_way: the games that the dead driver had begun and not ended.
            retries: how many deaths are forgiven to a game, and to drivers that died with none under way.
        """
        suspected = {**self.suspected, **{game: self.suspected.get(game, 0) + 1 for game in under_way}}
        in_vain = self.in_vain if under_way else self.in_vain + 1
        lost = frozenset(game for game in self.games if in_vain > retries or suspected.get(game, 0) > retries)
        return Rest(self.games - lost, suspected, in_vain), lost


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
    """The driver cannot work, and why."""

    sentence: str


Message = Hello | Work | Stop | Ready | Begun | Over | Broken
_KINDS: Mapping[str, type[Message]] = {kind.__name__: kind for kind in (Hello, Work, Stop, Ready, Begun, Broken)}


def to_line(message: Message) -> bytes:
    """Return the message as one line, its end included."""
    match message:
        case Over(game, report, error, seconds):
            told = None if error is None else [error.condition, error.cause, error.remedy]
            content: dict[str, Any] = {
                "game": game,
                "report": None if report is None else asdict(report),
                "error": told,
                "seconds": seconds,
            }
        case _:
            content = asdict(message)
    # ASCII alone: a name may have line ends, and letters that no encoding has
    return json.dumps([type(message).__name__, content]).encode("ascii") + b"\n"


def from_line(line: bytes) -> Message:
    """Return the message of a line that `to_line` made."""
    kind, content = json.loads(line)
    if kind == Over.__name__:
        return _over(content)
    if kind == Work.__name__:
        return Work(content["settings"], tuple(content["together"]), tuple(content["alone"]))
    return _KINDS[kind](**content)


def _over(content: Mapping[str, Any]) -> Over:
    report, error = content["report"], content["error"]
    if report is not None:
        report = GameReport(**{**report, "schema_ids": tuple(report["schema_ids"])})
    return Over(content["game"], report, None if error is None else _error(*error), content["seconds"])


def _error(condition: str, cause: str, remedy: str) -> DemuxError:
    """Return the error of this condition, from which transient or terminal and the exit code follow."""
    kinds = {kind.condition: kind for kind in DemuxError.__subclasses__()}
    return kinds.get(condition, TaskFailed)(cause, remedy)
