"""Freshness: how long a record took from its source's timestamp to a committed row of silver. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

BUCKETS_PER_OCTAVE = 8
# about two years; older rows count as so old
LAST_BUCKET = 36 * BUCKETS_PER_OCTAVE
# of which monitors tell the age
QUANTILES = (0.5, 0.95)
# how far back freshness is looked at
RECENT = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Freshness:
    """The ages that rows had when their table was committed, as a histogram with fixed log-spaced buckets.

    Bucket 0 has ages up to 1 ms, those of rows from the future included; bucket n has ages from 2^((n-1)/8) to
    2^(n/8) ms. Buckets are the same everywhere, so sketches of tasks, rounds and games are merged by addition, exactly;
    one of a round that follows its source has about ten numbers, however many rows it has. (t-digest and KLL are finer
    at the same size, but depend on the order of merging, and need a library. Quantiles alone cannot be merged.)

    A quantile is the geometric middle of its bucket: at most 4.5 % from the true one; at most 9.1 % where the ages were
    moved to the time of the commit by `later`.

    Attributes:
        first: the number of the first bucket that has rows.
        rows: how many rows each bucket has, from the first to the last one that has any; none without rows.
    """

    first: int = 0
    rows: tuple[int, ...] = ()

    @staticmethod
    def of(counts: Mapping[int, int]) -> Freshness:
        """Return the sketch with these rows, by number of the bucket."""
        found = [bucket for bucket, rows in counts.items() if rows]
        if not found:
            return NO_FRESHNESS
        first = min(found)
        return Freshness(first, tuple(counts.get(bucket, 0) for bucket in range(first, max(found) + 1)))

    @staticmethod
    def from_column(values: Sequence[int] | None) -> Freshness:
        """Return the sketch that `to_column` wrote; none for NULL."""
        return Freshness(values[0], tuple(values[1:])) if values else NO_FRESHNESS

    def to_column(self) -> list[int] | None:
        """Return it as the table of rounds has it: the first bucket, then the rows of each; NULL without rows."""
        return [self.first, *self.rows] if self.rows else None

    def later(self, seconds: float) -> Freshness:
        """Return the ages of the same rows so many seconds later."""
        counts: Counter[int] = Counter()
        for bucket, rows in enumerate(self.rows, self.first):
            counts[bucket_of(_middle_s(bucket) + seconds)] += rows
        return Freshness.of(counts)

    def quantile_s(self, share: float) -> float | None:
        """Return the age that this share of the rows has at most, in seconds; None without rows."""
        wanted, seen = share * sum(self.rows), 0
        for bucket, rows in enumerate(self.rows, self.first):
            seen += rows
            if rows and seen >= wanted:
                return _middle_s(bucket)
        return None

    @property
    def p50_s(self) -> float | None:
        """The median age, in seconds."""
        return self.quantile_s(0.5)

    @property
    def p95_s(self) -> float | None:
        """The age that 95 % of the rows have at most, in seconds."""
        return self.quantile_s(0.95)


NO_FRESHNESS = Freshness()


def merge(sketches: Iterable[Freshness]) -> Freshness:
    """Return the freshness of the rows of all of them."""
    counts: Counter[int] = Counter()
    for sketch in sketches:
        for bucket, rows in enumerate(sketch.rows, sketch.first):
            counts[bucket] += rows
    return Freshness.of(counts)


def bucket_of(age_s: float) -> int:
    """Return the number of the bucket that an age belongs to."""
    age_ms = age_s * 1000
    if age_ms <= 1:
        return 0
    return min(LAST_BUCKET, math.ceil(math.log2(age_ms) * BUCKETS_PER_OCTAVE))


def _middle_s(bucket: int) -> float:
    return 2 ** ((bucket - 0.5) / BUCKETS_PER_OCTAVE) / 1000
