"""The games that send events. Pure."""

from __future__ import annotations

from dataclasses import dataclass

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
        name: as the wrapper has it.
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
