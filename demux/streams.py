"""One AvailableNow query over a Delta table, its checkpoint checked before, and its failure told in our words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from demux.errors import CheckpointLost
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


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a checkpoint says: the last batch begun and the last batch done, -1 for none."""

    begun: int
    done: int

    @property
    def unfinished(self) -> int | None:
        """The batch that was begun and not done."""
        return self.begun if self.begun > self.done else None


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


def require_checkpoint(spark: SparkSession, checkpoint: str, written: dict[str, str], rebuild: str) -> None:
    """Check that rows which a query wrote still have that query's checkpoint.

    Without it the query would begin anew and write everything a second time.

    Args:
        spark: the session.
        checkpoint: the checkpoint's path.
        written: for each table that the query writes, its path and the SQL condition of the query's own rows.
        rebuild: the command that makes the rows again.

    Raises:
        CheckpointLost: there are such rows and the checkpoint is not there, or has lost its offsets.
    """
    if read_checkpoint(spark, checkpoint).begun >= 0:
        return
    for table, condition in written.items():
        if table_exists(spark, table) and spark.read.format("delta").load(table).where(condition).limit(1).count():
            raise CheckpointLost(
                f"The table {table} was written by a query whose checkpoint {checkpoint} is gone.",
                f"Run `{rebuild}` to make the table again from its source, or put the checkpoint back.",
                table=table,
                checkpoint=checkpoint,
            )


def read_checkpoint(spark: SparkSession, checkpoint: str) -> Checkpoint:
    """Return how far the checkpoint is; `Checkpoint(-1, -1)` when there is none."""
    return Checkpoint(_last(spark, f"{checkpoint}/offsets"), _last(spark, f"{checkpoint}/commits"))


def table_exists(spark: SparkSession, path: str) -> bool:
    """Return whether a Delta table is at the path."""
    return bool(file_names(spark, f"{path}/_delta_log"))


def file_names(spark: SparkSession, folder: str) -> list[str]:
    """Return the names in a folder of any file system that Spark reads, sorted; none when there is no folder."""
    path, system = _hadoop(spark, folder)
    if not system.exists(path):
        return []
    return sorted(str(status.getPath().getName()) for status in system.listStatus(path))


def read_text(spark: SparkSession, file: str) -> str:
    """Return a file's text (UTF-8) from any file system that Spark reads."""
    path, system = _hadoop(spark, file)
    stream = system.open(path)
    try:
        return str(_jvm(spark).org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()


def remove_folder(spark: SparkSession, folder: str) -> None:
    """Remove a folder and all inside; a second call does nothing."""
    path, system = _hadoop(spark, folder)
    system.delete(path, True)


def _last(spark: SparkSession, folder: str) -> int:
    return max((int(name) for name in file_names(spark, folder) if name.isdigit()), default=-1)


def _hadoop(spark: SparkSession, path: str) -> tuple[Any, Any]:
    location = _jvm(spark).org.apache.hadoop.fs.Path(path)
    return location, location.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())


def _jvm(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm
