"""Rows of bronze through a decoder in Spark, and through the arrow decoder's function in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.spark import spark_struct
from demux.core.schemas.ref import SchemaRef
from deserializer.decoders.arrow import INPUT, REF, silver_columns, to_silver
from deserializer.decoders.schema_decision import Decisions
from deserializer.decoders.select import RowDecoder
from tests.support.oracle import plain

# how each row names its schema: an id, or all of a ref; and its payload
Ref = int | SchemaRef | None
Sent = Sequence[tuple[Ref, bytes | None]]
Rows = list[dict[str, Any]]


def bronze(sent: Sent) -> pa.Table:
    """The rows in the columns of `INPUT`; record ids count from r0."""
    moment = datetime(2025, 1, 2, tzinfo=timezone.utc)
    position = {"origin": "delta", "topic": "events", "partition": 1, "timestamp": moment}
    records = [
        {**ref_columns(ref), "payload": payload, "offset": at, "record_id": f"r{at}", **position}
        for at, (ref, payload) in enumerate(sent)
    ]
    return pa.Table.from_pylist(records, schema=pa.schema(arrow_fields(INPUT)))


def ref_columns(ref: Ref) -> dict[str, int | str | None]:
    """The columns of `REF`."""
    ref = ref if isinstance(ref, SchemaRef) else SchemaRef(ref)
    return dict(zip((column.name for column in REF), astuple(ref), strict=True))


def by_spark(spark: SparkSession, folder: Path, decoder: RowDecoder, sent: Sent, decisions: Decisions) -> Rows:
    """The decoder's rows in order of arrival, through a file: no value passes through Python's local time."""
    pq.write_table(bronze(sent), folder / "bronze.parquet")
    frame = spark.read.schema(spark_struct(INPUT)).parquet(str(folder / "bronze.parquet"))
    silver = decoder.rows(frame, decisions)
    nullable = silver.schema.json().replace('"nullable":false', '"nullable":true')
    assert nullable == spark_struct(silver_columns(decisions.columns)).json()
    silver.write.parquet(str(folder / "silver"))
    return _in_order(pq.read_table(folder / "silver"))


def by_function(sent: Sent, decisions: Decisions) -> Rows:
    """The arrow decoder's rows in order of arrival, without Spark."""
    return _in_order(pa.Table.from_batches(to_silver(decisions)(iter(bronze(sent).to_batches()))))


def _in_order(table: pa.Table) -> Rows:
    rows = [
        {field.name: _with_dicts(row[field.name], field.type) for field in table.schema} for row in table.to_pylist()
    ]
    return sorted(rows, key=lambda row: int(row["_record_id"][1:]))


def _with_dicts(value: Any, data_type: pa.DataType) -> Any:
    """The value with its maps as dicts, which have no order; a doubled key is an error."""
    if value is None:
        return None
    if pa.types.is_map(data_type):
        pairs = [(plain(key), _with_dicts(item, data_type.item_type)) for key, item in value]
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)
    if pa.types.is_list(data_type):
        return [_with_dicts(item, data_type.value_type) for item in value]
    if pa.types.is_struct(data_type):
        return {field.name: _with_dicts(value[field.name], field.type) for field in data_type}
    return plain(value)
