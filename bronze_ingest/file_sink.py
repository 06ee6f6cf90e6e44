"""Bronze and quarantine without Spark's Delta writer: each task writes its files, the driver commits all of them.

One Spark job for a batch, whatever is in it. Bronze is committed first; a batch that comes again is taken apart again,
which depends on its bytes alone, and what is in a table already is not put there twice.
"""

from __future__ import annotations

from datetime import datetime, timezone

from pyspark.sql import DataFrame, SparkSession

from bronze_ingest.envelope import covers
from bronze_ingest.rows import take_apart
from bronze_ingest.unwrap import WrapperFormat, bronze_columns
from demux.arrow_map import ArrowFunction, Batches, map_in_arrow, numbered
from demux.causes import Stage
from demux.columns import Struct
from demux.commits import Counts
from demux.spark_types import columns_in_json, spark_struct
from demux.storage import local_path, table_exists
from demux.streams import Batch
from demux.table_files import FILES, TableFile, TableWriter, commit_files, schema_json, stamped, takes_files, told
from demux.tables import QUARANTINE, Layout

PARTITION = "game_name"


def can_write(spark: SparkSession, layout: Layout) -> bool:
    """Return whether the tables are, or would be, on a file system of this machine, and take such files."""
    paths = [local_path(spark, table) for table in (layout.bronze, layout.quarantine)]
    tables = [path for path in paths if path is not None and table_exists(spark, path)]
    return None not in paths and all(takes_files(path) for path in tables)


def write_batch(spark: SparkSession, layout: Layout, frame: DataFrame, wrapper: WrapperFormat, batch: Batch) -> Counts:
    """Write a micro-batch of source records and return its counts; safe to call again for the same batch."""
    bronze, quarantine = local_path(spark, layout.bronze), local_path(spark, layout.quarantine)
    assert bronze is not None
    assert quarantine is not None
    _prepare(spark, bronze, bronze_columns(wrapper), PARTITION)
    now = datetime.now(timezone.utc)
    work = to_files(wrapper, bronze, quarantine, batch, now)
    written = map_in_arrow(frame, work, spark_struct(FILES)).collect()
    files = [TableFile(**row.asDict()) for row in written]
    good = [file for file in files if file.table == bronze]
    bad = [file for file in files if file.table == quarantine]
    commit_files(bronze, good, PARTITION, batch)
    if bad:
        _prepare(spark, quarantine, QUARANTINE, None)
        commit_files(quarantine, bad, None, batch)
    rows_good, rows_bad = (sum(file.rows for file in these) for these in (good, bad))
    return Counts(rows_good + rows_bad, rows_good, rows_bad)


def to_files(wrapper: WrapperFormat, bronze: str, quarantine: str, batch: Batch, now: datetime) -> ArrowFunction:
    """Return a function that writes source records to files of both tables, into the columns of `FILES`."""
    columns = bronze_columns(wrapper)

    def write(batches: Batches) -> Batches:
        with TableWriter(bronze, columns, PARTITION) as good, TableWriter(quarantine, QUARANTINE) as bad:
            for first, records in numbered(batches):
                found = take_apart(records, wrapper, batch, first)
                causes, rows = found.fields.causes, found.rows()
                if causes.null_count < len(causes):
                    rows = rows.filter(causes.is_null())
                good.add(stamped(rows, columns, ingested_at=now, batch_id=batch.batch_id))
                if causes.null_count < len(causes):
                    refused = found.examined().filter(causes.is_valid())
                    bad.add(
                        stamped(
                            refused,
                            QUARANTINE,
                            stage=Stage.BRONZE.value,
                            query_id=batch.query_id,
                            batch_id=batch.batch_id,
                            quarantined_at=now,
                        )
                    )
            yield told([*good.close(), *bad.close()])

    return write


def _prepare(spark: SparkSession, table: str, columns: Struct, partition_by: str | None) -> None:
    """Make the table, or give it the columns that it does not have yet; a second call does nothing."""
    if table_exists(spark, table) and covers(columns_in_json(schema_json(table)), columns):
        return
    writer = spark.createDataFrame([], spark_struct(columns)).write.format("delta").mode("append")
    if partition_by is not None:
        writer = writer.partitionBy(partition_by)
    writer.option("mergeSchema", "true").save(table)
