"""Bronze and quarantine without Spark's Delta writer: each task writes its files, the driver commits all of them.

One Spark job for a batch, whatever is in it. Bronze is committed first; a batch that comes again is taken apart again,
which depends on its bytes alone, and what is in a table already is not put there twice.
"""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from bronze_ingest.to_columns import take_apart
from bronze_ingest.unwrap import WrapperFormat, bronze_columns
from demux.core.causes import Stage
from demux.core.columns.spark import spark_struct, with_columns
from demux.core.columns.types import Struct
from demux.core.delta.app_transactions import Batch
from demux.core.delta.batch_commit import BatchCounts
from demux.core.delta.commit import alter_after
from demux.core.delta.parquet_writer import (
    FILES,
    TableFile,
    TableWriter,
    add_constants,
    commit_files,
    encode_files,
    schema_json,
    takes_files,
)
from demux.core.errors import ConcurrentChange, TableUnsuited
from demux.core.root.layout import Layout
from demux.core.root.lock import TableLock
from demux.core.spark.map_in_arrow import ArrowFunction, Batches, map_in_arrow, number_rows
from demux.core.storage.open_tables import OpenTables
from demux.core.tables import QUARANTINE

if TYPE_CHECKING:
    from deltalake import DeltaTable

PARTITION = "game_name"


def can_write(tables: OpenTables, layout: Layout) -> bool:
    """Return whether the tables are, or would be, reached without Spark, and take such files."""
    if not tables.storage.reaches(layout.root):
        return False
    found = [tables.get(path) for path in (layout.bronze, layout.quarantine)]
    return all(takes_files(table) for table in found if table is not None)


def write_batch(
    tables: OpenTables, layout: Layout, frame: DataFrame, wrapper: WrapperFormat, batch: Batch, lock: TableLock
) -> BatchCounts:
    """Write a micro-batch of source records and return its counts; safe to call again for the same batch.

    Holds the lock of quarantine while that is written: games are decoded meanwhile.
    """
    storage, bronze, quarantine = layout.storage, layout.bronze, layout.quarantine
    into = _prepared(tables, bronze, bronze_columns(wrapper), PARTITION)
    now = datetime.now(timezone.utc)
    work = to_files(wrapper, layout, batch, now)
    written = map_in_arrow(frame, work, spark_struct(FILES)).collect()
    files = [TableFile(**row.asDict()) for row in written]
    good = [file for file in files if file.table == bronze]
    bad = [file for file in files if file.table == quarantine]
    commit_files(storage, bronze, good, PARTITION, batch, into)
    if bad:
        with lock(quarantine):
            into = _prepared(tables, quarantine, QUARANTINE, None)
            commit_files(storage, quarantine, bad, None, batch, into)
    rows_good, rows_bad = (sum(file.rows for file in these) for these in (good, bad))
    return BatchCounts(rows_good + rows_bad, rows_good, rows_bad)


def to_files(wrapper: WrapperFormat, layout: Layout, batch: Batch, now: datetime) -> ArrowFunction:
    """Return a function that writes source records to files of bronze and quarantine, into the columns of `FILES`."""
    columns = bronze_columns(wrapper)
    storage, bronze, quarantine = layout.storage, layout.bronze, layout.quarantine

    def write(batches: Batches) -> Batches:
        with (
            TableWriter(storage, bronze, columns, PARTITION) as good,
            TableWriter(storage, quarantine, QUARANTINE) as bad,
        ):
            for first, records in number_rows(batches):
                found = take_apart(records, wrapper, batch, first)
                causes, rows = found.fields.causes, found.rows()
                if causes.null_count < len(causes):
                    rows = rows.filter(causes.is_null())
                good.add(add_constants(rows, columns, ingested_at=now, batch_id=batch.batch_id))
                if causes.null_count < len(causes):
                    refused = found.examined().filter(causes.is_valid())
                    bad.add(
                        add_constants(
                            refused,
                            QUARANTINE,
                            stage=Stage.BRONZE.value,
                            query_id=batch.query_id,
                            batch_id=batch.batch_id,
                            quarantined_at=now,
                        )
                    )
            yield encode_files([*good.close(), *bad.close()])

    return write


def _prepared(tables: OpenTables, path: str, columns: Struct, partition_by: str | None) -> DeltaTable:
    """Return the table, made, or with the columns that it did not have yet; a second call changes nothing."""
    table = tables.create(path, columns, partition_by)
    now = StructType.fromJson(json.loads(schema_json(table)))
    wanted = with_columns(now, columns)
    if wanted is None:
        raise TableUnsuited(
            f"The table {path} has a column with another type than its rows have.",
            "Fill it again with `demux rebuild --bronze`, or take another root.",
            table=path,
        )
    if wanted != now and not alter_after(tables.storage, table, path, wanted.jsonValue()):
        raise ConcurrentChange(
            f"Another process wrote {path} meanwhile.", "Run the same command again; nothing is lost."
        )
    return table
