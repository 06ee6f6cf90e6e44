"""The type of a table's columns, independent of Spark, Arrow and Protobuf.

A column is known by its *number*: the Protobuf field number it was made from, at its own level of nesting. Names are
for people; numbers decide which writer field fills which column (`demux.core.columns.schema_merge`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

# number of a column that no Protobuf field fills
NO_FIELD = 0


class Primitive(Enum):
    """A type without parts; the value is its name in a Spark schema."""

    BOOLEAN = "boolean"
    INT = "integer"
    BIGINT = "long"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL_20_0 = "decimal(20,0)"
    STRING = "string"
    BINARY = "binary"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class Array:
    """A list of values, never NULL inside."""

    element: ColumnType


@dataclass(frozen=True, slots=True)
class Map:
    """Unordered pairs with distinct keys."""

    key: Primitive
    value: ColumnType


@dataclass(frozen=True, slots=True)
class Struct:
    """Columns in order; no two names are equal when case is ignored."""

    columns: tuple[Column, ...]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def by_number(self) -> dict[int, Column]:
        """Return the columns that a Protobuf field fills, by that field's number."""
        return {column.number: column for column in self.columns if column.number != NO_FIELD}


@dataclass(frozen=True, slots=True)
class Column:
    """A named, nullable column and the Protobuf field number that it belongs to.

    Its comment is for people: columns that differ in it alone are equal.
    """

    name: str
    type: ColumnType
    number: int = NO_FIELD
    comment: str = field(default="", compare=False)


ColumnType = Primitive | Array | Map | Struct

# a struct without columns cannot be stored: this one replaces it, TRUE where the message is set
EMPTY_STRUCT = Struct((Column("_empty", Primitive.BOOLEAN, NO_FIELD),))


def sql_name(column_type: ColumnType) -> str:
    """Return the type as people write it in SQL, such as `ARRAY<BIGINT>`."""
    match column_type:
        case Primitive.INT:
            return "INT"
        case Primitive.BIGINT:
            return "BIGINT"
        case Primitive():
            return str(column_type.value).upper()
        case Array(element):
            return f"ARRAY<{sql_name(element)}>"
        case Map(key, value):
            return f"MAP<{sql_name(key)}, {sql_name(value)}>"
        case Struct(columns):
            return f"STRUCT<{', '.join(f'{c.name}: {sql_name(c.type)}' for c in columns)}>"


def unique_name(name: str, number: int, taken: set[str]) -> str:
    """Return `name`, or `name__<number>` where a name that differs only in case is taken.

    Args:
        number: the Protobuf field number, which tells equal names apart.
        taken: lower-case names in use at this level; the result is added to it.
    """
    candidate = name
    while candidate.lower() in taken:
        candidate = f"{candidate}__{number}"
    taken.add(candidate.lower())
    return candidate
