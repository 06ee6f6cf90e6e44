"""One AvailableNow query over a Delta table, and its failure told in our words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from demux.checkpoints import read_checkpoint
from demux.failures import named

QUERY_ID = "sql.streaming.queryId"


@dataclass(frozen=True, slots=True)
class Batch:
    """Which micro-batch of which query this is: the identity of all that it writes.

    Attributes:
        query_id: the query's own id, from its checkpoint.
        batch_id: counts from 0 in the life of a checkpoint.
        retried: the batch was begun before, and may have written some of its tables.
    """

    query_id: str
    batch_id: int
    retried: bool


def run_available(
    spark: SparkSession,
    source: DataFrame,
    checkpoint: str,
    query_name: str,
    on_batch: Callable[[DataFrame, Batch], None],
) -> None:
    """Run the query until everything that is there now has been through `on_batch`.

    A second run continues where the checkpoint says; an unfinished batch comes again with `retried`.

    Args:
        spark: the session.
        source: a streaming frame.
        checkpoint: the checkpoint's path.
        query_name: shown in logs and the Spark UI.
        on_batch: writes one micro-batch; what it writes must be safe to write again for the same `Batch`.

    Raises:
        DemuxError: what `on_batch` raised, or the query's own failure in our words.
    """
    unfinished = read_checkpoint(spark, checkpoint).unfinished
    raised: list[Exception] = []

    def each(frame: DataFrame, batch_id: int) -> None:
        query_id = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
        assert query_id is not None
        try:
            on_batch(frame, Batch(query_id, batch_id, retried=batch_id == unfinished))
        except Exception as error:
            raised.append(error)
            raise

    try:
        query = (
            source.writeStream.foreachBatch(each)
            .option("checkpointLocation", checkpoint)
            .queryName(query_name)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    except Exception as error:
        # the query wraps what our own code raised into text; the original says more
        raise named(raised[0] if raised else error) from error
