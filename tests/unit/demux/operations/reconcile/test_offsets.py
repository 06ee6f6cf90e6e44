from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from demux.operations.reconcile.balance import OffsetHole
from demux.operations.reconcile.offsets import (
    GameOffset,
    Range,
    SeenOffsets,
    SourceOffsets,
    holes,
    unchanged_offsets,
)

PART = ("t", 0)


def seen_of(offsets: set[int]) -> SeenOffsets:
    """What Spark finds of a partition."""
    ordered = sorted(offsets)
    inner = tuple((one + 1, other) for one, other in pairwise(ordered) if other > one + 1)
    return SeenOffsets(ordered[0], ordered[-1], len(ordered), inner)


def test_what_both_looks_agree_on_counts_and_the_lower_one_wins() -> None:
    before = {"a": GameOffset(5, "q1"), "b": GameOffset(5, "q1"), "c": GameOffset(5, "q1"), "d": GameOffset(9, "q1")}
    after = {"a": GameOffset(7, "q1"), "b": GameOffset(7, "q2"), "d": GameOffset(4, "q1"), "e": GameOffset(1, "q1")}
    assert unchanged_offsets(before, after) == {"a": 5, "d": 4}


def test_a_partition_without_holes_is_not_told_of() -> None:
    offsets = SourceOffsets("q", begins={PART: 3}, ends={PART: 9})
    assert holes({PART: seen_of(set(range(3, 9)))}, offsets, 20) == ()


def test_holes_at_the_beginning_inside_and_at_the_end_are_told_with_their_ranges() -> None:
    offsets = SourceOffsets("q", begins={PART: 0}, ends={PART: 10})
    assert holes({PART: seen_of({2, 3, 6, 7})}, offsets, 20) == (OffsetHole("t", 0, 6, ((0, 2), (4, 6), (8, 10))),)


def test_a_hole_of_one_offset_is_told_wherever_it_is() -> None:
    offsets = SourceOffsets("q", begins={PART: 0}, ends={PART: 7})
    assert holes({PART: seen_of({1, 2, 4, 5})}, offsets, 20) == (OffsetHole("t", 0, 3, ((0, 1), (3, 4), (6, 7))),)


def test_without_a_known_beginning_or_end_only_what_is_inside_can_be_told() -> None:
    assert holes({PART: seen_of({2, 4})}, SourceOffsets("q"), 20) == (OffsetHole("t", 0, 1, ((3, 4),)),)


def test_a_partition_of_which_nothing_is_there_is_one_hole() -> None:
    offsets = SourceOffsets("q", begins={PART: 4, ("t", 1): 0}, ends={PART: 6, ("t", 1): 0})
    assert holes({}, offsets, 20) == (OffsetHole("t", 0, 2, ((4, 6),)),)


def test_ranges_that_were_given_up_are_no_holes() -> None:
    offsets = SourceOffsets("q", begins={PART: 0}, ends={PART: 10}, given_up={PART: [(5, 7), (0, 2)]})
    assert holes({PART: seen_of({2, 3, 8, 9})}, offsets, 20) == (OffsetHole("t", 0, 2, ((4, 5), (7, 8))),)


def test_more_holes_than_are_listed_still_count() -> None:
    offsets = SourceOffsets("q", begins={PART: 0}, ends={PART: 9})
    listed = SeenOffsets(0, 8, 5, ((1, 2), (3, 4)))
    assert holes({PART: listed}, offsets, 1) == (OffsetHole("t", 0, 4, ((1, 2),)),)


@given(
    st.sets(st.integers(0, 30), min_size=1),
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 6)), max_size=4),
)
def test_holes_are_exactly_the_offsets_that_are_nowhere(seen: set[int], lost: list[tuple[int, int]]) -> None:
    given_up: list[Range] = [(first, first + length) for first, length in lost]
    offsets = SourceOffsets("q", begins={PART: 0}, ends={PART: 31}, given_up={PART: given_up})
    gone = {offset for first, end in given_up for offset in range(first, end)}
    expected = set(range(31)) - seen - gone
    found = holes({PART: seen_of(seen)}, offsets, 100)
    assert {offset for hole in found for first, end in hole.ranges for offset in range(first, end)} == expected
    assert sum(hole.offsets for hole in found) == len(expected)
