from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from demux.core.columns.arrow import arrow_type, project
from demux.core.columns.schema_merge import align
from demux.core.columns.types import Array, Column, ColumnType, Map, Primitive, Struct
from tests.support.data.column_types import structs, values
from tests.support.oracle import Row, arrow_rows


def expected(value: Any, writer: ColumnType, table: ColumnType) -> Any:
    """The writer's value as the table's column must hold it."""
    if value is None:
        return None
    match writer, table:
        case Struct(), Struct():
            numbers = {column.number: column for column in writer}
            return {
                column.name: expected(value[numbers[column.number].name], numbers[column.number].type, column.type)
                if column.number in numbers
                else None
                for column in table
            }
        case Array(mine), Array(theirs):
            return [expected(item, mine, theirs) for item in value]
        case Map(), Map():
            return [
                (expected(key, writer.key, table.key), expected(item, writer.value, table.value)) for key, item in value
            ]
        case _, Primitive.DECIMAL_20_0:
            return Decimal(value)
    return value


def in_arrow(rows: list[Any], columns: Struct) -> list[pa.Array]:
    return [pa.array([row[column.name] for row in rows], arrow_type(column.type)) for column in columns]


def projected(rows: list[Any], writer: Struct, table: Struct) -> list[Row]:
    """The rows after projection, each array checked for its type and for sound insides."""
    arrays = project(in_arrow(rows, writer), writer, table, len(rows))
    for array, column in zip(arrays, table, strict=True):
        array.validate(full=True)
        assert array.type == arrow_type(column.type)
    return arrow_rows(arrays, [column.name for column in table])


@pytest.mark.thorough
@given(st.data(), structs(), structs())
def test_every_value_comes_under_the_tables_name_and_type(data: st.DataObject, before: Struct, writer: Struct) -> None:
    alignment = align(before, writer)
    assume(not alignment.conflicts and alignment.columns.columns)
    rows = data.draw(st.lists(values(writer, nullable=False), max_size=4))
    assert projected(rows, writer, alignment.columns) == [expected(row, writer, alignment.columns) for row in rows]


@given(st.data(), structs(min_size=1), st.integers(0, 2), st.integers(0, 2))
def test_a_slice_of_a_batch_gives_its_own_rows(data: st.DataObject, writer: Struct, start: int, stop: int) -> None:
    rows = data.draw(st.lists(values(writer, nullable=False), min_size=3, max_size=4))
    table = align(Struct((Column("zz", Primitive.STRING, 9),)), writer).columns
    kept = rows[start : 2 + stop]
    arrays = [array.slice(start, len(kept)) for array in in_arrow(rows, writer)]
    got = arrow_rows(project(arrays, writer, table, len(kept)), [column.name for column in table])
    assert got == [expected(row, writer, table) for row in kept]


def test_a_column_that_the_writer_does_not_have_is_null_at_every_level() -> None:
    old = Struct((Column("x", Primitive.INT, 1),))
    new = Struct((*old, Column("y", Array(Primitive.STRING), 2)))
    writer = Struct(
        (Column("one", old, 1), Column("many", Array(old), 2), Column("by_name", Map(Primitive.STRING, old), 3))
    )
    table = align(
        Struct(()),
        Struct(
            (Column("one", new, 1), Column("many", Array(new), 2), Column("by_name", Map(Primitive.STRING, new), 3))
        ),
    )
    rows = [
        {"one": {"x": 1}, "many": [{"x": 2}, {"x": 3}], "by_name": [("k", {"x": 4})]},
        {"one": None, "many": [], "by_name": []},
    ]
    assert projected(rows, writer, table.columns) == [
        {
            "one": {"x": 1, "y": None},
            "many": [{"x": 2, "y": None}, {"x": 3, "y": None}],
            "by_name": [("k", {"x": 4, "y": None})],
        },
        {"one": None, "many": [], "by_name": []},
    ]


def test_a_null_list_stays_null_when_its_type_changes() -> None:
    writer = Struct((Column("l", Array(Primitive.INT), 1), Column("m", Map(Primitive.INT, Primitive.INT), 2)))
    table = Struct((Column("l", Array(Primitive.BIGINT), 1), Column("m", Map(Primitive.INT, Primitive.BIGINT), 2)))
    rows = [{"l": [1], "m": [(1, 2)]}, {"l": None, "m": None}, {"l": [], "m": []}]
    assert projected(rows, writer, table) == rows


def test_a_slice_of_lists_that_get_another_type_gives_its_own_rows() -> None:
    writer = Struct((Column("l", Array(Primitive.INT), 1), Column("m", Map(Primitive.INT, Primitive.INT), 2)))
    table = Struct((Column("l", Array(Primitive.BIGINT), 1), Column("m", Map(Primitive.INT, Primitive.BIGINT), 2)))
    rows = [{"l": [1], "m": [(1, 2)]}, {"l": None, "m": None}, {"l": [3, 4], "m": [(3, 4), (5, 6)]}]
    sliced = [array.slice(1) for array in in_arrow(rows, writer)]
    assert arrow_rows(project(sliced, writer, table, 2), ["l", "m"]) == rows[1:]


def test_narrow_numbers_fill_wide_columns_exactly() -> None:
    writer = Struct(
        (
            Column("a", Primitive.INT, 1),
            Column("b", Primitive.BIGINT, 2),
            Column("c", Primitive.FLOAT, 3),
            Column("d", Map(Primitive.INT, Primitive.INT), 4),
        )
    )
    table = Struct(
        (
            Column("D", Map(Primitive.BIGINT, Primitive.DOUBLE), 4),
            Column("C", Primitive.DOUBLE, 3),
            Column("B", Primitive.DECIMAL_20_0, 2),
            Column("A", Primitive.DECIMAL_20_0, 1),
        )
    )
    rows = [{"a": -(2**31), "b": 2**63 - 1, "c": 0.5, "d": [(7, 2**31 - 1)]}]
    assert projected(rows, writer, table) == [
        {"D": [(7, 2147483647.0)], "C": 0.5, "B": Decimal(2**63 - 1), "A": Decimal(-(2**31))}
    ]


def test_no_rows_give_empty_arrays_of_the_tables_types() -> None:
    table = Struct((Column("a", Array(Primitive.TIMESTAMP), 1), Column("b", Primitive.DECIMAL_20_0, 2)))
    assert [array.type for array in project([], Struct(()), table, 0)] == [arrow_type(c.type) for c in table]
