"""The newest rows of a silver table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from demux.core.columns.arrow import table_of
from demux.core.errors import TableUnsuited
from demux.core.extras import deltalake
from demux.core.storage.files import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DECODED_AT = "_decoded_at"
_ORDER = ((_DECODED_AT, "descending"), ("_offset", "descending"))
_BOUND = f"max.{_DECODED_AT}"


@dataclass(frozen=True, slots=True)
class SilverSample:
    """The newest rows of a table, by the time of decoding and the offset.

    Attributes:
        columns: names, in order.
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
    try:
        table = storage.table(path)
        if table.protocol().min_reader_version == 2:
            # column mapping, which `to_pyarrow_dataset` knows only as a feature of version 3
            raise deltalake.exceptions.DeltaProtocolError("The table has column mapping.")
        # without the bounds of other columns: deltalake (1.6.6) takes one that has none for one without values
        rows = table.to_pyarrow_dataset()
    except deltalake.exceptions.DeltaProtocolError as error:
        raise TableUnsuited(
            f"The table {path} asks for a reader that only Spark is ({error}).",
            "Run the same command with --spark.",
            table=path,
        ) from error
    count = rows.count_rows()
    since = _since(table, most)
    found = rows.to_table(filter=None if since is None else pc.field(_DECODED_AT) >= since)
    newest = found.take(pc.sort_indices(found, _ORDER)[:most])
    row = pa.struct(list(newest.schema))
    return SilverSample(tuple(newest.column_names), [_with_dicts(one, row) for one in newest.to_pylist()], count)


def newest_rows_by_spark(spark: SparkSession, path: str, most: int) -> SilverSample:
    """Return the same of a table that only Spark reads."""
    from pyspark.sql import functions as F

    frame = spark.read.format("delta").load(path)
    newest = frame.orderBy(F.col(_DECODED_AT).desc(), F.col("_offset").desc_nulls_last()).limit(most)
    rows = [row.asDict(recursive=True) for row in newest.collect()]
    return SilverSample(tuple(frame.columns), rows, frame.count())


def _since(table: deltalake.DeltaTable, most: int) -> Any:
    """Return a time of decoding that the newest rows do not come before; None where the log does not say one.

    A file has all its rows from one round, so its lower bound is the time of each.
    """
    files = table_of(table.get_add_actions(flatten=True))
    bounds = (f"min.{_DECODED_AT}", "num_records")
    if not set(bounds) <= set(files.column_names):
        return None
    least, counts = (files.column(name).to_pylist() for name in bounds)
    left = most
    for at, rows in sorted(zip(least, counts, strict=True), key=lambda one: (one[0] is None, one[0]), reverse=True):
        if at is None or rows is None:
            return None
        left -= rows
        if left <= 0:
            return at if at.tzinfo else at.replace(tzinfo=timezone.utc)
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
