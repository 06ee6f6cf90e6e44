"""How the columns of one schema version fit into a game's table: by field number, at every level of nesting.

Nothing is guessed: a column is kept, widened, added, or in conflict. A writer's narrower number goes into a wider
column, and a writer's wider one makes the column wider; a renamed field keeps filling its column, under the name that
the table knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from demux.core.columns.types import (
    EMPTY_STRUCT,
    Array,
    Column,
    ColumnType,
    Map,
    Primitive,
    Struct,
    sql_name,
    unique_name,
)

# what a column may become, without loss and without another kind of number
_WIDENS_TO = {
    Primitive.INT: {Primitive.BIGINT, Primitive.DECIMAL_20_0},
    Primitive.BIGINT: {Primitive.DECIMAL_20_0},
    Primitive.FLOAT: {Primitive.DOUBLE},
}
# what a column that is there takes besides, without loss
_TAKES = {Primitive.DOUBLE: {Primitive.INT}}


@dataclass(frozen=True, slots=True)
class Alignment:
    """A table's payload columns after a writer's columns were fitted in.

    Attributes:
        columns: the table's columns, wider ones in their place, the added ones last at their level.
        added: dotted paths of the added columns, in order.
        conflicts: a sentence for each field that does not fit; `columns` are then the table's own.
        widened: dotted paths of the columns that become wider, in order.
    """

    columns: Struct
    added: tuple[str, ...]
    conflicts: tuple[str, ...]
    widened: tuple[str, ...] = ()

    @property
    def changes(self) -> tuple[str, ...]:
        """The changes of the table, each as a part of a sentence."""
        types = dict(_paths(self.columns, ""))
        widened = (f"makes column {path} {sql_name(types[path])}" for path in self.widened)
        return (*widened, *(f"adds column {path} {sql_name(types[path])}" for path in self.added))


def align(table: Struct, writer: Struct, reserved: frozenset[str] = frozenset()) -> Alignment:
    """Return how the writer's columns fit into the table.

    Args:
        reserved: lower-case names that an added top-level column must not take.
    """
    fitting = _Merge()
    columns = fitting.struct(table, writer, "", reserved)
    if fitting.conflicts:
        return Alignment(table, (), tuple(fitting.conflicts))
    return Alignment(columns, tuple(fitting.added), (), tuple(fitting.widened))


class _Merge:
    def __init__(self) -> None:
        self.added: list[str] = []
        self.conflicts: list[str] = []
        self.widened: list[str] = []

    def struct(self, table: Struct, writer: Struct, path: str, reserved: frozenset[str]) -> Struct:
        known = table.by_number()
        writes = writer.by_number()
        taken = {column.name.lower() for column in table} | reserved
        kept = [
            replace(column, type=self._type(column.type, writes[column.number].type, path + column.name))
            if column.number in writes
            else column
            for column in table
        ]
        new = [
            replace(column, name=unique_name(column.name, column.number, taken))
            for column in writer
            if column.number not in known and not _is_placeholder(column)
        ]
        if not kept and not new:
            return writer
        self.added += [path + column.name for column in new]
        return Struct((*kept, *new))

    def _type(self, table: ColumnType, writer: ColumnType, path: str) -> ColumnType:
        match table, writer:
            case Struct(), Struct():
                return self.struct(table, writer, f"{path}.", frozenset())
            case Array(mine), Array(theirs):
                return Array(self._type(mine, theirs, f"{path}.element"))
            case Map(key, mine), Map(other_key, theirs) if fits(other_key, key) or widens(key, other_key):
                return Map(self._number(key, other_key, f"{path}.key"), self._type(mine, theirs, f"{path}.value"))
            case Primitive(), Primitive() if fits(writer, table) or widens(table, writer):
                return self._number(table, writer, path)
            case _:
                self.conflicts.append(f"Column {path} is {sql_name(table)}, the schema writes {sql_name(writer)}")
                return table

    def _number(self, table: Primitive, writer: Primitive, path: str) -> Primitive:
        if fits(writer, table):
            return table
        self.widened.append(path)
        return writer


def _is_placeholder(column: Column) -> bool:
    return column == EMPTY_STRUCT.columns[0]


def fits(writer: Primitive, table: Primitive) -> bool:
    """Return whether every value of the writer's type has a place in the table's type."""
    return writer is table or widens(writer, table) or writer in _TAKES.get(table, set())


def widens(table: Primitive, writer: Primitive) -> bool:
    """Return whether a column of the table's type becomes one of the writer's, which holds all its values."""
    return writer in _WIDENS_TO.get(table, set())


def _paths(column_type: ColumnType, path: str) -> Iterator[tuple[str, ColumnType]]:
    """Yield the path and the type of the column and of all that is in it, as `align` names them."""
    if path:
        yield path, column_type
    match column_type:
        case Struct():
            for column in column_type:
                yield from _paths(column.type, f"{path}.{column.name}" if path else column.name)
        case Array(element):
            yield from _paths(element, f"{path}.element")
        case Map(key, value):
            yield f"{path}.key", key
            yield from _paths(value, f"{path}.value")
