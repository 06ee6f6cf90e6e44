from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.columns.types import (
    EMPTY_STRUCT,
    NO_FIELD,
    Array,
    Column,
    ColumnType,
    Map,
    Primitive,
    Struct,
    sql_name,
    unique_name,
)


@pytest.mark.parametrize(
    ("column_type", "name"),
    [
        (Primitive.BOOLEAN, "BOOLEAN"),
        (Primitive.INT, "INT"),
        (Primitive.BIGINT, "BIGINT"),
        (Primitive.FLOAT, "FLOAT"),
        (Primitive.DOUBLE, "DOUBLE"),
        (Primitive.DECIMAL_20_0, "DECIMAL(20,0)"),
        (Primitive.STRING, "STRING"),
        (Primitive.BINARY, "BINARY"),
        (Primitive.TIMESTAMP, "TIMESTAMP"),
        (Array(Array(Primitive.BIGINT)), "ARRAY<ARRAY<BIGINT>>"),
        (Map(Primitive.STRING, Primitive.INT), "MAP<STRING, INT>"),
        (
            Struct((Column("a", Primitive.INT, 1), Column("b", EMPTY_STRUCT, 2))),
            "STRUCT<a: INT, b: STRUCT<_empty: BOOLEAN>>",
        ),
    ],
)
def test_a_type_is_written_as_in_sql(column_type: ColumnType, name: str) -> None:
    assert sql_name(column_type) == name


def test_columns_that_no_field_fills_have_no_number() -> None:
    struct = Struct((Column("a", Primitive.INT, 7), Column("_schema_id", Primitive.INT, NO_FIELD)))
    assert struct.by_number() == {7: Column("a", Primitive.INT, 7)}
    assert [column.name for column in struct] == ["a", "_schema_id"]


@pytest.mark.parametrize(
    ("name", "taken", "expected"),
    [
        ("Name", set(), "Name"),
        ("Name", {"name"}, "Name__3"),
        ("NAME", {"name", "name__3"}, "NAME__3__3"),
        ("name__3", {"name"}, "name__3"),
    ],
)
def test_a_name_gets_its_number_only_where_it_is_taken(name: str, taken: set[str], expected: str) -> None:
    assert unique_name(name, 3, taken) == expected
    assert expected.lower() in taken


@given(st.lists(st.text("abAB_1", min_size=1, max_size=4)))
def test_names_given_one_after_the_other_differ_in_lower_case(names: list[str]) -> None:
    taken: set[str] = set()
    given = [unique_name(name, number, taken) for number, name in enumerate(names, start=1)]
    assert len({name.lower() for name in given}) == len(names)
    assert all(result.startswith(name) for name, result in zip(names, given, strict=True))
