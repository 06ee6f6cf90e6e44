"""Records of finished tasks that nobody looks at any more leave control/rounds."""

from __future__ import annotations

from datetime import datetime

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from demux.core.storage import table_exists
from demux.core.tables import Layout

# of each game: what the plan, the status and estimates are made from
_KEPT = 20
_IDENTITY = ("round_id", "game_name", "finished_at")


def old_rounds(spark: SparkSession, layout: Layout, before: datetime) -> DataFrame | None:
    """Return the records that ended before this time, but for each game's newest 20; None where there is no table.

    How far bronze was looked at is in the newest ones, which stay.
    """
    if not table_exists(spark, layout.rounds):
        return None
    rows = spark.read.format("delta").load(layout.rounds).where("game_name IS NOT NULL")
    newest = F.row_number().over(Window.partitionBy("game_name").orderBy(F.desc("finished_at"), F.desc("round_id")))
    old = rows.withColumn("_newest", newest).where((F.col("finished_at") < F.lit(before)) & (F.col("_newest") > _KEPT))
    return old.select(*_IDENTITY)


def remove_old_rounds(spark: SparkSession, layout: Layout, before: datetime, *, dry_run: bool) -> int:
    """Remove such records, and return how many they are; a second call finds none."""
    old = old_rounds(spark, layout, before)
    rows = 0 if old is None else old.count()
    if old is not None and rows and not dry_run:
        same = " AND ".join(f"t.{name} = o.{name}" for name in _IDENTITY)
        table = DeltaTable.forPath(spark, layout.rounds).alias("t")
        table.merge(old.distinct().alias("o"), same).whenMatchedDelete().execute()
    return rows
