"""Arrow columns of one schema version as the columns of the game's table (`schema_merge` decided that they fit)."""

from __future__ import annotations

import pyarrow as pa

from demux.core.columns.arrow import arrow_fields, arrow_type
from demux.core.columns.types import Array, ColumnType, Map, Struct


def project(columns: list[pa.Array], writer: Struct, table: Struct, length: int) -> list[pa.Array]:
    """Return one array for each column of the table, NULL where the writer has no such field.

    Args:
        columns: the writer's columns.
        writer: their types and numbers.
        table: the wished columns.
        length: the number of rows.
    """
    index = {column.number: position for position, column in enumerate(writer)}
    projected = []
    for column in table:
        at = index.get(column.number)
        if at is None:
            projected.append(pa.nulls(length, arrow_type(column.type)))
        else:
            projected.append(_typed(columns[at], writer.columns[at].type, column.type))
    return projected


def _typed(array: pa.Array, writer: ColumnType, table: ColumnType) -> pa.Array:
    if writer == table:
        return array
    match writer, table:
        case Struct(), Struct():
            inside = [array.field(position) for position in range(len(writer.columns))]
            columns = project(inside, writer, table, len(array))
            return pa.StructArray.from_arrays(columns, fields=arrow_fields(table), mask=array.is_null())
        case Array(mine), Array(theirs):
            return _lists(array, arrow_type(table), _typed(array.values, mine, theirs))
        case Map(), Map():
            made = arrow_type(table)
            pairs = [array.keys.cast(made.key_type), _typed(array.items, writer.value, table.value)]
            entries = pa.StructArray.from_arrays(pairs, fields=[made.key_field, made.item_field])
            return _lists(array, made, entries)
        case _:
            return array.cast(arrow_type(table))


def _lists(array: pa.Array, made: pa.DataType, inside: pa.Array) -> pa.Array:
    # offsets and mask as they are: a NULL list stays NULL
    return pa.Array.from_buffers(made, len(array), array.buffers()[:2], array.null_count, array.offset, [inside])
