"""What bronze has, by its log."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from demux.core.root.layout import Layout
from demux.core.storage import table_exists


def games_in_bronze(spark: SparkSession, layout: Layout, among: Collection[str] | None = None) -> frozenset[str]:
    """Return the exact names of all games that have rows in bronze, or of those among them.

    Reads the table's log; where only Spark opens the table, the footers of all its files, or of those of these games.
    """
    if (table := layout.storage.known_table(layout.bronze)) is not None:
        found: frozenset[str | None] = frozenset(partition["game_name"] for partition in table.partitions())
        return frozenset(name for name in found if name is not None and (among is None or name in among))
    if not table_exists(spark, layout.bronze):
        return frozenset()
    names = spark.read.format("delta").load(layout.bronze).select("game_name").where("game_name IS NOT NULL")
    if among is not None:
        names = names.where(F.col("game_name").isin(sorted(among)))
    return frozenset(row.game_name for row in names.distinct().collect())
