"""Column types as Arrow types, and columns brought from one type to another."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta, timezone
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from demux.core.columns.types import Array, ColumnType, Map, Primitive, Struct

# one batch is in memory several times, in a JVM too
MAX_BATCH_BYTES = 64 * 2**20
MAX_BATCH_ROWS = 10_000

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

AnyArray = TypeVar("AnyArray", pa.Array, pa.ChunkedArray)

_PRIMITIVES = {
    Primitive.BOOLEAN: pa.bool_(),
    Primitive.INT: pa.int32(),
    Primitive.BIGINT: pa.int64(),
    Primitive.FLOAT: pa.float32(),
    Primitive.DOUBLE: pa.float64(),
    Primitive.DECIMAL_20_0: pa.decimal128(20, 0),
    Primitive.STRING: pa.string(),
    Primitive.BINARY: pa.binary(),
    Primitive.TIMESTAMP: pa.timestamp("us", tz="UTC"),
}


def arrow_type(column_type: ColumnType) -> pa.DataType:
    """Return the Arrow type that holds the column's values without loss."""
    match column_type:
        case Primitive():
            return _PRIMITIVES[column_type]
        case Array(element):
            return pa.list_(pa.field("element", arrow_type(element)))
        case Map(key, value):
            return pa.map_(_PRIMITIVES[key], arrow_type(value))
        case Struct():
            return pa.struct(arrow_fields(column_type))


def as_type(column: AnyArray, wanted: pa.DataType) -> AnyArray:
    """Return the column in this type; as it is where it has it already, which a cast would take longer to find out."""
    return column if column.type == wanted else column.cast(wanted)


def arrow_fields(struct: Struct) -> list[pa.Field]:
    """Return a nullable Arrow field for each column, in order."""
    return [pa.field(column.name, arrow_type(column.type)) for column in struct]


def conform_table(table: pa.Table, columns: Struct) -> pa.Table:
    """Return the table in these columns, NULL where it has none."""
    fields, names = arrow_fields(columns), frozenset(table.column_names)
    arrays = [
        as_type(table.column(one.name), one.type) if one.name in names else pa.nulls(len(table), one.type)
        for one in fields
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def spread(values: pa.Array, places: Sequence[int] | npt.NDArray[np.int64], count: int) -> pa.Array:
    """Return an array of this many values, these at their places, and NULL at all others."""
    index = np.full(count, -1, dtype=np.int64)
    index[places] = np.arange(len(values))
    return values.take(pa.array(index, mask=index < 0))


def table_of(exported: object) -> pa.Table:
    """Return a table that another library exports as an Arrow stream; unlike `pyarrow.table`, it imports no pandas."""
    return pa.RecordBatchReader.from_stream(exported).read_all()


def python_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows as dicts; unlike `to_pylist`, this does not import pandas for times in a column of the table."""
    columns = {
        name: [None if at is None else _EPOCH + timedelta(microseconds=at) for at in _micros(column)]
        if pa.types.is_timestamp(column.type)
        else column.to_pylist()
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _micros(times: pa.ChunkedArray) -> list[int | None]:
    micros: list[int | None] = as_type(times, _PRIMITIVES[Primitive.TIMESTAMP]).cast(pa.int64()).to_pylist()
    return micros


def days_of(times: AnyArray) -> AnyArray:
    """Return the day (DATE, UTC) of each time; NULL of one that is not known, or that no calendar of Python has."""
    kind = _PRIMITIVES[Primitive.TIMESTAMP]
    # not at import: this loads pandas, where it is installed
    first, end = (pa.scalar(datetime.combine(day, time.min, timezone.utc), kind) for day in (date.min, date.max))
    times = as_type(times, kind)
    is_known = pc.and_(pc.greater_equal(times, first), pc.less(times, end))
    return pc.floor_temporal(pc.if_else(is_known, times, None), unit="day").cast(pa.date32())


def project(columns: list[pa.Array], writer: Struct, table: Struct, length: int) -> list[pa.Array]:
    """Return one array for each column of the table, NULL where the writer has no such field."""
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
