"""Maintenance of a table by Spark: rows stay as they are, what was done is not done twice, and what waits is kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import Row, SparkSession

from demux.upkeep.by_spark import tidy, upkeep_session, vacuum
from demux.upkeep.files import Ordering
from demux.upkeep.report import Kind, Table

TARGET = 2**20


def table_of(spark: SparkSession, folder: Path, *order: str) -> Table:
    """A table with columns that a path has other names of, which only Spark can write."""
    table = Table(Kind.SILVER, str(folder / "table"), "silver/x", order)
    for number in range(5):
        rows = spark.createDataFrame([(number, "a"), (9 - number, None)], "number long, `the text` string")
        options = {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
        rows.coalesce(1).write.format("delta").options(**options).mode("append").save(table.path)
    return table


def rows_of(spark: SparkSession, table: Table) -> Sequence[Row]:
    return sorted(spark.read.format("delta").load(table.path).collect(), key=str)


def files(table: Table) -> int:
    return len([file for file in Path(table.path).rglob("*.parquet") if "_delta_log" not in file.parts])


@pytest.mark.parametrize("order", [(), ("gone", "the text")], ids=["joined", "ordered"])
def test_small_files_are_joined_or_ordered_once_and_old_ones_removed_once(
    spark: SparkSession, tmp_path: Path, order: tuple[str, ...]
) -> None:
    session, table = upkeep_session(spark, TARGET), table_of(spark, tmp_path, *order)
    before = rows_of(spark, table)
    forecast, _, _ = tidy(session, table, None, dry_run=True)
    assert (forecast.files_before, forecast.files_after) == (5, 5)
    done, seen, ordered = tidy(session, table, None, dry_run=False)
    assert (done.files_before, done.files_after, rows_of(spark, table)) == (5, 1, before)
    assert ordered == (Ordering(("the text",), seen.changed_ms) if order else None)
    log = Path(table.path, "_delta_log", f"{seen.version:020}.json").read_text("utf-8")
    assert (log.count('"dataChange":false'), log.count('"dataChange":true')) == (6, 0)

    kept = vacuum(session, table, seen, timedelta(hours=1))
    assert (files(table), kept.vacuumed_ms is None) == (6, False)
    gone = vacuum(session, table, seen, timedelta(0))
    assert (files(table), rows_of(spark, table)) == (1, before)
    # what was seen needs no look at any file
    again, unchanged, _ = tidy(session, table, gone, dry_run=False)
    assert (again.files_after, unchanged) == (1, gone)
    assert vacuum(session, table, gone, timedelta(0)) == gone
    assert DeltaTable.forPath(spark, table.path).history(1).collect()[0].version == gone.version
    assert session.conf.get("spark.databricks.delta.retentionDurationCheck.enabled") == "false"
    assert spark.conf.get("spark.databricks.delta.retentionDurationCheck.enabled", "true") == "true"
