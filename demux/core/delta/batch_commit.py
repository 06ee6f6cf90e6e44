"""One micro-batch into two tables, exactly once: its good rows into their table, its bad rows into quarantine.

Both writes carry the query's own id and the batch's number as Delta's application transaction, so a batch that comes
again is not written again. What a row is depends on its own bytes alone, so it is the same when it comes again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from demux.core.catalog.spark_tables import save_table
from demux.core.delta.app_transactions import Batch
from demux.core.root.lock import TableLock, no_lock
from demux.core.storage.table_address import TableAddress

# marks a row of the batch that has no place in the good table; not a column of any table
REFUSED = "_refused"
# held by a thread that has Spark write a quarantine table: one at a time can make it, or take rows out of it
ALONE = threading.Lock()


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """What became of a batch, in rows."""

    rows_in: int
    rows_good: int
    rows_quarantined: int


@dataclass(frozen=True, slots=True)
class Target:
    """Where a batch goes."""

    table: TableAddress
    quarantine: TableAddress
    partition_by: tuple[str, ...] = ()


def commit(
    batch: Batch, target: Target, rows: DataFrame, refused: Callable[[], DataFrame], lock: TableLock = no_lock
) -> BatchCounts:
    """Write the batch and return its counts; safe to call again for the same batch.

    Args:
        rows: every row of the batch in the table's columns, and `REFUSED`: true for the bad ones.
        refused: makes the quarantine rows of the batch.
        lock: keeps others away while the quarantine table is written.
    """
    if batch.retried:
        return _commit_again(batch, target, rows, refused(), lock)
    seen = Observation()
    bad = F.coalesce(F.sum(F.col(REFUSED).cast("long")), F.lit(0))
    append(_good(rows.observe(seen, F.count(F.lit(1)).alias("rows"), bad.alias("bad"))), target.table, batch, target)
    # asked once: each asking costs Spark 4 an exception in the JVM
    found = seen.get
    counts = BatchCounts(found["rows"], found["rows"] - found["bad"], found["bad"])
    if counts.rows_quarantined:
        append_alone(refused(), target.quarantine, batch, lock)
    return counts


def append(rows: DataFrame, table: TableAddress, batch: Batch | None, target: Target | None = None) -> None:
    """Append the rows to the table, once for each batch; partitioned as the target says when the table is new.

    Without a batch, they are appended however often it is called.

    A partitioned table gets the columns that it does not have yet.
    """
    writer = rows.write.mode("append")
    if target is not None and target.partition_by:
        writer = writer.partitionBy(*target.partition_by).option("mergeSchema", "true")
    if batch is not None:
        writer = writer.option("txnAppId", batch.query_id).option("txnVersion", batch.batch_id)
    save_table(rows.sparkSession, writer, table)


def append_alone(rows: DataFrame, quarantine: TableAddress, batch: Batch | None, lock: TableLock) -> None:
    """Append the rows to a quarantine table, as `append`, while nobody else writes it."""
    with ALONE, lock(quarantine.path):
        append(rows, quarantine, batch)


def _commit_again(batch: Batch, target: Target, rows: DataFrame, bad: DataFrame, lock: TableLock) -> BatchCounts:
    # an observation would wait for ever: a write that Delta skips runs no query
    append(_good(rows), target.table, batch, target)
    rows_bad = bad.count()
    if rows_bad:
        append_alone(bad, target.quarantine, batch, lock)
    rows_in = rows.count()
    return BatchCounts(rows_in, rows_in - rows_bad, rows_bad)


def _good(rows: DataFrame) -> DataFrame:
    return rows.where(~F.col(REFUSED)).drop(REFUSED)
