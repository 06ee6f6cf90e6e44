"""What the example of sessions decides before anything is read or written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType, TimestampType

from docs.examples.sessions import SessionSpec, next_watermark, require_columns

US = 1_000_000
moments = st.none() | st.integers(-62_135_596_800 * US, 253_402_300_799 * US)


@pytest.mark.parametrize(
    ("before", "newest", "watermark"),
    [
        (None, None, None),
        (None, 600 * US, 540 * US),
        (500 * US, 600 * US, 540 * US),
        (590 * US, 600 * US, 590 * US),
        (590 * US, None, 590 * US),
        # a clock that is ahead counts as now
        (None, 5000 * US, 940 * US),
    ],
)
def test_the_watermark_is_the_lateness_before_the_newest_event(
    before: int | None, newest: int | None, watermark: int | None
) -> None:
    assert next_watermark(before, newest, 1000 * US, 60) == watermark


@given(st.lists(st.tuples(moments, st.integers(0, 10**8))), st.integers(0, 253_402_300_799 * US))
def test_the_watermark_never_decreases_and_never_passes_the_clock(
    batches: list[tuple[int | None, int]], now: int
) -> None:
    watermark = None
    for newest, lateness_s in batches:
        after = next_watermark(watermark, newest, now, lateness_s)
        assert (after is None) == (watermark is None and newest is None)
        assert after is None or watermark is None or after >= watermark
        watermark = after
    assert watermark is None or watermark <= now


def silver(**kinds: DataType) -> StructType:
    own = {"user_name": StringType(), "score": LongType(), "_timestamp": TimestampType()}
    return StructType([StructField(name, kind) for name, kind in {**own, **kinds}.items()])


def test_columns_that_exist_and_a_timestamp_suit() -> None:
    require_columns(silver(at=TimestampType()), SessionSpec(("user_name", "score"), 60, "at"))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (SessionSpec(("user_nam",), 60), "no column user_nam. Its columns: user_name, score, _timestamp."),
        (SessionSpec(("user_name",), 60, "score"), "The column score is no timestamp. These are: _timestamp."),
    ],
)
def test_other_columns_are_refused_and_the_message_names_those_that_suit(spec: SessionSpec, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        require_columns(silver(), spec)
