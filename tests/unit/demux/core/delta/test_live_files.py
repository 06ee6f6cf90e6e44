"""The files of a table by its log alone are those that `deltalake` finds."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from demux.core.delta.live_files import live_files
from demux.core.delta.log import commit_name
from demux.core.storage.files import Storage


def append(path: str, *numbers: int) -> None:
    write_deltalake(path, pa.table({"a": pa.array(numbers, pa.int32())}), mode="append")


def by_log(path: str) -> list[tuple[int, int | None]] | None:
    storage = Storage()
    files = live_files(storage, path, storage.names(f"{path}/_delta_log"))
    return None if files is None else sorted((file.bytes, file.rows) for file in files)


def by_deltalake(path: str) -> list[tuple[int, int]]:
    rows = pa.table(DeltaTable(path).get_add_actions(flatten=True)).to_pylist()
    return sorted((row["size_bytes"], row["num_records"]) for row in rows)


def test_they_are_the_same_after_each_kind_of_commit(tmp_path: Path) -> None:
    path = str(tmp_path / "100% ü")
    append(path, 1, 2)
    append(path, 3)
    assert by_log(path) == by_deltalake(path)
    DeltaTable(path).delete("a = 1")
    assert by_log(path) == by_deltalake(path)
    DeltaTable(path).create_checkpoint()
    append(path, 4, 5, 6)
    assert by_log(path) == by_deltalake(path)
    DeltaTable(path).optimize.compact()
    assert by_log(path) == by_deltalake(path)
    # only the checkpoint has the older ones
    for version in range(3):
        Path(path, "_delta_log", commit_name(version)).unlink()
    found = by_log(path)
    assert found == by_deltalake(path)
    assert found is not None
    assert [rows for _, rows in found] == [5]
    DeltaTable(path).delete()
    assert by_log(path) == []


@pytest.mark.parametrize("gone", [0, 1])
def test_a_log_with_a_gap_is_left_to_deltalake(tmp_path: Path, gone: int) -> None:
    for number in range(3):
        append(str(tmp_path), number)
    Path(tmp_path, "_delta_log", commit_name(gone)).unlink()
    assert by_log(str(tmp_path)) is None


def test_a_log_without_a_commit_is_left_to_deltalake() -> None:
    assert live_files(Storage(), "/nowhere", ["_commits", ".tmp"]) is None


def test_a_checkpoint_that_names_further_files_is_left_to_deltalake(tmp_path: Path) -> None:
    append(str(tmp_path), 1)
    schema = pa.schema([(name, pa.struct([("path", pa.string())])) for name in ("add", "sidecar")])
    checkpoint = tmp_path / "_delta_log" / "00000000000000000000.checkpoint.parquet"
    pq.write_table(pa.table({"add": [None], "sidecar": [{"path": "x"}]}, schema), checkpoint)
    assert by_log(str(tmp_path)) is None


def test_deleted_rows_of_a_file_do_not_count_and_its_state_before_is_gone(tmp_path: Path) -> None:
    append(str(tmp_path), 1, 2, 3)
    text = Path(tmp_path, "_delta_log", commit_name(0)).read_text(encoding="utf-8")
    add = next(json.loads(line)["add"] for line in text.splitlines() if '"add"' in line)
    vector = {"storageType": "i", "pathOrInlineDv": "x", "cardinality": 2}
    lines = [{"add": {**add, "deletionVector": vector}}, {"remove": {"path": add["path"], "dataChange": True}}]
    Path(tmp_path, "_delta_log", commit_name(1)).write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert by_log(str(tmp_path)) == [(add["size"], 1)]


def test_rows_that_the_log_does_not_say_are_unknown(tmp_path: Path) -> None:
    lines = ['{"add":{"path":"a.parquet","size":5,"partitionValues":{}}}', '{"add":{"path":"b","size":7,"stats":null}}']
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / commit_name(0)).write_text("\n".join(lines), encoding="utf-8")
    assert by_log(str(tmp_path)) == [(5, None), (7, None)]
