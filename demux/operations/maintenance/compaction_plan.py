"""Which of a table's files are joined or sorted again, and what that gives. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

# fewer small files in a partition are not worth a rewrite
_FEW = 4
# what came since the last order, as a share of all bytes: ordering rewrites all of them
_UNORDERED_SHARE = 4


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A file of a table as it is now.

    Attributes:
        partition: the value of the table's partition column; None without one.
        is_ascii: whether its path in the log has no other letters.
    """

    partition: str | None
    bytes: int
    written_ms: int
    is_ascii: bool = True


@dataclass(frozen=True, slots=True)
class Joining:
    """Small files that are to be joined."""

    partition: str | None
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class LastSort:
    """The last sort of a table."""

    columns: tuple[str, ...]
    at_ms: int


def joinings(files: Iterable[LiveFile], target: int) -> tuple[Joining, ...]:
    """Return the partitions with at least 4 files of less than half the target, those with most of them first."""
    small: defaultdict[str | None, list[int]] = defaultdict(list)
    for file in files:
        if 2 * file.bytes < target:
            small[file.partition].append(file.bytes)
    found = (Joining(value, len(sizes), sum(sizes)) for value, sizes in small.items() if len(sizes) >= _FEW)
    return tuple(sorted(found, key=lambda one: (-one.files, one.partition or "")))


def files_after(joined: Iterable[Joining], target: int) -> int:
    """Return about how many files these partitions' small ones become."""
    return sum(max(1, -(-one.bytes // target)) for one in joined)


def steps(joinings: Sequence[Joining], most_bytes: int) -> tuple[tuple[Joining, ...], ...]:
    """Return the partitions in groups of at most so many bytes, one at least in each."""
    groups: list[list[Joining]] = []
    size = 0
    for one in joinings:
        if not groups or size + one.bytes > most_bytes:
            groups.append([])
            size = 0
        groups[-1].append(one)
        size += one.bytes
    return tuple(tuple(group) for group in groups)


def is_out_of_order(files: Collection[LiveFile], columns: tuple[str, ...], last: LastSort | None) -> bool:
    """Return whether the table must be sorted by these columns: never sorted, or a quarter of its bytes is newer.

    A table of a single file is in order when that was made by ordering.
    """
    if not columns or not files:
        return False
    if last is None or last.columns != columns:
        return True
    new = sum(file.bytes for file in files if file.written_ms > last.at_ms)
    return new * _UNORDERED_SHARE >= sum(file.bytes for file in files) and new > 0
