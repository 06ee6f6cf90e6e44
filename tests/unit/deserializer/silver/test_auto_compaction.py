"""Small files of a table become few, and a row is written anew a few times only."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from demux.core.storage.files import Storage
from deserializer.silver.auto_compaction import is_due, keep_up, target_size

KIB, MIB = 2**10, 2**20


def kept_up(table: DeltaTable) -> int:
    path = table.table_uri.removeprefix("file://").rstrip("/")
    return keep_up(Storage(), table, path, table.version(), {})


@pytest.mark.parametrize(
    ("sizes", "target"),
    [
        ([], None),
        ([10 * KIB] * 15, None),
        ([10 * KIB] * 16, 256 * KIB),
        ([63 * KIB] * 16, 256 * KIB),
        ([10 * KIB] * 15 + [100 * KIB] * 15, None),
        ([100 * KIB] * 16, 4 * MIB),
        ([10 * KIB] * 16 + [100 * KIB] * 16, 4 * MIB),
        ([100 * MIB] * 16, 128 * MIB),
        ([200 * MIB] * 100, None),
    ],
)
def test_files_are_joined_once_there_are_many_of_a_size(sizes: list[int], target: int | None) -> None:
    assert target_size(sizes) == target


@given(st.lists(st.integers(1, 200 * MIB), max_size=60))
def test_what_is_to_be_joined_makes_fewer_files(sizes: list[int]) -> None:
    target = target_size(sizes)
    if target is not None and target < 128 * MIB:
        small = [size for size in sizes if size < target]
        assert len(small) >= 16
        # four of them have room in one
        assert sorted(small)[15] <= target // 4


def test_upkeep_comes_every_sixteenth_commit_and_not_for_all_tables_at_once() -> None:
    due = {path: [version for version in range(64) if is_due(path, version)] for path in map(str, range(50))}
    assert {len(versions) for versions in due.values()} == {4}
    assert len({versions[0] for versions in due.values()}) > 8


@pytest.mark.thorough
def test_a_table_that_gets_a_file_a_round_keeps_few_files_and_all_rows_while_a_reader_reads_on(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    for number in range(120):
        rows = pa.table({"number": [number], "text": [str(number) * 100], "tags": [["a", str(number)]]})
        write_deltalake(path, rows, mode="append")
        if number == 10:
            early = DeltaTable(path)
        if number % 16 == 15:
            kept_up(DeltaTable(path))
    table = DeltaTable(path)
    assert len(table.file_uris()) < 32
    read = pa.table(table.to_pyarrow_table()).sort_by("number")
    assert read.column("number").to_pylist() == list(range(120))
    assert read.column("tags").to_pylist() == [["a", str(number)] for number in range(120)]
    assert pa.table(early.to_pyarrow_table()).num_rows == 11
    assert len(list(Path(path, "_delta_log").glob("*.checkpoint.parquet"))) >= 7


def test_many_that_keep_up_a_table_at_the_same_time_double_no_row(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    for number in range(16):
        write_deltalake(path, pa.table({"number": [number]}), mode="append")
    # all know the same version
    tables = [DeltaTable(path) for _ in range(8)]
    with ThreadPoolExecutor(len(tables)) as pool:
        list(pool.map(kept_up, tables))
    table = DeltaTable(path)
    assert len(table.file_uris()) == 1
    assert sorted(pa.table(table.to_pyarrow_table()).column("number").to_pylist()) == list(range(16))


def test_a_table_with_deleted_rows_in_its_files_is_left_as_it_is(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    properties = {"delta.enableDeletionVectors": "true"}
    for number in range(16):
        write_deltalake(path, pa.table({"number": [number]}), mode="append", configuration=properties)
    kept_up(DeltaTable(path))
    assert len(DeltaTable(path).file_uris()) == 16


def test_files_that_cannot_be_joined_stay_and_the_log_gets_its_checkpoint_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "table"
    for number in range(16):
        write_deltalake(str(path), pa.table({"number": [number]}), mode="append")
    next(path.glob("*.parquet")).unlink()
    kept_up(DeltaTable(str(path)))
    assert len(DeltaTable(str(path)).file_uris()) == 16
    assert len(list(path.glob("_delta_log/*.checkpoint.parquet"))) == 1


def test_columns_that_came_later_and_nested_ones_are_joined_to_the_same_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    early = pa.table({"device": [{"os": "linux"}], "number": [1]})
    late = pa.table({"device": [{"os": "bsd", "model": "x"}], "number": [2], "text": ["t"]})
    for rows in [early] * 8 + [late] * 8:
        write_deltalake(path, rows, mode="append", schema_mode="merge")
    before = pa.table(DeltaTable(path).to_pyarrow_table()).sort_by("number").to_pylist()
    kept_up(DeltaTable(path))
    table = DeltaTable(path)
    assert len(table.file_uris()) == 1
    assert pa.table(table.to_pyarrow_table()).sort_by("number").to_pylist() == before
