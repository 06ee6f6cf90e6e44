"""How many rows go to Python at once, and small batches made one."""

from __future__ import annotations

from itertools import chain

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.columns.arrow import MAX_BATCH_BYTES, MAX_BATCH_ROWS
from demux.core.spark.map_in_arrow import Sizes, merge_small_batches, rows_per_batch

MIB = 2**20


@pytest.mark.parametrize(
    ("sizes", "rows"),
    [
        (Sizes(), 10_000),
        (Sizes(6_000, 0), 10_000),
        # a few large ones among small ones
        (Sizes(10 * MIB, 60 * MIB), 10_000),
        (Sizes(10 * MIB, 1_000 * MIB), 6),
        (Sizes(MIB, 1_000 * MIB), 64),
        (Sizes(7_000, 1_000 * MIB), 9_586),
        (Sizes(100 * MIB, 100 * MIB), 1),
        (Sizes(2_000 * MIB, 4_000 * MIB), 1),
    ],
)
def test_a_batch_has_10_000_rows_or_as_few_as_fit_into_memory(sizes: Sizes, rows: int) -> None:
    assert rows_per_batch(sizes) == rows


@given(st.lists(st.integers(1, 200 * MIB), min_size=1))
def test_no_batch_but_of_one_row_is_larger_than_twice_the_limit(records: list[int]) -> None:
    small = MAX_BATCH_BYTES // MAX_BATCH_ROWS
    sizes = Sizes(max(records), sum(size for size in records if size > small))
    rows = rows_per_batch(sizes)
    # the worst batch: all large ones that fit, then small ones
    worst = sum(sorted(records, reverse=True)[:rows])
    assert rows == 1 or worst <= 2 * MAX_BATCH_BYTES


def test_the_sizes_of_two_frames_are_those_of_both() -> None:
    assert Sizes(5, 10) | Sizes(7, 1) == Sizes(7, 11)


def numbers(start: int, count: int, size: int = 1) -> pa.RecordBatch:
    columns = {
        "n": pa.array(range(start, start + count), pa.int64()),
        "b": pa.array([b"x" * size] * count, pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


@given(st.lists(st.integers(0, 6_000)))
def test_gathered_rows_are_the_same_in_order_in_batches_that_are_worth_their_price(lengths: list[int]) -> None:
    starts = [sum(lengths[:at]) for at in range(len(lengths))]
    batches = list(merge_small_batches(numbers(start, count) for start, count in zip(starts, lengths, strict=True)))
    assert list(chain.from_iterable(batch.column("n").to_pylist() for batch in batches)) == list(range(sum(lengths)))
    assert all(len(batch) >= MAX_BATCH_ROWS for batch in batches[:-1])
    assert all(0 < len(batch) < 2 * MAX_BATCH_ROWS for batch in batches)


def test_a_batch_that_is_large_enough_is_passed_on_as_it_is_and_at_once() -> None:
    taken: list[int] = []

    def batches() -> object:
        for batch in (numbers(0, 10_000), numbers(0, 3, MAX_BATCH_BYTES // 2), numbers(0, 1)):
            taken.append(len(batch))
            yield batch

    results = merge_small_batches(batches())  # type: ignore[arg-type]
    assert len(next(results)) == 10_000
    assert taken == [10_000]
    assert len(next(results)) == 3
    assert taken == [10_000, 3]
    assert [len(batch) for batch in results] == [1]
