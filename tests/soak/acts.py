"""What is done to a root while it runs: drawn by chance, told by a seed. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum


class Act(Enum):
    """A kind of thing that happens."""

    MAINTAIN = "maintain"
    FORGET = "forget"
    BACKFILL = "backfill"
    REPLAY = "replay"
    KILL_RUN = "kill the run"


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing that happens.

    Attributes:
        act: its kind.
        words: the command, without root; none where it is no command.
        kill_after_s: kill it so long after its start, then give it again; None: let it end.
        forgets: the person whom it makes forgotten.
    """

    act: Act
    words: tuple[str, ...] = ()
    kill_after_s: float | None = None
    forgets: str | None = None


@dataclass(frozen=True, slots=True)
class Odds:
    """How rough it gets.

    Attributes:
        killed: the share of commands that are killed.
        kill_within_s: a command is killed at a moment from its start to so long after.
        acts: what may happen.
    """

    killed: float = 0.5
    kill_within_s: float = 30.0
    acts: tuple[Act, ...] = tuple(Act)


def deeds(rng: random.Random, odds: Odds, days: Sequence[str], person: Callable[[], str | None]) -> Iterator[Deed]:
    """Yield for ever what happens next; each act happens once before one happens again.

    Args:
        rng: the chance.
        odds: how rough it gets.
        days: days that backfills are of, the first and the last one.
        person: says who asks to be forgotten; None while there is nobody.
    """
    while True:
        for act in rng.sample(odds.acts, len(odds.acts)):
            kill_after_s = rng.uniform(0, odds.kill_within_s) if rng.random() < odds.killed else None
            match act:
                case Act.KILL_RUN:
                    yield Deed(act)
                case Act.FORGET:
                    if (name := person()) is not None:
                        yield Deed(act, forget(name), kill_after_s, name)
                case _:
                    yield Deed(act, _words(act, rng, days), kill_after_s)


def forget(person: str) -> tuple[str, ...]:
    """Return the command that forgets a person, with what nobody can read."""
    return ("forget", "--where", f"user_name = '{person}'", "--unreadable-too", "--yes")


def _words(act: Act, rng: random.Random, days: Sequence[str]) -> tuple[str, ...]:
    match act:
        case Act.MAINTAIN:
            # removes all that nobody needs any more, at once
            return ("maintain", "--set", "maintain.keep=0s", "--force") if rng.random() < 0.7 else ("maintain",)
        case Act.BACKFILL:
            return ("backfill", "--from", days[0], "--to", days[-1])
        case Act.REPLAY:
            return ("quarantine", "replay")
        case Act.FORGET | Act.KILL_RUN:
            raise AssertionError(act)
