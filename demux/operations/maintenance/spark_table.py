"""Maintenance of one table by Spark: where the root is on a mount, or a table asks for what only Spark knows."""

from __future__ import annotations

import math
import time
from datetime import timedelta

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from demux.core.catalog.spark_tables import open_table, sql_name
from demux.core.delta.log import newest_version
from demux.core.names import quote_identifier
from demux.core.spark.connect import new_session
from demux.core.storage.files import Storage
from demux.operations.maintenance.compaction_plan import LastSort
from demux.operations.maintenance.report import Table, TableMaintenance
from demux.operations.maintenance.state import SparkTableState

_SMALL = "spark.databricks.delta.optimize.minFileSize"
_TARGET = "spark.databricks.delta.optimize.maxFileSize"
# it keeps people from keeping too little; we have asked for --force
_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


def upkeep_session(spark: SparkSession, target: int) -> SparkSession:
    """Return a session with settings of its own, in which files are joined up to this size."""
    return new_session(spark, {_SMALL: str(target // 2), _TARGET: str(target), _CHECK: "false"})


def maintain_by_spark(
    spark: SparkSession, storage: Storage, table: Table, seen: SparkTableState | None, *, dry_run: bool
) -> tuple[TableMaintenance, SparkTableState, LastSort | None]:
    """Compact and sort the table, and return what was done; an unchanged table is left alone."""
    now_ms = int(time.time() * 1000)
    version = newest_version(storage, table.path)
    address = storage.address(table.path)
    opened = open_table(spark, address)
    if dry_run or (seen is not None and seen.version == version):
        files, size = _detail(opened)
        return TableMaintenance(table, files, files, size), seen or SparkTableState(version, now_ms), None
    before, _ = _detail(opened)
    names = set(opened.toDF().columns)
    columns = tuple(column for column in table.order if column in names)
    if columns:
        # the builder of Delta's own takes a dot in a name for a field's
        by = ", ".join(map(quote_identifier, columns))
        spark.sql(f"OPTIMIZE {sql_name(spark, address)} ZORDER BY ({by})")
    else:
        opened.optimize().executeCompaction()
    after, size = _detail(open_table(spark, address))
    vacuumed = None if seen is None else seen.vacuumed_ms
    now = SparkTableState(newest_version(storage, table.path), now_ms, vacuumed)
    return TableMaintenance(table, before, after, size), now, LastSort(columns, now_ms) if columns else None


def vacuum(
    spark: SparkSession, storage: Storage, table: Table, seen: SparkTableState, keep: timedelta
) -> SparkTableState:
    """Remove the files that no recent version needs, and return the table's new state.

    Nothing is done where that was done after the last change had become old enough.

    Args:
        keep: how long a file stays that was removed from the table; counted in whole hours.
    """
    now_ms, keep_ms = int(time.time() * 1000), keep // timedelta(milliseconds=1)
    if seen.vacuumed_ms is not None and seen.vacuumed_ms > seen.changed_ms + keep_ms:
        return seen
    # Delta rounds to the nearest whole hour, which may be less
    open_table(spark, storage.address(table.path)).vacuum(float(math.ceil(keep / timedelta(hours=1))))
    # Spark may write down that it did
    return SparkTableState(newest_version(storage, table.path), seen.changed_ms, now_ms)


def _detail(table: DeltaTable) -> tuple[int, int]:
    row = table.detail().select("numFiles", "sizeInBytes").first()
    return (0, 0) if row is None else (int(row.numFiles), int(row.sizeInBytes))
