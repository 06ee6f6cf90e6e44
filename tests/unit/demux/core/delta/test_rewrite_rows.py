"""Rows deleted by files written again, read back by another writer of Delta tables."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.commit import Replacement, append_after
from demux.core.delta.parquet_writer import TableFile, append_files
from demux.core.delta.rewrite_rows import chosen_rows, delete_rows, open_to_replace, replace_beside
from demux.core.delta.scan import sizes_of
from demux.core.errors import ConcurrentChange
from demux.core.storage.files import Storage

NAME = Struct((Column("name", Primitive.STRING),))
COLUMNS = Struct((*NAME, Column("at", Primitive.TIMESTAMP)))
SCHEMA = pa.schema(arrow_fields(COLUMNS))
THEN = datetime(2500, 1, 1, tzinfo=timezone.utc)


def is_one_of(*names: str) -> Callable[[pa.RecordBatch], pa.BooleanArray]:
    # of a NULL it says NULL
    return lambda rows: pc.if_else(rows.column("name").is_valid(), pc.is_in(rows.column("name"), pa.array(names)), None)


def append(path: str, *names: str | None) -> None:
    write_deltalake(path, pa.table([list(names), [THEN] * len(names)], schema=SCHEMA), mode="append")


def names_in(path: str) -> list[str | None]:
    return sorted(pa.table(DeltaTable(path).to_pyarrow_table()).column("name").to_pylist(), key=str)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A table of three files: two names, one of them, and a NULL."""
    path = str(tmp_path / "table")
    append(path, "ann", "bob")
    append(path, "ann")
    append(path, "cid", None)
    return path


def test_only_files_that_have_such_rows_are_written_again_and_a_second_call_does_nothing(path: str) -> None:
    before = sizes_of(DeltaTable(path))
    assert delete_rows(Storage(), path, is_one_of("ann"), NAME) == 2
    after = DeltaTable(path)
    assert names_in(path) == [None, "bob", "cid"]
    # of two files nothing is left but one row; the third is the same
    assert (len(sizes_of(after)), len(sizes_of(after).keys() & before.keys())) == (2, 1)
    assert after.history(1)[0]["operation"] == "DELETE"
    assert delete_rows(Storage(), path, is_one_of("ann"), NAME) == 0
    assert DeltaTable(path).version() == after.version()
    assert set(pa.table(after.to_pyarrow_table()).column("at").to_pylist()) == {THEN}


def test_old_times_that_spark_writes_in_96_bits_stay_as_they_are(path: str) -> None:
    rows = pa.table([["old", "ann"], [THEN, THEN]], schema=SCHEMA)
    pq.write_table(rows, f"{path}/old times.parquet", use_deprecated_int96_timestamps=True)
    size = Path(path, "old times.parquet").stat().st_size
    # a log escapes what a URI does not have
    file = TableFile(path, "old%20times.parquet", None, 2, size, "{}")
    assert append_after(Storage(), DeltaTable(path).version(), path, [file], {})
    assert delete_rows(Storage(), path, is_one_of("ann"), NAME)
    assert names_in(path) == [None, "bob", "cid", "old"]
    assert set(pa.table(DeltaTable(path).to_pyarrow_table()).column("at").to_pylist()) == {THEN}


def test_chosen_rows_come_in_the_columns_that_are_asked_for(path: str) -> None:
    table = DeltaTable(path)
    wanted = Struct((*NAME, Column("later", Primitive.BIGINT)))
    found = [
        row for rows in chosen_rows(Storage(), table, path, wanted, is_one_of("ann", "cid")) for row in rows.to_pylist()
    ]
    assert sorted(found, key=str) == [{"name": name, "later": None} for name in ("ann", "ann", "cid")]


def test_rows_that_others_append_meanwhile_stay(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = Replacement.commit

    def late(self: Replacement, storage: Storage, table: DeltaTable, where: str) -> bool:
        if table.version() == 2:
            append(path, "ann", "dan")
        return commit(self, storage, table, where)

    monkeypatch.setattr(Replacement, "commit", late)
    assert delete_rows(Storage(), path, is_one_of("ann"), NAME)
    assert names_in(path) == [None, "ann", "bob", "cid", "dan"]


def test_files_that_others_replaced_meanwhile_are_looked_at_again(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = Replacement.commit
    done: list[object] = []

    def late(self: Replacement, storage: Storage, table: DeltaTable, where: str) -> bool:
        if not done:
            done.append(DeltaTable(path).optimize.compact())
        return commit(self, storage, table, where)

    monkeypatch.setattr(Replacement, "commit", late)
    assert delete_rows(Storage(), path, is_one_of("ann"), NAME)
    assert names_in(path) == [None, "bob", "cid"]
    # what was written for the commit that failed is gone
    listed = {file.name for file in Path(path).glob("*.parquet")}
    assert len(listed) == 3 + 1 + 1


def test_a_table_that_others_rewrite_all_the_time_is_left_as_it_is(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Replacement, "commit", lambda *_: False)
    with pytest.raises(ConcurrentChange, match="all the time"):
        delete_rows(Storage(), path, is_one_of("ann"), NAME)
    assert names_in(path) == [None, "ann", "ann", "bob", "cid"]
    assert len([*Path(path).glob("*.parquet")]) == 3


@pytest.mark.parametrize(
    ("properties", "partition_by"),
    [
        ({"delta.appendOnly": "true"}, None),
        ({"delta.enableChangeDataFeed": "true"}, None),
        ({}, ["name"]),
    ],
)
def test_what_only_spark_may_rewrite_is_left_to_it(
    tmp_path: Path, properties: dict[str, str], partition_by: list[str] | None
) -> None:
    path = str(tmp_path / "table")
    DeltaTable.create(path, SCHEMA, configuration=properties, partition_by=partition_by)
    append(path, "ann")
    assert open_to_replace(Storage(), path) is None
    assert delete_rows(Storage(), path, is_one_of("ann"), NAME) is None
    assert names_in(path) == ["ann"]


def test_rows_of_one_partition_go_whatever_its_value_is(tmp_path: Path) -> None:
    path, hostile = str(tmp_path / "table"), "a'b%2F c"
    rows = pa.table({"game": [hostile, hostile, "go"], "name": ["ann", "bob", "ann"]})
    write_deltalake(path, rows, partition_by=["game"])
    assert delete_rows(Storage(), path, is_one_of("ann"), NAME, {"game": hostile}, "mark") == 1
    left = pa.table(DeltaTable(path).to_pyarrow_table()).to_pylist()
    assert sorted((row["game"], row["name"]) for row in left) == [(hostile, "bob"), ("go", "ann")]
    assert DeltaTable(path).history(1)[0]["userMetadata"] == "mark"
    assert delete_rows(Storage(), path, is_one_of("bob"), NAME, {"game": hostile}) == 1
    assert delete_rows(Storage(), path, is_one_of("bob"), NAME, {"game": "chess"}) == 0
    assert [row["game"] for row in pa.table(DeltaTable(path).to_pyarrow_table()).to_pylist()] == ["go"]


def test_a_table_with_a_type_that_no_column_of_ours_has_is_left_to_spark(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, pa.table({"name": ["ann"], "day": pa.array([1], pa.date32())}))
    assert open_to_replace(Storage(), path) is None


def test_a_replacement_gives_columns_a_comment_and_transactions_in_one_commit(path: str) -> None:
    table = DeltaTable(path)
    schema = {
        "type": "struct",
        "fields": [{"name": "name", "type": "string", "nullable": True, "metadata": {}}],
    }
    wanted = Replacement("WRITE", sizes_of(table), (), {"app": 7}, schema, "what it is", "mark")
    assert replace_beside(Storage(), table, path, wanted)
    after = DeltaTable(path)
    assert (after.version(), after.transaction_version("app"), sizes_of(after)) == (3, 7, {})
    assert [one.name for one in after.schema().fields] == ["name"]
    assert (after.metadata().description, after.history(1)[0]["userMetadata"]) == ("what it is", "mark")
    assert after.metadata().id == table.metadata().id
    # others write it on
    append_files(after, (), None, {"app": 8})
    assert not replace_beside(Storage(), table, path, wanted)
