"""One micro-batch into two tables, exactly once: its good rows into their table, its bad rows into quarantine.

Both writes carry the query's own id and the batch's number as Delta's application transaction, so a batch that comes
again is not written again. The good rows are written first. Should the process die in between, and a schema appear
before the retry, the retry must not decide again which rows were bad: what the table does not have goes to quarantine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from demux.core.causes import Cause
from demux.core.delta.app_transactions import Batch
from demux.core.root.lock import TableLock, unlocked

# marks a row of the batch that has no place in the good table; not a column of any table
REFUSED = "_refused"

_TOO_LATE = "The batch was interrupted; this row could not be decoded then and can be now: replay it."


class RowSelection(Enum):
    """Which rows of the batch a frame of quarantine rows holds."""

    REFUSED = "refused"
    ALL = "all"


class OnRetry(Enum):
    """How a batch that was begun before finds its bad rows.

    Attributes:
        DECIDE_AGAIN: for decisions that depend on the record's own bytes alone.
        TABLE_DECIDES: for decisions that also depend on the world (schemas); needs a lasting `record_id`.
    """

    DECIDE_AGAIN = "decide again"
    TABLE_DECIDES = "table decides"


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """What became of a batch, in rows."""

    rows_in: int
    rows_good: int
    rows_quarantined: int


@dataclass(frozen=True, slots=True)
class Target:
    """Where a batch goes.

    Attributes:
        table: path of the good rows' table.
        quarantine: path of the quarantine table.
        on_retry: see `OnRetry`.
        record_id: the column of `table` that identifies a record.
        partition_by: the partition columns of `table`.
        lock: held around each write of the quarantine table, which other processes may write too.
    """

    table: str
    quarantine: str
    on_retry: OnRetry
    record_id: str = "record_id"
    partition_by: tuple[str, ...] = ()
    lock: TableLock = unlocked


def commit(
    spark: SparkSession, batch: Batch, target: Target, rows: DataFrame, examined: Callable[[RowSelection], DataFrame]
) -> BatchCounts:
    """Write the batch and return its counts; safe to call again for the same batch.

    Args:
        spark: the session.
        batch: the transactions' identity.
        target: where to write.
        rows: every row of the batch in the table's columns, and `REFUSED`: true for the bad ones.
        examined: makes quarantine rows of the batch; in `RowSelection.ALL` the good ones have a NULL cause.
    """
    if batch.retried:
        return _commit_again(spark, batch, target, rows, examined)
    seen = Observation()
    bad = F.coalesce(F.sum(F.col(REFUSED).cast("long")), F.lit(0))
    append(_good(rows.observe(seen, F.count(F.lit(1)).alias("rows"), bad.alias("bad"))), target.table, batch, target)
    # asked once: each asking costs Spark 4 an exception in the JVM
    found = seen.get
    counts = BatchCounts(found["rows"], found["rows"] - found["bad"], found["bad"])
    if counts.rows_quarantined:
        with target.lock(target.quarantine):
            append(examined(RowSelection.REFUSED), target.quarantine, batch)
    return counts


def append(rows: DataFrame, table: str, batch: Batch | None, target: Target | None = None) -> None:
    """Append the rows to the table, once for each batch; partitioned as the target says when the table is new.

    Without a batch, they are appended however often it is called.

    A partitioned table gets the columns that it does not have yet.
    """
    writer = rows.write.format("delta").mode("append")
    if target is not None and target.partition_by:
        writer = writer.partitionBy(*target.partition_by).option("mergeSchema", "true")
    if batch is not None:
        writer = writer.option("txnAppId", batch.query_id).option("txnVersion", batch.batch_id)
    writer.save(table)


def _commit_again(
    spark: SparkSession, batch: Batch, target: Target, rows: DataFrame, examined: Callable[[RowSelection], DataFrame]
) -> BatchCounts:
    # an observation would wait for ever: a write that Delta skips runs no query
    append(_good(rows), target.table, batch, target)
    everything = examined(RowSelection.ALL)
    match target.on_retry:
        case OnRetry.DECIDE_AGAIN:
            bad = everything.where(F.col("cause").isNotNull())
        case OnRetry.TABLE_DECIDES:
            written = spark.read.format("delta").load(target.table)
            bad = everything.join(
                written.select(F.col(target.record_id).alias("record_id")), "record_id", "left_anti"
            ).select(*everything.columns)
            bad = bad.withColumn("sentence", F.coalesce("sentence", F.lit(_TOO_LATE))).withColumn(
                "cause", F.coalesce("cause", F.lit(Cause.INTERRUPTED.value))
            )
    rows_bad = bad.count()
    if rows_bad:
        with target.lock(target.quarantine):
            append(bad, target.quarantine, batch)
    rows_in = rows.count()
    return BatchCounts(rows_in, rows_in - rows_bad, rows_bad)


def _good(rows: DataFrame) -> DataFrame:
    return rows.where(~F.col(REFUSED)).drop(REFUSED)
