"""The schema of a game in each version. Pure.

A later version only adds: the number of a field means the same in every version.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from demux.core.names import game_key

_READABLE = (
    "chess",
    "go",
    "backgammon",
    "checkers",
    "mahjong",
    "poker",
    "bridge",
    "solitaire",
    "sudoku",
    "tetris",
    "pinball",
    "snooker",
    "darts",
    "bowling",
    "curling",
    "fencing",
    "archery",
    "rowing",
    "sailing",
    "karting",
)
HOSTILE = (
    "../../etc",
    "a'b; drop table x",
    "Chess",
    "ch-ess",
    "ch ess",
    "象棋",
    "шахматы",
    "col`umn ${env:HOME}",
    "game_name=chess",
    "%2e%2e",
)
_FIRST_HOSTILE = 1_000_000


@dataclass(frozen=True, slots=True)
class Game:
    """A game that sends events.

    Attributes:
        number: its own number, from 0; decides its columns and partition.
        key: the name as an identifier, for its package and columns.
    """

    number: int
    name: str
    key: str


def games(count: int, hostile: int = 0) -> tuple[Game, ...]:
    """Return the first `count` games with plain names, then the first `hostile` with names that try to do harm.

    A game has the same number, and so the same columns, whatever the counts are.
    """
    plain = [*_READABLE[:count], *(f"game_{number:03}" for number in range(len(_READABLE) + 1, count + 1))]
    numbered = [*enumerate(plain), *enumerate(HOSTILE[:hostile], _FIRST_HOSTILE)]
    return tuple(Game(number, name, game_key(name)) for number, name in numbered)


class FieldKind(Enum):
    """The type of a field; the value is how the `.proto` text says it."""

    STRING = "string"
    INT64 = "int64"
    DOUBLE = "double"
    BOOL = "bool"
    INT32 = "int32"
    BYTES = "bytes"
    FLOAT = "float"
    UINT32 = "uint32"
    SINT64 = "sint64"
    UINT64 = "uint64"
    FIXED32 = "fixed32"
    TIMESTAMP = "google.protobuf.Timestamp"
    DEVICE = "Device"
    OUTCOME = "Outcome"
    TAGS = "repeated string"
    SCORES = "map<string, int64>"


@dataclass(frozen=True, slots=True)
class GameField:
    """A field of a game's message."""

    number: int
    name: str
    kind: FieldKind


_EVERY_GAME = (
    GameField(1, "game_name", FieldKind.STRING),
    GameField(2, "user_name", FieldKind.STRING),
    GameField(3, "event_timestamp", FieldKind.TIMESTAMP),
    GameField(4, "is_connection_stable", FieldKind.BOOL),
)
_ADDED = {
    2: (GameField(5, "device", FieldKind.DEVICE), GameField(6, "outcome", FieldKind.OUTCOME)),
    3: (GameField(7, "tags", FieldKind.TAGS), GameField(8, "scores", FieldKind.SCORES)),
}
_FIRST_GAME_COLUMN = 20
_GAME_KINDS = tuple(FieldKind)[: tuple(FieldKind).index(FieldKind.TIMESTAMP)]
_OUTCOMES = ("OUTCOME_UNSPECIFIED", "OUTCOME_WON", "OUTCOME_LOST", "OUTCOME_DRAWN")


def columns(game: Game, version: int) -> tuple[GameField, ...]:
    """Return the fields of the game's message in this version (from 1), in order of number.

    Version 1 has what every game has and 1 to 3 columns `col_<game>_game_<k>`; each later version adds one such
    column, version 2 also a message and an enum, version 3 also a list and a map.
    """
    added = [column for since, new in _ADDED.items() if since <= version for column in new]
    own = [_game_column(game, k) for k in range(1, game.number % 3 + version + 1)]
    return (*_EVERY_GAME, *added, *own)


def outcomes(version: int) -> tuple[str, ...]:
    """Return the enum's names by number; version 3 adds one."""
    return _OUTCOMES if version >= 3 else _OUTCOMES[:3]


def device_has_os(version: int) -> bool:
    """Return whether the nested message has its third field, which version 3 adds."""
    return version >= 3


def message_name(game: Game) -> str:
    """Return the full name of the game's message."""
    return f"games.{game.key}.Event"


def proto_path(game: Game) -> str:
    """Return the import path of the game's `.proto` file."""
    return f"games/{game.key}.proto"


def proto_text(game: Game, version: int) -> str:
    """Return the `.proto` text of the game's schema in this version."""
    fields = [f"  {column.kind.value} {column.name} = {column.number};" for column in columns(game, version)]
    return "\n".join(
        [
            'syntax = "proto3";',
            f"package games.{game.key};",
            'import "google/protobuf/timestamp.proto";',
            "",
            "message Event {",
            *fields,
            *(_nested(version) if version >= 2 else ()),
            "}",
            "",
        ]
    )


def _game_column(game: Game, k: int) -> GameField:
    # other games start elsewhere in the list of kinds, so their columns differ in type as well as in name
    kind = _GAME_KINDS[(3 * game.number + k) % len(_GAME_KINDS)]
    return GameField(_FIRST_GAME_COLUMN + k - 1, f"col_{game.key}_game_{k}", kind)


def _nested(version: int) -> list[str]:
    device = ["    string model = 1;", "    int32 memory_mb = 2;"]
    if device_has_os(version):
        device.append("    string os = 3;")
    values = [f"    {name} = {number};" for number, name in enumerate(outcomes(version))]
    return ["", "  message Device {", *device, "  }", "", "  enum Outcome {", *values, "  }"]
