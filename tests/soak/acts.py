"""What is done to a root while it runs: drawn by chance, told by a seed. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum


class Act(Enum):
    """A kind of thing that happens."""

    MAINTAIN = "maintain"
    FORGET = "forget"
    BACKFILL = "backfill"
    REPLAY = "replay"
    KILL_RUN = "kill the run"
    REBUILD = "rebuild"
    FILL = "fill"
    DROP = "drop"


# what every soak does
ALWAYS = (Act.MAINTAIN, Act.FORGET, Act.BACKFILL, Act.REPLAY, Act.KILL_RUN)


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing that happens.

    Attributes:
        act: its kind.
        kill_after_s: kill it so long after it began to work, then give it again; None: let it end.
    """

    act: Act
    kill_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Odds:
    """How rough it gets.

    Attributes:
        acts: what may happen.
        killed: the share of commands that are killed.
        kill_within_s: a command is killed at a moment within so long after it began to work.
    """

    acts: tuple[Act, ...] = tuple(Act)
    killed: float = 0.4
    kill_within_s: float = 8.0


def deeds(rng: random.Random, odds: Odds) -> Iterator[Deed]:
    """Yield for ever what happens next; each act happens once before one happens again."""
    while True:
        for act in rng.sample(odds.acts, len(odds.acts)):
            is_killed = act is not Act.KILL_RUN and rng.random() < odds.killed
            yield Deed(act, rng.uniform(0, odds.kill_within_s) if is_killed else None)


def words(act: Act, rng: random.Random, days: Sequence[str], game: str, person: str) -> tuple[str, ...]:
    """Return the command of an act, without root.

    Args:
        act: the act.
        rng: the chance.
        days: the first and the last day of a backfill.
        game: of what is done to one game.
        person: who is forgotten.
    """
    match act:
        case Act.MAINTAIN:
            # nothing that nobody needs is kept, not even for a second
            return ("maintain", "--set", "maintain.keep=0s", "--force") if rng.random() < 0.7 else ("maintain",)
        case Act.FORGET:
            return ("forget", "--where", f"user_name = '{person}'", "--unreadable-too", "--yes")
        case Act.BACKFILL:
            return ("backfill", "--from", days[0], "--to", days[-1])
        case Act.REPLAY:
            return ("quarantine", "replay")
        case Act.REBUILD:
            return ("rebuild", "--game", game)
        case Act.FILL:
            return ("backfill", "--rescued")
        case Act.DROP:
            causes = ("MALFORMED_PAYLOAD", "MALFORMED_WRAPPER", "INVALID_GAME_NAME")
            return ("quarantine", "drop", "--older-than", "0s", "--cause", rng.choice(causes), "--yes")
        case Act.KILL_RUN:
            raise AssertionError(act)
