"""A checkpoint made from the one before and the commits since is read as the whole log would be."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from demux.core.delta.checkpoint.log_tail import LogTail, parsed, read_tail, write_rows
from demux.core.delta.checkpoint.next_checkpoint import next_rows
from demux.core.delta.log import commit_name
from demux.core.storage.files import Storage

DAY_MS = 86_400_000
NOW_MS = 1_800_000_000_000


def append(path: str, number: int, **options: Any) -> None:
    done = CommitProperties(app_transactions=[Transaction("app", number)])
    write_deltalake(path, pa.table({"a": [number], "part": ["x"]}), mode="append", commit_properties=done, **options)


def table_of(path: str, commits: int, **options: Any) -> DeltaTable:
    for number in range(commits):
        append(path, number, **options)
    return DeltaTable(path)


def advance(path: str, now_ms: int) -> int | None:
    """Write the next checkpoint, and remove all commits before; return its version, None where that is not ours."""
    tail = read_tail(Storage(), path, {})
    rows = None if tail is None else next_rows(tail, now_ms)
    if tail is None or rows is None:
        return None
    write_rows(Storage(), path, tail.version, rows)
    for version in range(tail.version):
        Path(path, "_delta_log", commit_name(version)).unlink(missing_ok=True)
    return tail.version


def numbers(table: DeltaTable) -> list[int]:
    return sorted(pa.table(table.to_pyarrow_table()).column("a").to_pylist())


def test_readers_find_files_transactions_and_columns_in_it(tmp_path: Path) -> None:
    path = str(tmp_path)
    table_of(path, 3).create_checkpoint()
    for number in range(3, 6):
        append(path, number)
    DeltaTable(path).delete("a = 4")
    DeltaTable(path).optimize.compact()
    removed = set(DeltaTable(path).vacuum(0, enforce_retention_duration=False))
    assert advance(path, 0) == 7
    append(path, 9)
    table = DeltaTable(path)
    assert numbers(table) == [0, 1, 2, 3, 5, 9]
    assert (table.transaction_version("app"), table.version(), len(table.file_uris())) == (9, 8, 2)
    # files that were removed are still known as such
    assert set(table.vacuum(0, enforce_retention_duration=False)) == removed
    assert len(removed) == 6
    assert advance(path, 0) == 8
    assert numbers(DeltaTable(path)) == [0, 1, 2, 3, 5, 9]


def test_removed_files_are_forgotten_after_a_week(tmp_path: Path) -> None:
    path = str(tmp_path)
    table_of(path, 2).create_checkpoint()
    DeltaTable(path).optimize.compact()
    DeltaTable(path).create_checkpoint()
    append(path, 2)
    tail = read_tail(Storage(), path, {})
    assert tail is not None
    assert tail.checkpoint is not None
    removed = [row["deletionTimestamp"] for row in tail.checkpoint.column("remove").to_pylist() if row]
    assert len(removed) == 2
    kept = [next_rows(tail, removed[0] + 7 * DAY_MS + more) for more in (-1000, 1000)]
    assert [rows and len(rows) - rows.column("remove").null_count for rows in kept] == [2, 0]


def actions(draws: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
    found = []
    for number, (kind, name) in enumerate(draws):
        values: dict[str, Any] = {"path": f"f{name}", "size": number, "dataChange": True, "partitionValues": {}}
        match kind:
            case "add":
                values |= {"modificationTime": number, "stats": json.dumps({"numRecords": number})}
            case "remove":
                values |= {"deletionTimestamp": NOW_MS, "extendedFileMetadata": True}
            case _:
                values = {"appId": f"a{name}", "version": number, "lastUpdated": number}
        found.append({kind: values})
    return found


draws = st.lists(st.tuples(st.sampled_from(["add", "remove", "txn"]), st.integers(0, 4)), max_size=12)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> LogTail:
    path = str(tmp_path_factory.mktemp("table"))
    table_of(path, 1).create_checkpoint()
    append(path, 1)
    found = read_tail(Storage(), path, {})
    assert found is not None
    return found


@given(st.lists(draws, max_size=4))
def test_the_newest_action_about_a_file_or_an_application_stays(first: LogTail, commits: list[Any]) -> None:
    texts = ["".join(f"{json.dumps(action)}\n" for action in actions(commit)) for commit in commits]
    tail = LogTail(first.since, first.checkpoint, tuple(parsed(text.encode()) for text in texts))
    at_once = next_rows(tail, NOW_MS)
    rows = first.checkpoint
    for commit in tail.commits:
        rows = next_rows(LogTail(0, rows, (commit,)), NOW_MS)
    assert at_once is not None
    assert rows is not None
    assert state_of(at_once) == state_of(rows)
    assert {path: size for kind, path, size in state_of(at_once) if kind == "add"} == tail.live()


def state_of(rows: pa.Table) -> list[tuple[str, str, int]]:
    found = []
    for row in rows.to_pylist():
        for kind, key, value in (("add", "path", "size"), ("remove", "path", "size"), ("txn", "appId", "version")):
            if row[kind] is not None:
                found.append((kind, row[kind][key], row[kind][value]))
    assert len({(kind == "txn", key) for kind, key, _ in found}) == len(found)
    return sorted(found)


def test_what_is_not_ours_is_left_to_deltalake(tmp_path: Path) -> None:
    without = str(tmp_path / "without")
    table_of(without, 2)
    assert advance(without, 0) is None
    retained = str(tmp_path / "retained")
    properties = {"delta.deletedFileRetentionDuration": "interval 1 days"}
    table_of(retained, 1, configuration=properties).create_checkpoint()
    append(retained, 1)
    assert advance(retained, 0) is None
    partitioned = str(tmp_path / "partitioned")
    table_of(partitioned, 1, partition_by=["part"]).create_checkpoint()
    append(partitioned, 1)
    assert advance(partitioned, 0) is None
    wider = str(tmp_path / "wider")
    table_of(wider, 1).create_checkpoint()
    write_deltalake(wider, pa.table({"a": [1], "part": ["x"], "b": [2]}), mode="append", schema_mode="merge")
    assert advance(wider, 0) is None
    gap = str(tmp_path / "gap")
    table_of(gap, 1).create_checkpoint()
    for number in (1, 2):
        append(gap, number)
    Path(gap, "_delta_log", commit_name(1)).unlink()
    assert read_tail(Storage(), gap, {}) is None


def test_a_commit_that_another_table_had_is_not_taken_for_this_ones(tmp_path: Path) -> None:
    table_of(str(tmp_path), 2).create_checkpoint()
    append(str(tmp_path), 2)
    tail = read_tail(Storage(), str(tmp_path), {2: zlib.compress(b'{"txn":{}}\n')})
    assert tail is not None
    assert [action["txn"]["version"] for action in tail.actions() if "txn" in action] == [2]
