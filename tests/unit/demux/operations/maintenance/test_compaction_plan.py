"""Which files are joined: few of the large, all of the small, and none of a table that has nothing to do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.operations.maintenance.compaction_plan import (
    Joining,
    LastSort,
    LiveFile,
    files_after,
    is_out_of_order,
    joinings,
    steps,
)

TARGET = 1000
files = st.lists(
    st.builds(LiveFile, st.sampled_from([None, "", "chess", "将棋"]), st.integers(0, 3 * TARGET), st.integers(0, 9)),
    max_size=40,
)
found = st.lists(st.builds(Joining, st.none() | st.text(max_size=3), st.integers(4, 99), st.integers(0, 9000)))


def live(*sizes: int, partition: str | None = None, written_ms: int = 0) -> list[LiveFile]:
    return [LiveFile(partition, size, written_ms) for size in sizes]


def test_partitions_with_four_small_files_are_joined_those_with_most_of_them_first() -> None:
    table = [
        *live(1, 2, 3, 499, partition="go"),
        *live(*[10] * 5, 500, 999, 5000, partition="chess"),
        *live(1, 1, 1, 500, 500, 500, partition="tag"),
        *live(1, 2, 3, 4, partition="card"),
    ]
    assert joinings(table, TARGET) == (Joining("chess", 5, 50), Joining("card", 4, 10), Joining("go", 4, 505))
    assert joinings(live(1, 2, 3, 4), TARGET) == (Joining(None, 4, 10),)


@given(files)
def test_a_partition_has_three_small_files_at_most_or_is_joined(table: list[LiveFile]) -> None:
    joined = {one.partition: one for one in joinings(table, TARGET)}
    for partition in {file.partition for file in table}:
        small = [file.bytes for file in table if file.partition == partition and 2 * file.bytes < TARGET]
        assert (partition in joined) == (len(small) >= 4)
        if partition in joined:
            assert (joined[partition].files, joined[partition].bytes) == (len(small), sum(small))
            assert files_after([joined[partition]], TARGET) < len(small)


def test_small_files_become_as_many_as_their_bytes_fill_and_one_at_least() -> None:
    sizes = [Joining(None, 4, 0), Joining(None, 4, 1000), Joining(None, 4, 1001)]
    assert [files_after([one], TARGET) for one in sizes] == [1, 1, 2]
    assert files_after(sizes, TARGET) == 4


def test_what_is_written_in_a_step_is_no_more_than_asked_for_but_for_one_that_is() -> None:
    big, small = Joining("big", 9, 900), Joining("small", 4, 50)
    assert steps([big, small, small], 100) == ((big,), (small, small))
    assert steps([small, small, small], 100) == ((small, small), (small,))
    assert steps([], 100) == ()


@given(found, st.integers(1, 20_000))
def test_steps_leave_nothing_out_and_keep_the_order(partitions: list[Joining], most: int) -> None:
    groups = steps(partitions, most)
    assert [one for group in groups for one in group] == partitions
    assert all(group and (len(group) == 1 or sum(one.bytes for one in group) <= most) for group in groups)


@pytest.mark.parametrize(
    ("table", "columns", "last", "is_due"),
    [
        (live(5, 5), (), None, False),
        ([], ("a",), None, False),
        (live(5, 5), ("a",), None, True),
        (live(5, 5), ("a",), LastSort(("b",), 9), True),
        (live(5, 5, written_ms=8), ("a",), LastSort(("a",), 9), False),
        ([*live(80, written_ms=8), *live(20, written_ms=10)], ("a",), LastSort(("a",), 9), False),
        ([*live(75, written_ms=8), *live(25, written_ms=10)], ("a",), LastSort(("a",), 9), True),
        (live(0, 0, written_ms=8), ("a",), LastSort(("a",), 9), False),
    ],
    ids=["no columns", "empty", "never", "others", "nothing new", "a fifth", "a quarter", "no bytes"],
)
def test_rows_are_brought_together_when_that_never_was_or_a_quarter_of_them_is_new(
    table: list[LiveFile], columns: tuple[str, ...], last: LastSort | None, is_due: bool
) -> None:
    assert is_out_of_order(table, columns, last) is is_due
