"""The effect of one changed field on the game's silver table, by `demux.core.columns.schema_merge` itself.

The alignment of the whole message decides what happens to rows; here the same function is asked about one field alone,
so that there is an answer for each field, and it cannot differ.
"""

from __future__ import annotations

from dataclasses import dataclass

from demux.core.columns.schema_merge import Alignment, align
from demux.core.columns.types import Array, Column, ColumnType, Map, Primitive, Struct, sql_name
from demux.core.protobuf.compatibility.changes import Effect

# field numbers from the top of the message; 1 and 2 are the key and the value of a map
Numbers = tuple[int, ...]

_NO_EFFECT = (Effect.NONE, "")


@dataclass(frozen=True, slots=True)
class _ColumnPath:
    """A column, by the path that `align` gives it; `in_text`: the field is a part of the column's JSON text."""

    path: str
    type: ColumnType
    in_text: bool


class TableFit:
    """A table's payload columns, a writer's columns, and how `align` fits them together."""

    def __init__(self, table: Struct, writer: Struct, reserved: frozenset[str]) -> None:
        self.alignment: Alignment = align(table, writer, reserved)
        self._table = _Columns(table)
        self._writer = _Columns(writer)
        self._after = _Columns(self.alignment.columns)
        self._conflicts = {_column(sentence): sentence for sentence in self.alignment.conflicts}

    def of_field(self, numbers: Numbers) -> tuple[Effect, str]:
        """Return the field's effect on its column, and a sentence without a full stop."""
        alone = align(self._table.only(numbers), self._writer.only(numbers))
        if alone.conflicts:
            sentence = alone.conflicts[0]
            return Effect.CONFLICT, self._conflicts.get(_column(sentence), sentence)
        if alone.added:
            return Effect.ADDS_COLUMN, self._addition(numbers, alone.added[0])
        match self._table.reach(numbers), self._writer.reach(numbers):
            case _ColumnPath(path), None:
                return Effect.STOPS_FILLING, f"column {path} stays, NULL in new rows"
            case _ColumnPath(path, in_text=True), _ColumnPath():
                return Effect.OTHER_VALUES, f"the JSON text in column {path} changes"
            case _ColumnPath(path, mine), _ColumnPath(_, theirs) if alone.widened:
                return Effect.WIDENS_COLUMN, f"column {path} becomes {sql_name(theirs)}, which holds {sql_name(mine)}"
            case _ColumnPath(path, mine), _ColumnPath(other, theirs):
                if _last(path) != _last(other):
                    return Effect.KEEPS_OLD_NAME, f"column {path} keeps its name and gets the values of {_last(other)}"
                if _inside(mine) != _inside(theirs):
                    return Effect.WIDER_COLUMN, f"column {path} stays {sql_name(mine)}, which holds {sql_name(theirs)}"
        return _NO_EFFECT

    def of_values(self, numbers: Numbers, sentence: str) -> tuple[Effect, str]:
        """Return the effect of a field that keeps its column and fills it differently.

        Args:
            sentence: what differs, with `{column}` for the column's path; empty where only a JSON text would differ.
        """
        reached = self._table.reach(numbers)
        if reached is None or self._writer.reach(numbers) is None:
            return _NO_EFFECT
        if reached.in_text:
            return Effect.OTHER_VALUES, f"the JSON text in column {reached.path} changes"
        return (Effect.OTHER_VALUES, sentence.replace("{column}", reached.path)) if sentence else _NO_EFFECT

    def _addition(self, numbers: Numbers, alone: str) -> str:
        written = self._writer.reach(numbers)
        assert written is not None
        reached = self._after.reach(numbers)
        if reached is None:
            # another field is in conflict: nothing is added
            return f"would add column {alone} {sql_name(written.type)}"
        return f"adds column {reached.path} {sql_name(written.type)}"


class _Columns:
    """Columns found by the numbers of their fields."""

    def __init__(self, columns: Struct) -> None:
        self._columns = columns
        # a message of thousands of fields is asked about thousands of times
        self._by_number: dict[int, dict[int, Column]] = {}

    def only(self, numbers: Numbers) -> Struct:
        """Return the one column of this field and those around it, without anything beside it or inside it."""
        return self._only(self._columns, numbers)

    def reach(self, numbers: Numbers) -> _ColumnPath | None:
        """Return the column of this field, or the one whose JSON text it is a part of."""
        return self._reach(self._columns, numbers, "")

    def _numbered(self, columns: Struct, number: int) -> Column | None:
        # the root keeps every struct alive, so that no other takes its id
        if id(columns) not in self._by_number:
            self._by_number[id(columns)] = columns.by_number()
        return self._by_number[id(columns)].get(number)

    def _only(self, columns: Struct, numbers: Numbers) -> Struct:
        column = self._numbered(columns, numbers[0])
        if column is None:
            return Struct(())
        return Struct((Column(column.name, self._narrowed(column.type, numbers[1:]), column.number),))

    def _narrowed(self, column_type: ColumnType, numbers: Numbers) -> ColumnType:
        if not numbers:
            return _inside(column_type)
        match column_type:
            case Struct():
                return self._only(column_type, numbers)
            case Array(element):
                return Array(self._narrowed(element, numbers))
            case Map(key) if numbers[0] == 1:
                return Map(key, Primitive.STRING)
            case Map(_, value):
                return Map(Primitive.STRING, self._narrowed(value, numbers[1:]))
            case Primitive():
                return column_type

    def _reach(self, columns: Struct, numbers: Numbers, above: str) -> _ColumnPath | None:
        column = self._numbered(columns, numbers[0])
        return None if column is None else self._into(column.type, numbers[1:], above + column.name)

    def _into(self, column_type: ColumnType, numbers: Numbers, path: str) -> _ColumnPath | None:
        if not numbers:
            return _ColumnPath(path, column_type, in_text=False)
        match column_type:
            case Struct():
                return self._reach(column_type, numbers, f"{path}.")
            case Array(element):
                return self._into(element, numbers, f"{path}.element")
            case Map(key) if numbers[0] == 1:
                return _ColumnPath(f"{path}.key", key, in_text=False)
            case Map(_, value):
                return self._into(value, numbers[1:], f"{path}.value")
            case Primitive():
                return _ColumnPath(path, column_type, in_text=True)


def _inside(column_type: ColumnType) -> ColumnType:
    """Return the type without what its messages hold: their own fields say that."""
    match column_type:
        case Struct():
            return Struct(())
        case Array(element):
            return Array(_inside(element))
        case Map():
            return Map(Primitive.STRING, Primitive.STRING)
        case Primitive():
            return column_type


def _column(conflict: str) -> str:
    return conflict.partition(" is ")[0]


def _last(path: str) -> str:
    return path.rpartition(".")[2]
