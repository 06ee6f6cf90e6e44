"""Maintenance of a table by Spark: rows stay as they are, what was done is not done twice, and what waits is kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from threading import Event

import pytest
from delta.tables import DeltaTable
from deltalake import DeltaTable as DeltaTableHere
from pyspark.sql import Row, SparkSession

from demux.core.root.layout import Layout
from demux.core.settings.maintenance import MaintainSettings
from demux.core.storage.files import Storage
from demux.core.tables import ROUNDS
from demux.operations.maintenance.compaction_plan import LastSort
from demux.operations.maintenance.report import Table, TableKind, Vacuum
from demux.operations.maintenance.retention import remove_old_rounds
from demux.operations.maintenance.run import MaintenanceRequest, TableMaintainer, tables_of
from demux.operations.maintenance.spark_table import maintain_by_spark, upkeep_session, vacuum
from demux.operations.reconcile.offsets import GameOffset
from tests.support.spark.tables import bronze_row, read, write, write_bronze

TARGET = 2**20


def table_of(spark: SparkSession, folder: Path, *order: str) -> Table:
    """A table with columns that a path has other names of, which only Spark can write."""
    table = Table(TableKind.SILVER, str(folder / "table"), "silver/x", order)
    for number in range(2):
        rows = spark.createDataFrame([(number, "a"), (9 - number, None)], "number long, `the text` string")
        options = {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
        rows.coalesce(1).write.format("delta").options(**options).mode("append").save(table.path)
    return table


def rows_of(spark: SparkSession, table: Table) -> Sequence[Row]:
    return sorted(spark.read.format("delta").load(table.path).collect(), key=str)


def files(table: Table) -> int:
    return len([file for file in Path(table.path).rglob("*.parquet") if "_delta_log" not in file.parts])


def names_in(table: Table) -> set[str]:
    return {Path(uri).name for uri in DeltaTableHere(table.path).file_uris()}


@pytest.mark.parametrize("order", [(), ("gone", "the text")], ids=["joined", "ordered"])
def test_small_files_are_joined_or_ordered_once_and_old_ones_removed_once(
    spark: SparkSession, tmp_path: Path, order: tuple[str, ...]
) -> None:
    session, table = upkeep_session(spark, TARGET), table_of(spark, tmp_path, *order)
    before = rows_of(spark, table)
    forecast, _, _ = maintain_by_spark(session, Storage(), table, None, dry_run=True)
    assert (forecast.files_before, forecast.files_after) == (2, 2)
    done, seen, ordered = maintain_by_spark(session, Storage(), table, None, dry_run=False)
    assert (done.files_before, done.files_after, rows_of(spark, table)) == (2, 1, before)
    assert ordered == (LastSort(("the text",), seen.changed_ms) if order else None)
    log = Path(table.path, "_delta_log", f"{seen.version:020}.json").read_text("utf-8")
    assert (log.count('"dataChange":false'), log.count('"dataChange":true')) == (3, 0)

    kept = vacuum(session, Storage(), table, seen, timedelta(hours=1))
    assert (files(table), kept.vacuumed_ms is None) == (3, False)
    gone = vacuum(session, Storage(), table, seen, timedelta(0))
    assert (files(table), rows_of(spark, table)) == (1, before)
    # what was seen needs no look at any file
    again, unchanged, _ = maintain_by_spark(session, Storage(), table, gone, dry_run=False)
    assert (again.files_after, unchanged) == (1, gone)
    assert vacuum(session, Storage(), table, gone, timedelta(0)) == gone
    assert DeltaTable.forPath(spark, table.path).history(1).collect()[0].version == gone.version
    assert session.conf.get("spark.databricks.delta.retentionDurationCheck.enabled") == "false"
    assert spark.conf.get("spark.databricks.delta.retentionDurationCheck.enabled", "true") == "true"


def test_elsewhere_bronze_keeps_what_came_since_the_first_that_a_game_has_still_to_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = f"t{abs(hash(str(tmp_path))) % 10**9}"
    spark.sparkContext._jsc.hadoopConfiguration().set(f"fs.viewfs.mounttable.{table}.link./lake", tmp_path.as_uri())
    here, there = (
        Layout(str(tmp_path)),
        Layout(f"viewfs://{table}/lake", Storage(mounts={f"viewfs://{table}/lake": str(tmp_path)})),
    )
    for offset in range(5):
        write_bronze(here.bronze, bronze_row("chess", offset), bronze_row("go", 9 - offset))
    bronze = Table(TableKind.BRONZE, here.bronze, "bronze")
    settings = MaintainSettings(keep="0s")
    offsets = {"chess": 2, "go": 5}

    def maintained() -> TableMaintainer:
        request = MaintenanceRequest(settings, Vacuum.YES, False, datetime.now(timezone.utc), "a", threads=1)
        offsets_of = {key: GameOffset(at, "a") for key, at in offsets.items()}
        upkeep = TableMaintainer(spark, there, request, lambda _: offsets_of, lambda: None, Event())
        found = list(upkeep.run(tables_of(there, settings, {}, ())))
        assert [(one.table.kind, one.error, one.files_after, one.removed) for one in found] == [
            (TableKind.BRONZE, None, 2, None)
        ]
        return upkeep

    for folder in (here.silver("chess"), here.silver("go")):
        Path(folder).mkdir(parents=True)
    assert [(one.game, one.files) for one in maintained().held_back] == [("chess", None)]
    assert files(bronze) == 12
    # once all is read they go, though the table is as it was
    offsets["chess"] = 5
    assert maintained().held_back == []
    assert files(bronze) == 2


def test_old_records_of_tasks_go_but_for_the_newest_of_each_game(spark: SparkSession, tmp_path: Path) -> None:
    layout, begun = Layout(str(tmp_path)), datetime(2026, 1, 1, tzinfo=timezone.utc)
    assert remove_old_rounds(spark, layout, begun, dry_run=False) == 0
    ended = [("chess", at) for at in range(30)] + [("go", at) for at in range(3)] + [(None, 0)]
    records = [
        {"round_id": f"r{at}", "game_name": game, "finished_at": begun + timedelta(days=at)} for game, at in ended
    ]
    write(layout.rounds, ROUNDS, records)
    before = begun + timedelta(days=8)
    assert remove_old_rounds(spark, layout, before, dry_run=True) == 8
    assert len(read(layout.rounds, "round_id")) == 34
    assert [remove_old_rounds(spark, layout, before, dry_run=False) for _ in range(2)] == [8, 0]
    left = [*((game, f"r{at}") for game, at in ended if game != "chess" or at >= 8)]
    assert sorted(map(str, read(layout.rounds, "game_name", "round_id"))) == sorted(map(str, left))
    # however old: the newest say how far bronze was looked at
    assert remove_old_rounds(spark, layout, begun + timedelta(days=99), dry_run=False) == 2
