"""The columns of an envelope: three lead to game, schema id and payload, the rest goes to bronze as it is. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Array, Column, ColumnType, Map, Struct, sql_name
from demux.core.protobuf.envelope import ColumnPath, Envelope

PREFIX = "wrapper_"


def extra_columns(envelope: Envelope) -> tuple[Column, ...]:
    """Return the columns that bronze has for the envelope's other fields, in order of declaration.

    A message that holds one of the three keeps its other fields; one that has no others is left out.
    """
    rest = _rest(envelope.columns, taken_paths(envelope))
    return tuple(Column(PREFIX + column.name, column.type, column.number) for column in rest)


def column_conflicts(table: Struct, wished: Struct) -> tuple[str, ...]:
    """Return a sentence for each column that the bronze table has otherwise than it is wished for.

    Only columns of the same name are compared: the table may have more, and gets what it lacks.
    """
    return tuple(_conflicts(table, wished, ""))


def taken_paths(envelope: Envelope) -> tuple[ColumnPath, ...]:
    """Return the ways to game, schema id and payload."""
    return tuple(path for path in (envelope.game, envelope.schema_id, envelope.payload) if path is not None)


def column_at(arrays: Sequence[pa.Array], path: ColumnPath) -> pa.Array:
    """Return the array that the path leads to; NULL where a message on the way is unset."""
    top, *inside = path
    return pc.struct_field(arrays[top], inside) if inside else arrays[top]


def extra_arrays(arrays: Sequence[pa.Array], envelope: Envelope) -> list[pa.Array]:
    """Return the arrays of `extra_columns`, made from those of the envelope's columns."""
    return _rest_arrays(arrays, envelope.columns, taken_paths(envelope))


def _rest(columns: Struct, taken: Collection[ColumnPath]) -> Struct:
    kept = []
    for at, column in enumerate(columns):
        inside = _inside(taken, at)
        if not inside:
            kept.append(column)
        elif isinstance(column.type, Struct) and () not in inside:
            rest = _rest(column.type, inside)
            kept += [Column(column.name, rest, column.number)] if rest.columns else []
    return Struct(tuple(kept))


def _rest_arrays(arrays: Sequence[pa.Array], columns: Struct, taken: Collection[ColumnPath]) -> list[pa.Array]:
    kept = []
    for at, (array, column) in enumerate(zip(arrays, columns, strict=True)):
        inside = _inside(taken, at)
        if not inside:
            kept.append(array)
        elif isinstance(column.type, Struct) and () not in inside:
            rest = _rest(column.type, inside)
            parts = _rest_arrays([array.field(part) for part in range(len(column.type.columns))], column.type, inside)
            if parts:
                kept.append(pa.StructArray.from_arrays(parts, fields=arrow_fields(rest), mask=array.is_null()))
    return kept


def _conflicts(table: ColumnType, wished: ColumnType, path: str) -> Iterator[str]:
    match table, wished:
        case Struct(), Struct():
            known = {column.name.lower(): column for column in table}
            for column in wished:
                found, name = known.get(column.name.lower()), f"{path}{column.name}"
                if found is not None and found.number != column.number:
                    yield f"Column {name} holds field {found.number} in the table, and field {column.number} now."
                elif found is not None:
                    yield from _conflicts(found.type, column.type, f"{name}.")
        case Array(mine), Array(theirs):
            yield from _conflicts(mine, theirs, f"{path}element.")
        case Map(key, mine), Map(other_key, theirs) if key is other_key:
            yield from _conflicts(mine, theirs, f"{path}value.")
        case _ if table != wished:
            yield f"Column {path[:-1]} is {sql_name(table)} in the table, and {sql_name(wished)} now."


def _inside(taken: Collection[ColumnPath], at: int) -> list[ColumnPath]:
    return [path[1:] for path in taken if path[0] == at]
