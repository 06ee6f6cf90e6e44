"""The oracle must not say yes to everything: every difference that matters is one."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.support.oracle import Json, Micros, arrow_rows, difference, plain


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ({"a": float("nan")}, {"a": float("nan")}),
        ({"m": {1: "a", 2: "b"}}, {"m": [(2, "b"), (1, "a")]}),
        ({"m": {}}, {"m": []}),
        ({"n": Decimal(5)}, {"n": 5}),
        ({"t": Micros(7)}, {"t": 7}),
        ({"j": Json('{"a": 1, "b": [1]}')}, {"j": '{"b": [1], "a": 1.0}'}),
        ({"l": [{"x": None}]}, {"l": [{"x": None}]}),
    ],
)
def test_the_same_value_in_another_guise_is_no_difference(expected: Any, got: Any) -> None:
    assert difference(expected, got) is None


@pytest.mark.parametrize(
    ("expected", "got", "path"),
    [
        ({"a": 0.0}, {"a": -0.0}, "row.a"),
        ({"a": 1}, {"a": True}, "row.a"),
        ({"a": 1}, {"a": 1.0}, "row.a"),
        ({"a": 0}, {"a": None}, "row.a"),
        ({"a": "1"}, {"a": b"1"}, "row.a"),
        ({"a": float("nan")}, {"a": 1.0}, "row.a"),
        ({"a": 1}, {"a": 1, "b": 2}, "row"),
        ({"m": {1: "a"}}, {"m": [(1, "a"), (1, "a")]}, "row.m"),
        ({"m": {1: "a"}}, {"m": [(1, "b")]}, "row.m.1"),
        ({"m": {}}, {"m": None}, "row.m"),
        ({"l": [1, 2]}, {"l": [2, 1]}, "row.l[0]"),
        ({"l": [1]}, {"l": [1, 1]}, "row.l"),
        ({"s": {"x": {"y": [1]}}}, {"s": {"x": {"y": [2]}}}, "row.s.x.y[0]"),
        ({"j": Json('{"a": 1}')}, {"j": '{"a": 2}'}, "row.j"),
        ({"j": Json("null")}, {"j": None}, "row.j"),
    ],
)
def test_what_differs_is_named_by_its_path(expected: Any, got: Any, path: str) -> None:
    said = difference(expected, got)
    assert said is not None
    assert said.partition(": ")[0] == path


def test_times_are_microseconds_over_the_whole_range_and_without_a_zone_they_are_utc() -> None:
    first, last = Micros(-62_135_596_800_000_000), Micros(253_402_300_799_999_999)
    array = pa.array([first, last], pa.timestamp("us", tz="UTC"))
    assert arrow_rows([array], ["t"]) == [{"t": first}, {"t": last}]
    assert plain(datetime(9999, 12, 31, 23, 59, 59, 999_999)) == last
    assert plain(datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))) == 0


def test_rows_of_spark_become_dicts_and_plain_bytes() -> None:
    class Row:
        def asDict(self, recursive: bool) -> dict[str, Any]:
            return {"b": bytearray(b"x"), "inner": None, "many": [{"t": datetime(1970, 1, 1)}]}

    assert plain(Row()) == {"b": b"x", "inner": None, "many": [{"t": 0}]}
