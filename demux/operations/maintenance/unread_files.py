"""The files of bronze that games have not read, from its log; none is vacuumed, no row of them is retired. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any
from urllib.parse import unquote

from demux.core.names import names_of

_COLUMN = "game_name"


@dataclass(frozen=True, slots=True)
class UnreadRows:
    """The unread rows of a game.

    Attributes:
        version: the first commit of bronze with some of it.
        since: when that was made; None where unknown.
        names: the names of its files, and maybe of some that it has read already.
    """

    version: int
    since: datetime | None
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class UnreadBronze:
    """The unread rows of all games.

    Attributes:
        waiting: by exact name, of those that have anything to read.
        passed: by exact name, the last batch of bronze of which a game surely has read every row.
    """

    waiting: Mapping[str, UnreadRows] = field(default_factory=dict)
    passed: Mapping[str, int] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """The names of all files that a game has not read."""
        return frozenset(name for one in self.waiting.values() for name in one.names)

    @property
    def oldest(self) -> datetime | None:
        """The time of the first commit that a game has not read; None where all are read."""
        beginning = datetime.fromtimestamp(0, timezone.utc)
        return min((one.since or beginning for one in self.waiting.values()), default=None)


@dataclass(slots=True)
class _UnreadGame:
    offset: int | None
    names: set[str] = field(default_factory=set)
    version: int | None = None
    since: datetime | None = None


def unread_in(
    commits: Iterable[tuple[int, str]], offsets: Mapping[str, int], games: Iterable[str], begins: int
) -> dict[str, UnreadRows]:
    """Return the unread rows of each game.

    For a game without an offset, or with one before the log begins, nothing is known to be read: all files that
    the log ever named count, also those that were only moved: its stream may have begun with them.

    Args:
        commits: bronze's commits with their files' texts, in order, from the least offset on.
        offsets: by key, the commit before which a game has read everything.
        begins: the first commit that the log has.
    """
    found: dict[str, _UnreadGame] = {}

    def of(game: str) -> _UnreadGame:
        if game not in found:
            offset = offsets.get(names_of(game).key)
            found[game] = _UnreadGame(offset if offset is not None and offset >= begins else None)
        return found[game]

    for version, text in commits:
        _look(version, text, of)
    for game in games:
        one = of(game)
        if one.offset is None and one.version is None:
            one.version = begins
    return {
        game: UnreadRows(one.version, one.since, frozenset(one.names))
        for game, one in found.items()
        if one.version is not None
    }


def _look(version: int, text: str, of: Any) -> None:
    actions = [json.loads(line) for line in text.split("\n") if line.startswith(('{"add"', '{"remove"'))]
    made = _made_at(text)
    added: dict[str, list[dict[str, Any]]] = {}
    removed: dict[str, list[dict[str, Any]]] = {}
    for action in actions:
        kind, body = next(iter(action.items()))
        game = (body.get("partitionValues") or {}).get(_COLUMN)
        if game is not None:
            (added if kind == "add" else removed).setdefault(game, []).append(body)
    for game in {*added, *removed}:
        _note(of(game), version, made, added.get(game, []), removed.get(game, []))


def _note(
    game: _UnreadGame, version: int, made: datetime | None, added: list[dict[str, Any]], removed: list[dict[str, Any]]
) -> None:
    if game.offset is None:
        names = {_name(one) for one in (*added, *removed)}
    elif version < game.offset:
        return
    else:
        names = {_name(one) for one in added if one.get("dataChange", True)}
        gone = {_name(one) for one in removed if one.get("dataChange", True)}
        # what was read is read, also where it is rewritten without some of its rows
        if gone and not gone & game.names:
            return
    if names and game.version is None:
        game.version, game.since = version, made
    game.names |= names


def _name(action: Mapping[str, Any]) -> str:
    return unquote(str(action["path"])).rsplit("/", 1)[-1]


def _made_at(text: str) -> datetime | None:
    for line in text.split("\n"):
        if line.startswith('{"commitInfo"'):
            at = json.loads(line)["commitInfo"].get("timestamp")
            return None if at is None else datetime.fromtimestamp(int(at) / 1000, timezone.utc)
    return None
