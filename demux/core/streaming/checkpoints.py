"""What a query's checkpoint says, and whether it still fits the tables that the query wrote."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from demux.core.delta.log import newest_transaction
from demux.core.errors import CheckpointLost, TableLost
from demux.core.storage.files import Storage
from demux.core.streaming.bronze_offset import BronzeOffset, position_in


@dataclass(frozen=True, slots=True)
class StreamCheckpoint:
    """How far a checkpoint is.

    Attributes:
        query_id: the query's own id; None when there is no checkpoint.
        begun: the last batch begun, -1 for none.
        done: the last batch done, -1 for none.
    """

    query_id: str | None
    begun: int
    done: int

    @property
    def unfinished(self) -> int | None:
        """The batch that was begun and not done."""
        return self.begun if self.begun > self.done else None


def read_checkpoint(storage: Storage, checkpoint: str) -> StreamCheckpoint:
    """Return how far the checkpoint is."""
    found = [file.key for file in storage.files(checkpoint)]
    if "metadata" not in found:
        return StreamCheckpoint(None, -1, -1)
    query_id = json.loads(storage.read_text(f"{checkpoint}/metadata"))["id"]
    return StreamCheckpoint(query_id, _last(found, "offsets"), _last(found, "commits"))


def end_of(storage: Storage, checkpoint: str, batch: int) -> BronzeOffset:
    """Return the position in bronze after a batch of a game's stream: Spark writes it down before the batch begins."""
    return position_in(storage.read_text(f"{checkpoint}/offsets/{batch}"))


def require_checkpoint(
    spark: SparkSession, storage: Storage, checkpoint: str, table: str, quarantine: str, quarantined: str, rebuild: str
) -> None:
    """Check that the rows which a query wrote still have that query's checkpoint, and not an older copy of it.

    Without it the query would restart and write everything a second time; with an older one Delta would take new
    batches for old ones and skip them without a word.

    Args:
        spark: the session.
        storage: how files are reached.
        checkpoint: the checkpoint's path.
        table: path of the table that the query writes first in each batch.
        quarantine: path of the quarantine table.
        quarantined: SQL condition of the query's own rows there.
        rebuild: the command that makes the rows again.

    Raises:
        CheckpointLost: the checkpoint is gone, has lost its offsets, or is older than the table.
        TableLost: the checkpoint is there, and the table is gone: what that held would not come back.
    """
    found = read_checkpoint(storage, checkpoint)
    if not storage.table_exists(table):
        # every batch that is done has made the table
        if found.done >= 0:
            raise TableLost(
                f"The table {table} is gone, and the query that wrote it has its checkpoint {checkpoint}.",
                f"Run `{rebuild}` to make the table again from its source, or put the table back.",
                table=table,
                checkpoint=checkpoint,
            )
        return
    if found.query_id is not None and found.begun >= 0:
        written = newest_transaction(storage, table, found.query_id)
        if written is None or written <= found.begun:
            return
        state = f"is older than the table: it knows batch {found.begun}, the table has batch {written}"
    elif _has_rows(spark, storage, table, "TRUE") or _has_rows(spark, storage, quarantine, quarantined):
        state = "is gone"
    else:
        return
    raise CheckpointLost(
        f"The table {table} was written by a query whose checkpoint {checkpoint} {state}.",
        f"Run `{rebuild}` to make the table again from its source, or put the checkpoint back.",
        table=table,
        checkpoint=checkpoint,
    )


def _has_rows(spark: SparkSession, storage: Storage, table: str, condition: str) -> bool:
    if not storage.table_exists(table):
        return False
    return bool(spark.read.format("delta").load(table).where(condition).limit(1).count())


def _last(paths: Iterable[str], folder: str) -> int:
    parted = (path.rpartition("/") for path in paths)
    return max((int(name) for within, _, name in parted if within == folder and name.isdigit()), default=-1)
