"""Hypothesis strategies for columns and for values that fit into them. Free of Spark."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from demux.core.columns.types import EMPTY_STRUCT, Array, Column, ColumnType, Map, Primitive, Struct

KEYS = (Primitive.BOOLEAN, Primitive.INT, Primitive.BIGINT, Primitive.DECIMAL_20_0, Primitive.STRING)

_VALUES: dict[Primitive, st.SearchStrategy[Any]] = {
    Primitive.BOOLEAN: st.booleans(),
    Primitive.INT: st.integers(-(2**31), 2**31 - 1),
    Primitive.BIGINT: st.integers(-(2**63), 2**63 - 1),
    Primitive.FLOAT: st.floats(allow_nan=False, width=32),
    Primitive.DOUBLE: st.floats(allow_nan=False),
    Primitive.DECIMAL_20_0: st.integers(0, 2**64 - 1).map(Decimal),
    Primitive.STRING: st.text(max_size=5),
    Primitive.BINARY: st.binary(max_size=5),
    Primitive.TIMESTAMP: st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999),
}


def column_types(depth: int = 2) -> st.SearchStrategy[ColumnType]:
    """Types as deep as that many levels of structs, lists and maps."""
    primitives = st.sampled_from(list(Primitive))
    if depth == 0:
        return primitives
    inside = column_types(depth - 1)
    return st.one_of(
        primitives,
        st.builds(Array, inside),
        st.builds(Map, st.sampled_from(KEYS), inside),
        st.just(EMPTY_STRUCT),
        structs(depth - 1, min_size=1),
    )


@st.composite
def structs(draw: st.DrawFn, depth: int = 2, min_size: int = 0) -> Struct:
    """Columns with numbers from a short range, so that two of them often meet, and names that differ in lower case."""
    numbers = draw(st.lists(st.integers(1, 5), unique=True, min_size=min_size, max_size=3))
    names = draw(
        st.lists(
            st.text("abAB", min_size=1, max_size=2), unique_by=str.lower, min_size=len(numbers), max_size=len(numbers)
        )
    )
    return Struct(
        tuple(Column(name, draw(column_types(depth)), number) for name, number in zip(names, numbers, strict=True))
    )


def values(column_type: ColumnType, nullable: bool = True) -> st.SearchStrategy[Any]:
    """Python values of the type; lists and maps hold no None, as Protobuf's do."""
    made: st.SearchStrategy[Any]
    match column_type:
        case Primitive():
            made = _VALUES[column_type]
        case Array(element):
            made = st.lists(values(element, nullable=False), max_size=3)
        case Map(key, value):
            pairs = st.tuples(_VALUES[key], values(value, nullable=False))
            made = st.lists(pairs, max_size=3, unique_by=lambda pair: pair[0])
        case Struct(columns):
            made = st.fixed_dictionaries({column.name: values(column.type) for column in columns})
    return st.none() | made if nullable else made
