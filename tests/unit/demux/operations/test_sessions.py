"""What is decided of sessions before anything is read or written."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from demux.core.errors import SettingsInvalid
from demux.operations.sessions import SessionSpec, next_watermark, require_columns

MINUTE = timedelta(minutes=1)
US = 1_000_000
moments = st.none() | st.integers(-62_135_596_800 * US, 253_402_300_799 * US)
lengths = st.timedeltas(timedelta(0), timedelta(days=3650))


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
def test_the_watermark_is_so_much_before_the_newest_event(
    before: int | None, newest: int | None, watermark: int | None
) -> None:
    assert next_watermark(before, newest, 1000 * US, MINUTE) == watermark


@given(st.lists(st.tuples(moments, lengths)), st.integers(0, 253_402_300_799 * US))
def test_the_watermark_never_goes_back_and_never_passes_the_clock(
    batches: list[tuple[int | None, timedelta]], now: int
) -> None:
    watermark = None
    for newest, lateness in batches:
        after = next_watermark(watermark, newest, now, lateness)
        if watermark is not None:
            assert after is not None
            assert after >= watermark
        assert (after is None) == (watermark is None and newest is None)
        watermark = after
    assert watermark is None or watermark <= now


def silver(**kinds: DataType) -> StructType:
    own = {"user_name": StringType(), "score": LongType(), "_timestamp": TimestampType()}
    return StructType([StructField(name, kind) for name, kind in {**own, **kinds}.items()])


def test_columns_of_one_value_and_a_time_will_do() -> None:
    spec = SessionSpec("chess", ("user_name", "score"), MINUTE, "at")
    require_columns(silver(at=TimestampType()), spec)


@pytest.mark.parametrize(
    ("spec", "cause", "remedy"),
    [
        (
            SessionSpec("chess", ("user_nam",), MINUTE),
            "Sessions of 'chess': --by 'user_nam': the table has no such column.",
            "Did you mean user_name?",
        ),
        (
            SessionSpec("chess", ("zzz\x1b[0m",), MINUTE),
            r"Sessions of 'chess': --by 'zzz\x1b[0m': the table has no such column.",
            "Its columns: user_name, score, _timestamp, tags, points, place, events.",
        ),
        (
            SessionSpec("chess", ("tags",), MINUTE),
            "Sessions of 'chess': --by 'tags': the column holds more than one value.",
            "Name a column of texts, numbers, times or the like.",
        ),
        (
            SessionSpec("chess", ("points",), MINUTE),
            "Sessions of 'chess': --by 'points': the column holds more than one value.",
            "Name a column of texts, numbers, times or the like.",
        ),
        (
            SessionSpec("chess", ("place",), MINUTE),
            "Sessions of 'chess': --by 'place': the column holds more than one value.",
            "Name a column of texts, numbers, times or the like.",
        ),
        (
            SessionSpec("chess", ("events",), MINUTE),
            "Sessions of 'chess': --by 'events': a table of sessions has a column of that name.",
            "Name another column.",
        ),
        (
            SessionSpec("chess", ("user_name",), MINUTE, "score"),
            "Sessions of 'chess': --time 'score': the column holds no times.",
            "These do: _timestamp.",
        ),
    ],
)
def test_other_columns_are_refused_and_the_remedy_names_some(spec: SessionSpec, cause: str, remedy: str) -> None:
    kinds: dict[str, DataType] = {
        "tags": ArrayType(StringType()),
        "points": MapType(StringType(), IntegerType()),
        "place": StructType(),
        "events": IntegerType(),
    }
    with pytest.raises(SettingsInvalid) as raised:
        require_columns(silver(**kinds), spec)
    assert (raised.value.cause, raised.value.remedy) == (cause, remedy)
