"""Bronze and quarantine by Spark's own Delta writer: for tables that only Spark can open or write."""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bronze_ingest.to_columns import EXAMINED, take_apart, with_fields
from bronze_ingest.unwrap import WrapperFormat, bronze_columns
from demux.core.causes import Stage
from demux.core.columns.spark import spark_struct
from demux.core.delta.app_transactions import Batch
from demux.core.delta.batch_commit import REFUSED, BatchCounts, Target, commit
from demux.core.root.layout import Layout
from demux.core.root.lock import TableLock
from demux.core.spark.map_in_arrow import ArrowFunction, Batches, map_in_arrow, number_rows
from demux.core.tables import QUARANTINE


def write_batch(layout: Layout, frame: DataFrame, wrapper: WrapperFormat, batch: Batch, lock: TableLock) -> BatchCounts:
    """Write a micro-batch of source records and return its counts; safe to call again for the same batch.

    Holds the lock of quarantine while that is written: games are decoded meanwhile.
    """
    storage = layout.storage
    target = Target(storage.address(layout.bronze), storage.address(layout.quarantine), partition_by=("game_name",))
    return commit(batch, target, bronze_rows(frame, wrapper, batch), lambda: refused_rows(frame, wrapper, batch), lock)


def bronze_rows(frame: DataFrame, wrapper: WrapperFormat, batch: Batch) -> DataFrame:
    """Return every record of a source frame in the columns of `bronze_columns`, and `REFUSED`."""
    unwrapped = map_in_arrow(frame, to_fields(wrapper, batch), spark_struct(with_fields(wrapper)))
    stamped = unwrapped.withColumn("ingested_at", F.current_timestamp()).withColumn("batch_id", _batch_id(batch))
    return stamped.select(*(column.name for column in bronze_columns(wrapper)), REFUSED)


def refused_rows(frame: DataFrame, wrapper: WrapperFormat, batch: Batch) -> DataFrame:
    """Return the bad records of a source frame in the columns of `QUARANTINE`."""
    examined = map_in_arrow(frame, to_refused(wrapper, batch), spark_struct(EXAMINED))
    stamped = (
        examined.withColumn("stage", F.lit(Stage.BRONZE.value))
        .withColumn("query_id", F.lit(batch.query_id))
        .withColumn("batch_id", _batch_id(batch))
        .withColumn("quarantined_at", F.current_timestamp())
    )
    return stamped.select(*(column.name for column in QUARANTINE))


def _batch_id(batch: Batch) -> SparkColumn:
    return F.lit(batch.batch_id).cast("long")


def to_fields(wrapper: WrapperFormat, batch: Batch) -> ArrowFunction:
    """Return a function that takes source records apart, into the columns of `with_fields`."""

    def convert(batches: Batches) -> Batches:
        for first, records in number_rows(batches):
            yield take_apart(records, wrapper, batch, first).rows()

    return convert


def to_refused(wrapper: WrapperFormat, batch: Batch) -> ArrowFunction:
    """Return a function that gives the bad source records as they came, in the columns of `EXAMINED`."""

    def convert(batches: Batches) -> Batches:
        for first, records in number_rows(batches):
            examined = take_apart(records, wrapper, batch, first).examined()
            yield examined.filter(examined.column("cause").is_valid())

    return convert
