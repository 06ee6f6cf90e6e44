"""The newest rows of a silver table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from demux.core.catalog.spark_tables import read_table
from demux.core.columns.arrow import python_rows, table_of
from demux.core.delta.scan import data_files, open_readable, scan
from demux.core.storage.files import Storage
from demux.core.storage.table_address import TableAddress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DECODED_AT = "_decoded_at"
_ORDER = ((_DECODED_AT, "descending"), ("_offset", "descending"))
_FIRST, _LAST, _ROWS = f"min.{_DECODED_AT}", f"max.{_DECODED_AT}", "num_records"


@dataclass(frozen=True, slots=True)
class SilverSample:
    """The newest rows of a table, by the time of decoding and the offset.

    Attributes:
        rows: by column, the newest first.
        count: of all rows of the table.
    """

    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]
    count: int


def newest_rows(storage: Storage, path: str, most: int) -> SilverSample:
    """Return at most so many rows; reads only the files that may have one of them, by the bounds in the log.

    Raises:
        TableUnsuited: the table has a feature that only Spark reads.
    """
    table = open_readable(storage, path)
    schema, actions = pa.schema(table.schema()), table_of(table.get_add_actions(flatten=True))
    since = _since(actions, most)
    files = data_files(table, path, None if since is None else pc.field(_LAST) >= since)
    rows = pa.Table.from_batches(scan(storage, files, list(schema)), schema)
    newest = rows.take(pc.sort_indices(rows, _ORDER)[:most])
    count = len(rows) if since is None else pc.sum(actions.column(_ROWS)).as_py()
    row = pa.struct(list(newest.schema))
    return SilverSample(tuple(newest.column_names), [_with_dicts(one, row) for one in python_rows(newest)], count)


def newest_rows_by_spark(spark: SparkSession, table: TableAddress, most: int) -> SilverSample:
    """Return the same of a table that only Spark reads."""
    from pyspark.sql import functions as F

    frame = read_table(spark, table)
    newest = frame.orderBy(F.col(_DECODED_AT).desc(), F.col("_offset").desc_nulls_last()).limit(most)
    rows = [row.asDict(recursive=True) for row in newest.collect()]
    return SilverSample(tuple(frame.columns), rows, frame.count())


def _since(files: pa.Table, most: int) -> pa.Scalar | None:
    """Return a time of decoding that the newest rows do not come before; None where the log does not say one.

    A file has all its rows from one round, so its lower bound is the time of each.

    Args:
        files: as `get_add_actions(flatten=True)` gives them.
    """
    bounds = [_FIRST, _LAST, _ROWS]
    if not set(bounds) <= set(files.column_names) or any(files.column(name).null_count for name in bounds):
        return None
    ordered = files.select(bounds).sort_by([(_FIRST, "descending")])
    for at, rows in enumerate(accumulate(ordered.column(_ROWS).to_pylist())):
        if rows >= most:
            return ordered.column(_FIRST)[at]
    return None


def _with_dicts(value: Any, kind: pa.DataType) -> Any:
    """Return a value with a dict for each map; pyarrow does so by itself from 20 on, and the least here is 19."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {key: _with_dicts(one, kind.item_type) for key, one in value}
    if pa.types.is_struct(kind):
        return {field.name: _with_dicts(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind):
        return [_with_dicts(one, kind.value_type) for one in value]
    return value
