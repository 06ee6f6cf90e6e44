"""What bronze is, and what it has, by its log."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from demux.core.catalog.spark_tables import open_table, read_table
from demux.core.delta.scan import only_spark_reads
from demux.core.root.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def position_id(spark: SparkSession | None, layout: Layout) -> str:
    """Return the id of the transactions whose versions are offsets in this root's bronze (`bronze_offset`).

    Bronze that is another table gives another id. Costs a Spark job where only Spark can open the table.

    Raises:
        TableUnsuited: only Spark can, and there is no session.
    """
    return metadata_of(spark, layout)[0]


def metadata_of(spark: SparkSession | None, layout: Layout) -> tuple[str, Mapping[str, str]]:
    """Return `position_id`, and the properties of bronze's table."""
    if (table := layout.storage.known_table(layout.bronze)) is not None:
        metadata = table.metadata()
        return f"demux/{metadata.id}", metadata.configuration
    if spark is None:
        raise only_spark_reads(layout.bronze)
    detail = open_table(spark, layout.storage.address(layout.bronze)).detail().select("id", "properties").first()
    assert detail is not None
    return f"demux/{detail.id}", detail.properties


def games_in_bronze(spark: SparkSession | None, layout: Layout, among: Collection[str] | None = None) -> frozenset[str]:
    """Return the exact names of all games that have rows in bronze, or of those among them.

    Reads the table's log; where only Spark opens the table, the footers of all its files, or of those of these games.
    """
    if (table := layout.storage.known_table(layout.bronze)) is not None:
        found: frozenset[str | None] = frozenset(partition["game_name"] for partition in table.partitions())
        return frozenset(name for name in found if name is not None and (among is None or name in among))
    if not layout.storage.table_exists(layout.bronze):
        return frozenset()
    if spark is None:
        raise only_spark_reads(layout.bronze)
    names = read_table(spark, layout.storage.address(layout.bronze)).select("game_name").where("game_name IS NOT NULL")
    if among is not None:
        from pyspark.sql import functions as F

        names = names.where(F.col("game_name").isin(sorted(among)))
    return frozenset(row.game_name for row in names.distinct().collect())
