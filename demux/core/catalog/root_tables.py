"""Bronze, quarantine and the control tables, each known to the catalog by its name before its first row."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import SparkSession

from demux.core.catalog.registration import is_known, make_known
from demux.core.catalog.spark_tables import save_table
from demux.core.columns.spark import spark_struct
from demux.core.columns.types import Struct
from demux.core.root.layout import Layout
from demux.core.tables import (
    APPROVALS,
    BACKFILLS,
    DEPLOYMENTS,
    DROPPED,
    FORGET,
    GAMES,
    GAPS,
    QUARANTINE,
    REMOVED,
    ROUNDS,
    SCHEMAS,
    TOPICS,
)

_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class RootTable:
    """A table of a root that is there once, whatever the games.

    Attributes:
        path: where it is.
        columns: what it is made with.
        partition_by: the column that it is partitioned by; None for none.
    """

    path: str
    columns: Struct
    partition_by: str | None = None


def root_tables(layout: Layout, bronze: Struct) -> tuple[RootTable, ...]:
    """Return all tables of a root but the games', those too that are not there yet; bronze with these columns."""
    return (
        RootTable(layout.bronze, bronze, "game_name"),
        RootTable(layout.quarantine, QUARANTINE),
        RootTable(layout.schemas, SCHEMAS),
        RootTable(layout.games, GAMES),
        RootTable(layout.deployments, DEPLOYMENTS),
        RootTable(layout.rounds, ROUNDS),
        RootTable(layout.topics, TOPICS),
        RootTable(layout.gaps, GAPS),
        RootTable(layout.dropped, DROPPED),
        RootTable(layout.removed, REMOVED),
        RootTable(layout.backfills, BACKFILLS),
        RootTable(layout.approvals, APPROVALS),
        RootTable(layout.forget, FORGET),
    )


def make_root_tables(spark: SparkSession, layout: Layout, bronze: Struct) -> None:
    """Make the tables that are not there, and let the catalog have all; a second call, or no catalog, changes nothing.

    Args:
        bronze: the columns of bronze.

    Raises:
        CatalogConflict, CatalogRefused: as `make_known`.
    """
    if layout.storage.catalog is None:
        return
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="tables") as pool:
        for _ in pool.map(lambda table: _make(spark, layout, table), root_tables(layout, bronze)):
            pass


def _make(spark: SparkSession, layout: Layout, table: RootTable) -> None:
    storage, path = layout.storage, table.path
    if is_known(storage.address(path)):
        return
    schema = spark_struct(table.columns)
    if not storage.table_exists(path):
        if storage.reaches_tables(path):
            storage.create_table(path, schema.jsonValue(), partition_by=table.partition_by)
        else:
            writer = spark.createDataFrame([], schema).write.mode("append")
            writer = writer if table.partition_by is None else writer.partitionBy(table.partition_by)
            save_table(spark, writer, storage.address(path))
    make_known(spark, storage.address(path))
