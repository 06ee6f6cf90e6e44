"""What a game costs in a round, from what its rounds did cost. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Load:
    """What a game costs in a round in which it has something to do.

    Attributes:
        rows: rows of bronze that it reads.
        seconds: how long its task takes; None where only the rows are known.
    """

    rows: float
    seconds: float | None


def usual_load(rounds: Sequence[Load]) -> Load:
    """Return the median of a game's rounds, of rows and of seconds: the one round of a long history counts for little.

    Args:
        rounds: at least one.
    """
    seconds = [load.seconds for load in rounds if load.seconds is not None]
    return Load(median(load.rows for load in rounds), median(seconds) if seconds else None)
