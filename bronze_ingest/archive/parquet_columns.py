"""The columns of an archived Parquet file in the types that we have.

A column's case does not matter. Integers as `timestamp` are milliseconds since 1970; a time without a zone is UTC.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from demux.core.tables import SOURCE_OPTIONAL

_BYTES = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_string,
    pa.types.is_large_string,
)


def names_of(schema: pa.Schema) -> dict[str, str]:
    """Return the file's names of our columns; an exact one comes before one in another case."""
    ours = {"value", *(column.name for column in SOURCE_OPTIONAL)}
    names = {name.lower(): name for name in sorted(schema.names) if name.lower() in ours}
    if "value" in names and not _holds_bytes(schema.types[schema.names.index(names["value"])]):
        del names["value"]
    return names


def column_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return the first column of this name."""
    # a file may have two columns of one name
    return batch.column(batch.schema.names.index(name))


def converted_to(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the column in another type.

    Raises:
        pa.ArrowException: a value is lost that way.
    """
    if pa.types.is_timestamp(kind):
        if pa.types.is_integer(column.type):
            column = column.cast(pa.int64()).cast(pa.timestamp("ms", "UTC"))
        return pc.cast(column, options=pc.CastOptions(kind, allow_time_truncate=True))
    cast = column.cast(kind)
    # a file may call anything UTF-8
    cast.validate(full=True)
    return cast


def size_of(batch: pa.RecordBatch) -> int:
    """Return the bytes that the batch has once its dictionaries are resolved."""
    return sum(_size(column) for column in batch.columns)


def _size(column: pa.Array) -> int:
    if not pa.types.is_dictionary(column.type) or not _holds_bytes(column.type):
        return int(column.nbytes)
    return int(pc.sum(pc.binary_length(column.dictionary).take(column.indices)).as_py() or 0)


def _holds_bytes(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(is_a(kind) for is_a in _BYTES)
