"""Maintenance of a table in a store, without Spark."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from demux.core.columns.spark import spark_struct
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.storage.files import Storage
from demux.operations.maintenance.file_table import maintain_files, remove, unneeded_files
from demux.operations.maintenance.report import Table, TableKind
from deserializer.offsets.logged_files import files_of_table

# a partition's folder has the value with escapes, and the log has those escaped again
GAMES = ["chess", "a/b ü%41+", "100% 象棋"]
COLUMNS = Struct((Column("game_name", Primitive.STRING), Column("number", Primitive.BIGINT)))


def filled(storage: Storage, tmp_path: Path) -> Table:
    path = f"s3://demux/{tmp_path.name}/games 100%+ü/bronze"
    storage.create_table(path, spark_struct(COLUMNS).jsonValue(), partition_by="game_name")
    for number in range(5):
        storage.write_table(path, pa.table({"game_name": GAMES, "number": [number] * len(GAMES)}), "append")
    return Table(TableKind.BRONZE, path, "bronze", ())


def rows_of(storage: Storage, table: Table) -> list[tuple[str, int]]:
    rows = pa.table(storage.table(table.path).to_pyarrow_table()).to_pylist()
    return sorted((row["game_name"], row["number"]) for row in rows)


def data_files(storage: Storage, table: Table) -> set[str]:
    return {file.key for file in storage.files(table.path) if not file.key.startswith("_delta_log/")}


def test_small_files_are_joined_and_only_those_go_that_nobody_needs(in_store: Storage, tmp_path: Path) -> None:
    table = filled(in_store, tmp_path)
    before, old = rows_of(in_store, table), data_files(in_store, table)
    done, _ = maintain_files(in_store, table, 2**20, None, dry_run=False, between=lambda: None)
    assert (done.files_before, done.files_after, len(before)) == (15, 3, 15)
    assert unneeded_files(in_store, table.path, timedelta(hours=1)) == {}

    found = unneeded_files(in_store, table.path, timedelta(0))
    assert found.keys() == old
    assert min(found.values()) > 0
    # who dies in between is followed by a second call
    remove(in_store, table.path, sorted(found)[:3])
    remove(in_store, table.path, sorted(found))
    assert data_files(in_store, table) & old == set()
    assert rows_of(in_store, table) == before


def test_the_files_of_a_table_are_found_by_the_paths_that_its_log_has(in_store: Storage, tmp_path: Path) -> None:
    table = filled(in_store, tmp_path)
    parts = files_of_table(in_store.table(table.path), table.path, "timestamp")
    assert parts.keys() == set(GAMES)
    paths = {part.where.removeprefix(f"{table.path}/") for found in parts.values() for part in found}
    assert paths == data_files(in_store, table)
