"""Commits that only append, read back by another writer of Delta tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.spark import columns_in_json, spark_struct
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.commit import alter_after, append_after
from demux.core.delta.parquet_writer import TableFile, TableWriter, schema_json
from demux.core.storage.files import Storage

COLUMNS = Struct((Column("name", Primitive.STRING), Column("count", Primitive.BIGINT)))


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    return DeltaTable.create(str(tmp_path / "table"), pa.schema(arrow_fields(COLUMNS)))


def files(table: DeltaTable, *names: str) -> list[TableFile]:
    path = table.table_uri.removeprefix("file://")
    with TableWriter(Storage(), path, COLUMNS) as writer:
        rows = [pa.array(names, pa.string()), pa.array([1] * len(names), pa.int64())]
        writer.add(pa.RecordBatch.from_arrays(rows, schema=pa.schema(arrow_fields(COLUMNS))))
        return writer.close()


def log_of(table: DeltaTable) -> list[str]:
    return sorted(path.name for path in Path(table.table_uri.removeprefix("file://"), "_delta_log").iterdir())


def names_in(table: DeltaTable) -> list[str]:
    return sorted(pa.table(table.to_pyarrow_table()).column("name").to_pylist())


def test_what_was_appended_is_read_by_others_with_its_transactions(table: DeltaTable) -> None:
    path = table.table_uri.removeprefix("file://")
    assert append_after(Storage(), 0, path, files(table, "ann", "bob"), {"a": 7, "b/c": -1})
    assert append_after(Storage(), 1, path, (), {"a": 8})
    again = DeltaTable(path)
    assert (again.version(), names_in(again)) == (2, ["ann", "bob"])
    assert (again.transaction_version("a"), again.transaction_version("b/c")) == (8, -1)
    (action,) = pa.table(again.get_add_actions(flatten=True)).to_pylist()
    assert (action["num_records"], action["min.name"], action["max.name"]) == (2, "ann", "bob")
    write_deltalake(path, pa.table({"name": ["cid"], "count": pa.array([1], pa.int64())}), mode="append")
    assert names_in(DeltaTable(path)) == ["ann", "bob", "cid"]


def test_a_commit_of_somebody_else_is_never_replaced_and_nothing_is_left_behind(table: DeltaTable) -> None:
    path = table.table_uri.removeprefix("file://")
    write_deltalake(path, pa.table({"name": ["cid"], "count": pa.array([1], pa.int64())}), mode="append")
    before = log_of(table)
    assert not append_after(Storage(), 0, path, files(table, "ann"), {"a": 1})
    assert log_of(table) == before
    assert names_in(DeltaTable(path)) == ["cid"]


def test_no_commit_is_made_behind_one_that_is_not_there(table: DeltaTable, tmp_path: Path) -> None:
    assert not append_after(Storage(), 1, table.table_uri.removeprefix("file://"), (), {"a": 1})
    assert not append_after(Storage(), 0, str(tmp_path / "elsewhere"), (), {"a": 1})
    assert log_of(table) == ["00000000000000000000.json"]


def test_a_file_system_without_links_is_an_error_and_nothing_is_left_behind(
    table: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr("os.link", refuse)
    with pytest.raises(OSError, match="no links here"):
        append_after(Storage(), 0, table.table_uri.removeprefix("file://"), (), {"a": 1})
    assert log_of(table) == ["00000000000000000000.json"]


def test_another_schema_keeps_rows_and_all_else_that_the_table_says(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    said = {"delta.appendOnly": "true", "owner": "team ü"}
    schema = pa.schema(arrow_fields(COLUMNS))
    table = DeltaTable.create(
        path,
        schema,
        name="n",
        description="before",
        configuration=said,
        partition_by="name",
        raise_if_key_not_exists=False,
    )
    write_deltalake(path, pa.table({"name": ["cid"], "count": pa.array([1], pa.int64())}), mode="append")
    table.update_incremental()
    wider = Struct((*COLUMNS, Column("level", Primitive.INT, 3, 'of "difficulty"')))
    assert alter_after(Storage(), table, path, spark_struct(wider).jsonValue())
    again = DeltaTable(path)
    assert columns_in_json(schema_json(again)) == wider
    assert columns_in_json(schema_json(again)).columns[-1].comment == 'of "difficulty"'
    assert again.to_pyarrow_table().to_pylist() == [{"name": "cid", "count": 1, "level": None}]
    before, now = table.metadata(), again.metadata()
    for metadata in (before, now):
        assert (metadata.name, metadata.description, metadata.configuration) == ("n", "before", said)
    assert (now.id, now.partition_columns, now.created_time) == (before.id, ["name"], before.created_time)
    assert again.history(1)[0]["operation"] == "CHANGE COLUMNS"
    assert alter_after(Storage(), again, path, spark_struct(wider).jsonValue(), "after")
    assert DeltaTable(path).metadata().description == "after"


def test_no_schema_is_given_to_a_table_that_somebody_else_has_changed_meanwhile(table: DeltaTable) -> None:
    path = table.table_uri.removeprefix("file://")
    write_deltalake(path, pa.table({"name": ["cid"], "count": pa.array([1], pa.int64())}), mode="append")
    before = log_of(table)
    assert not alter_after(Storage(), table, path, spark_struct(Struct(COLUMNS.columns[:1])).jsonValue())
    assert log_of(table) == before
