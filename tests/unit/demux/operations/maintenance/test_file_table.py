"""Maintenance of a table without Spark: rows stay as they are, and only what nobody needs goes."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from demux.core.delta.parquet_writer import suits
from demux.core.storage.files import Storage
from demux.operations.maintenance.compaction_plan import LastSort, LiveFile
from demux.operations.maintenance.file_table import live_files, maintain_files, remove, unneeded_files
from demux.operations.maintenance.report import Table, TableKind, TableMaintenance

TARGET = 2**20
NOW = timedelta(0)


def table_of(tmp_path: Path, *order: str) -> Table:
    return Table(TableKind.SILVER, str(tmp_path / "a ä b" / "table"), "silver/x", order)


def fill(table: Table, *partitions: str, files: int = 5) -> None:
    for number in range(files):
        for partition in partitions:
            rows = pa.table({"game_name": [partition] * 2, "number": [number, 100 - number], "text": ["a", None]})
            write_deltalake(table.path, rows, mode="append", partition_by=["game_name"])


def rows_of(table: Table) -> list[dict[str, object]]:
    rows = pa.table(DeltaTable(table.path).to_pyarrow_table()).to_pylist()
    return sorted(rows, key=lambda row: (str(row["game_name"]), int(row["number"])))


def tidied(
    table: Table, last: LastSort | None = None, *, dry_run: bool = False
) -> tuple[TableMaintenance, LastSort | None]:
    return maintain_files(Storage(), table, TARGET, last, dry_run=dry_run, between=lambda: None)


def old_files(table: Table, keep: timedelta = NOW) -> set[str]:
    return set(unneeded_files(Storage(), table.path, keep))


def test_small_files_become_one_of_each_partition_and_no_row_changes(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    fill(table, "chess", "a b")
    before = rows_of(table)
    forecast, _ = tidied(table, dry_run=True)
    assert (forecast.files_before, forecast.files_after, DeltaTable(table.path).version()) == (10, 2, 9)
    done, _ = tidied(table)
    assert (done.files_before, done.files_after) == (10, 2)
    assert done.bytes_after == sum(file.bytes for file in live_files(DeltaTable(table.path)))
    assert rows_of(table) == before
    # nothing is left to do, so nothing is written
    version = DeltaTable(table.path).version()
    assert tidied(table)[0].files_after == 2
    assert DeltaTable(table.path).version() == version


def test_a_join_says_that_it_changes_no_row(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    fill(table, "chess")
    tidied(table)
    log = Path(table.path, "_delta_log", f"{DeltaTable(table.path).version():020}.json").read_text("utf-8")
    assert log.count('"dataChange":false') == 6
    assert '"dataChange":true' not in log


def test_rows_are_brought_together_by_the_columns_that_the_table_has(tmp_path: Path) -> None:
    table = table_of(tmp_path, "number", "gone")
    fill(table, "chess")
    before = rows_of(table)
    done, last = tidied(table)
    assert last is not None
    assert (done.files_after, last.columns, rows_of(table)) == (1, ("number",), before)
    numbers = pa.table(DeltaTable(table.path).to_pyarrow_table()).column("number").to_pylist()
    assert numbers == sorted(numbers)
    # with little that is new, files are joined as they are
    fill(table, "chess", files=1)
    assert tidied(table, last)[1] == last


def test_what_others_change_between_two_steps_stays_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("demux.operations.maintenance.file_table._STEP_BYTES", 1)
    table = table_of(tmp_path)
    fill(table, "card", "chess", "go")
    before = rows_of(table)
    visits = 0

    def others() -> None:
        nonlocal visits
        visits += 1
        DeltaTable(table.path).optimize.compact()
        DeltaTable(table.path).delete("number = 3")
        fill(table, "tag", files=1)

    done, _ = maintain_files(Storage(), table, TARGET, None, dry_run=False, between=others)
    assert (visits, done.files_before, done.files_after) == (2, 15, 5)
    assert [row for row in rows_of(table) if row["game_name"] != "tag"] == [row for row in before if row["number"] != 3]


def test_a_log_that_is_long_gets_a_checkpoint(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    fill(table, "chess", files=11)
    tidied(table)
    assert len(list(Path(table.path, "_delta_log").glob("*.checkpoint.parquet"))) == 1
    tidied(table)
    assert len(list(Path(table.path, "_delta_log").glob("*.checkpoint.parquet"))) == 1


def test_files_that_no_version_of_the_last_time_has_are_unneeded(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    fill(table, "chess")
    old = {Path(uri).name for uri in DeltaTable(table.path).file_uris()}
    tidied(table)
    assert {Path(name).name for name in old_files(table)} == old
    assert old_files(table, timedelta(hours=1)) == set()


def test_what_a_writer_left_that_died_is_unneeded_once_it_is_old(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    fill(table, "chess", files=1)
    left = Path(table.path, "game_name=chess", "part-left.parquet")
    left.write_bytes(b"half")
    Path(left.parent, ".part-left.parquet.crc").write_bytes(b"sum")
    assert old_files(table, timedelta(hours=1)) == set()
    os.utime(left, (0, 0))
    assert old_files(table, timedelta(hours=1)) == {"game_name=chess/part-left.parquet"}
    for _ in range(2):
        remove(Storage(), table.path, ["game_name=chess/part-left.parquet"])
    assert [file.name for file in left.parent.iterdir() if "left" in file.name] == []
    assert len(rows_of(table)) == 2


def test_files_are_known_with_partition_size_and_time(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    fill(table, "a b", files=1)
    (file,) = live_files(DeltaTable(table.path))
    path = next(Path(table.path).rglob("*.parquet"))
    assert file == LiveFile("a b", path.stat().st_size, file.written_ms)
    assert abs(file.written_ms - path.stat().st_mtime_ns // 10**6) < 60_000


NAMED = ('"configuration":{}', '"configuration":{"delta.columnMapping.mode":"name"}')
# as Spark 4.0 makes a table with CLUSTER BY
CLUSTERED = (
    '"minWriterVersion":2',
    '"minWriterVersion":7,"writerFeatures":["domainMetadata","clustering","invariants","appendOnly"]',
)


@pytest.mark.parametrize("change", [NAMED, CLUSTERED], ids=["named", "clustered"])
def test_a_table_that_only_spark_can_write_is_left_to_spark(tmp_path: Path, change: tuple[str, str]) -> None:
    table = table_of(tmp_path)
    fill(table, "chess")
    assert suits(DeltaTable(table.path))
    log = Path(table.path, "_delta_log", f"{0:020}.json")
    log.write_text(log.read_text("utf-8").replace(*change))
    assert not suits(DeltaTable(table.path))
    with pytest.raises(NotImplementedError):
        tidied(table)


def test_a_partition_whose_path_has_other_letters_in_the_log_is_left_to_spark(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    fill(table, "chess")
    log = Path(table.path, "_delta_log", f"{4:020}.json")
    text = log.read_text("utf-8")
    added = next(line for line in text.splitlines() if '"add"' in line)
    name = added.partition('"path":"')[2].partition('"')[0]
    moved = name.replace("part-", "pärt-")
    Path(table.path, name).rename(Path(table.path, moved))
    log.write_text(text.replace(name, moved), encoding="utf-8")
    with pytest.raises(NotImplementedError):
        tidied(table)
    assert len(rows_of(table)) == 10


def test_commits_that_only_say_something_are_nothing_to_do(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    fill(table, "chess", files=1)
    write_deltalake(
        table.path,
        pa.table({"game_name": ["chess"], "number": [1], "text": ["a"]}),
        mode="append",
        commit_properties=CommitProperties(custom_metadata={"by": "hand"}),
    )
    done, last = tidied(table)
    assert (done.files_before, done.files_after, last) == (2, 2, None)
