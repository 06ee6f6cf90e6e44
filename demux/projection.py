"""Arrow columns of one schema version as the columns of the game's table (`demux.alignment` decided that they fit)."""

from __future__ import annotations

import pyarrow as pa

from demux.arrow_types import arrow_fields, arrow_type
from demux.columns import Array, ColumnType, Map, Struct


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
            values = _typed(array.values, mine, theirs)
            # a NULL list lives under a NULL struct: its mask must not be lost
            return pa.ListArray.from_arrays(_offsets(array), values, arrow_type(table))
        case Map(), Map():
            keys = array.keys.cast(arrow_type(table.key))
            items = _typed(array.items, writer.value, table.value)
            return pa.MapArray.from_arrays(_offsets(array), keys, items, arrow_type(table))
        case _:
            return array.cast(arrow_type(table))


def _offsets(array: pa.Array) -> pa.Array:
    if not array.null_count:
        return array.offsets
    return pa.Array.from_buffers(pa.int32(), len(array) + 1, [None, array.buffers()[1]], offset=array.offset)
