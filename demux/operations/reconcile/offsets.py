"""The offsets of games and of bronze that the ledger compares with; and holes in Kafka's offsets. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from demux.operations.reconcile.balance import OffsetHole

# a topic's log and a partition of it; the log is `name@2` for the second topic of this name
Part = tuple[str, int]
Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class GameOffset:
    """The offset of a game in bronze.

    Attributes:
        version: all commits of bronze before this one are read, whole.
        reader: who reads on from there, such as the id of a stream; a rebuild gives the game another one.
    """

    version: int
    reader: str


@dataclass(frozen=True, slots=True)
class SourceOffsets:
    """The offset of the stream that fills bronze.

    Attributes:
        writer: the stream's id, which its commits to bronze carry; None where it is lost.
        version: of that table, the last version that is read whole; None for none.
        begins: of topics' partitions, the first offset that was asked for, where that is known.
        ends: of topics' partitions, the offset behind the last one that was read.
        given_up: ranges of offsets that were lost before they were read, and given up.
    """

    writer: str | None
    table: str | None = None
    version: int | None = None
    begins: Mapping[Part, int] = field(default_factory=dict)
    ends: Mapping[Part, int] = field(default_factory=dict)
    given_up: Mapping[Part, Sequence[Range]] = field(default_factory=dict)


# by the game's key; a game with no offset, or an unknown one, has none
OffsetsReader = Callable[[Collection[str]], Mapping[str, GameOffset]]


def unchanged_offsets(before: Mapping[str, GameOffset], after: Mapping[str, GameOffset]) -> dict[str, int]:
    """Return the version that each game's tables surely have all rows of, whatever happened between two looks.

    A game that was rebuilt in between has no offset.
    """
    same = (key for key in before if key in after and before[key].reader == after[key].reader)
    return {key: min(before[key].version, after[key].version) for key in same}


@dataclass(frozen=True, slots=True)
class SeenOffsets:
    """The offsets of a partition that are in bronze or quarantine."""

    first: int
    last: int
    offsets: int
    inner: tuple[Range, ...] = ()


def holes(seen: Mapping[Part, SeenOffsets], offsets: SourceOffsets, most: int) -> tuple[OffsetHole, ...]:
    """Return the offsets that are not there, by partition, each with its first `most` ranges.

    Before the first offset that is there, only where it is known with which one the stream began; behind the last one,
    only where it is known how far it was read.
    """
    found = (_hole(part, seen.get(part), offsets, most) for part in sorted({*seen, *offsets.ends}))
    return tuple(hole for hole in found if hole is not None)


def _hole(part: Part, seen: SeenOffsets | None, offsets: SourceOffsets, most: int) -> OffsetHole | None:
    given_up = offsets.given_up.get(part, ())
    begin, end = offsets.begins.get(part), offsets.ends.get(part)
    if seen is None:
        ranges = [(begin, end)] if begin is not None and end is not None and begin < end else []
        inner_missing = 0
    else:
        ranges = [(begin, seen.first)] if begin is not None and begin < seen.first else []
        ranges += seen.inner
        ranges += [(seen.last + 1, end)] if end is not None and seen.last + 1 < end else []
        inner_missing = seen.last - seen.first + 1 - seen.offsets
    listed = 0 if seen is None else sum(last - first for first, last in seen.inner)
    left = [one for span in ranges for one in _without(span, given_up)]
    # ranges that are too many to list still count
    count = sum(last - first for first, last in left) + inner_missing - listed
    return OffsetHole(*part, count, tuple(left[:most])) if count > 0 else None


def _without(span: Range, given_up: Sequence[Range]) -> list[Range]:
    """Return the rest of a range without the others."""
    left, begin = [], span[0]
    for first, end in sorted(given_up):
        if end <= begin or first >= span[1]:
            continue
        if first > begin:
            left.append((begin, first))
        begin = max(begin, end)
    return [*left, (begin, span[1])] if begin < span[1] else left
