"""Rows that are taken out of quarantine for good, and written down: the ledger must count them.

They are written down first. Should the process die in between, a row is in both tables, and counts as quarantined:
`finish_drop` then forgets that it was dropped, and what was under way may restart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.core.causes import Stage
from demux.core.root.layout import Layout
from demux.core.storage import table_exists
from demux.core.tables import DROPPED
from demux.operations.quarantine.filter import QuarantineFilter

# what tells a row of quarantine from all others, but for copies that its source holds
_IDENTITY = ("stage", "cause", "game_name", "record_id", "quarantined_at")
_SAME = " AND ".join(f"q.{name} <=> d.{name}" for name in _IDENTITY)


@dataclass(frozen=True, slots=True)
class Droppable:
    """Rows of a cause: `game` is None at stage bronze, where a name that was refused is no game."""

    stage: str
    cause: str
    game: str | None
    rows: int


def droppable(spark: SparkSession, layout: Layout, choice: QuarantineFilter) -> tuple[Droppable, ...]:
    """Return how many rows of quarantine are meant, by stage, cause and game; those with most rows first."""
    if not table_exists(spark, layout.quarantine):
        return ()
    game = F.when(F.col("stage") == Stage.SILVER.value, F.col("game_name")).alias("game")
    counted = chosen(spark, layout, choice).groupBy("stage", "cause", game).count().collect()
    found = (Droppable(row.stage, row.cause, row.game, row["count"]) for row in counted)
    return tuple(sorted(found, key=lambda one: (-one.rows, one.stage, one.cause, one.game or "")))


def drop(spark: SparkSession, layout: Layout, choice: QuarantineFilter, now: datetime) -> None:
    """Take the rows that are meant out of quarantine, and write them down in the table of dropped rows, without bytes.

    A second call, also after a crash in between, leaves the tables as one call does. Their old files keep the bytes
    until a VACUUM.

    Args:
        spark: the session.
        layout: where the tables are.
        choice: which rows.
        now: the time of dropping (UTC).
    """
    finish_drop(spark, layout, choice)
    rows = chosen(spark, layout, choice).withColumn("dropped_at", F.lit(now))
    rows.select(*(column.name for column in DROPPED)).write.format("delta").mode("append").save(layout.dropped)
    # only what is written down goes: other rows may have come meanwhile
    dropped = spark.read.format("delta").load(layout.dropped)
    gone = dropped.where(F.col("dropped_at") == F.lit(now)).select(*_IDENTITY).distinct()
    quarantine = DeltaTable.forPath(spark, layout.quarantine).alias("q")
    quarantine.merge(gone.alias("d"), f"{_SAME} AND {choice.sql('q.')}").whenMatchedDelete().execute()


def finish_drop(spark: SparkSession, layout: Layout, choice: QuarantineFilter) -> None:
    """Forget of the rows that are meant that they were dropped, where they are still in quarantine: a drop was killed.

    A second call does nothing.
    """
    if not table_exists(spark, layout.dropped) or not table_exists(spark, layout.quarantine):
        return
    there = chosen(spark, layout, choice).select(*_IDENTITY).distinct()
    dropped = spark.read.format("delta").load(layout.dropped).where(choice.sql())
    both = [F.col(f"d.{name}").eqNullSafe(F.col(f"q.{name}")) for name in _IDENTITY]
    if dropped.alias("d").join(there.alias("q"), both, "left_semi").limit(1).count():
        table = DeltaTable.forPath(spark, layout.dropped).alias("d")
        table.merge(there.alias("q"), f"{_SAME} AND {choice.sql('d.')}").whenMatchedDelete().execute()


def delete_rows(spark: SparkSession, table: str, condition: str) -> None:
    """Delete the rows that meet the SQL condition, if there are any; a second call does nothing.

    So go, when a game is decoded again from bronze, its rows of quarantine, and what was said of those dropped: what is
    still bad is there again.
    """
    if table_exists(spark, table) and spark.read.format("delta").load(table).where(condition).limit(1).count():
        DeltaTable.forPath(spark, table).delete(condition)


def rows_of(found: Sequence[Droppable]) -> int:
    """Return how many rows these are."""
    return sum(one.rows for one in found)


def chosen(spark: SparkSession, layout: Layout, choice: QuarantineFilter) -> DataFrame:
    """Return the rows of quarantine that match; the table must be there."""
    return spark.read.format("delta").load(layout.quarantine).where(choice.sql())
