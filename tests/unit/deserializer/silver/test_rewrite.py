"""Files of a round, and of a table, that were written before a column became wider."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.spark import columns_in_json, spark_struct
from demux.core.columns.types import Array, Column, Primitive, Struct
from demux.core.delta.parquet_writer import TableWriter, append_files, schema_json
from demux.core.storage.files import Storage
from demux.core.tables import SILVER_ORIGIN
from deserializer.silver import rewrite
from deserializer.silver.rewrite import in_columns, widen_by_files

MOMENT = datetime(2025, 1, 2, tzinfo=timezone.utc)


def payload(number: Primitive, *more: Column) -> Struct:
    inner = Struct((Column("n", number, 1), *more))
    return Struct((Column("a", number, 1), Column("many", Array(inner), 2), *more))


def test_the_same_rows_stand_in_one_file_with_the_wider_columns_and_the_new_ones(tmp_path: Path) -> None:
    before, after = payload(Primitive.INT), payload(Primitive.BIGINT, Column("new", Primitive.STRING, 3))
    rows: list[dict[str, Any]] = [
        {"a": number, "many": [{"n": -number}], "_record_id": f"r{number}", "_decoded_at": MOMENT} for number in (1, 2)
    ]
    files = []
    columns = Struct((*before, *SILVER_ORIGIN))
    for row in rows:
        with TableWriter(Storage(), str(tmp_path), columns) as writer:
            writer.add(pa.RecordBatch.from_pylist([row], schema=pa.schema(arrow_fields(columns))))
            files += writer.close()

    made = in_columns(Storage(), files, str(tmp_path), before, after)

    assert [file.rows for file in made] == [2]
    assert sorted(tmp_path.iterdir()) == [tmp_path / made[0].path]
    found = pq.read_table(tmp_path / made[0].path)
    assert found.schema.field("a").type == pa.int64()
    everything = {column.name: None for column in (*after, *SILVER_ORIGIN)}
    assert found.to_pylist() == [everything | row | {"many": [{"n": -row["a"], "new": None}]} for row in rows]


@pytest.fixture
def narrow(tmp_path: Path) -> str:
    """A table with a row of numbers of 32 bits, and one file that lacks a column of it."""
    path, columns = str(tmp_path / "table"), Struct((*payload(Primitive.INT), *SILVER_ORIGIN))
    Storage().create_table(path, spark_struct(columns).jsonValue(), "before")
    rows = [{"a": 1, "many": [{"n": -1}], "_record_id": "r1"}, {"a": None, "many": None, "_record_id": "r2"}]
    schema = pa.schema(arrow_fields(columns))
    for number, row in enumerate(rows):
        written = pa.RecordBatch.from_pylist([row], schema=schema)
        has = columns if number == 0 else Struct(tuple(one for one in columns if one.name != "many"))
        with TableWriter(Storage(), path, has) as writer:
            writer.add(written.select([column.name for column in has]))
            append_files(DeltaTable(path), writer.close(), None, {"app": number})
    return path


def test_a_table_gets_wider_and_further_columns_in_one_commit(narrow: str) -> None:
    before = DeltaTable(narrow)
    wider = Struct((*payload(Primitive.BIGINT, Column("new", Primitive.STRING, 3)), *SILVER_ORIGIN))

    assert widen_by_files(Storage(), before, narrow, spark_struct(wider), "after")

    after = DeltaTable(narrow)
    assert after.version() == before.version() + 1
    assert columns_in_json(schema_json(after)) == wider
    assert (after.metadata().description, after.transaction_version("app")) == ("after", 1)
    rows = pa.table(after.to_pyarrow_table()).select(["a", "many", "new", "_record_id"]).sort_by("_record_id")
    assert rows.to_pylist() == [
        {"a": 1, "many": [{"n": -1, "new": None}], "new": None, "_record_id": "r1"},
        {"a": None, "many": None, "new": None, "_record_id": "r2"},
    ]


def test_a_table_that_another_process_writes_meanwhile_is_not_widened_and_no_file_is_left(narrow: str) -> None:
    before = DeltaTable(narrow)
    again = DeltaTable(narrow)
    append_files(again, [], None, {"app": 7})
    files = sorted(Path(narrow).iterdir())
    wider = spark_struct(Struct((*payload(Primitive.BIGINT), *SILVER_ORIGIN)))
    assert not widen_by_files(Storage(), before, narrow, wider, None)
    assert sorted(Path(narrow).iterdir()) == files


@pytest.mark.parametrize("asks", [{"delta.appendOnly": "true"}, {"delta.constraints.some": "a > 0"}])
def test_a_table_that_asks_for_spark_and_a_large_one_are_not_widened_by_files(
    narrow: str, asks: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wider = spark_struct(Struct((*payload(Primitive.BIGINT), *SILVER_ORIGIN)))
    with monkeypatch.context() as patch:
        patch.setattr(rewrite, "MOST_BYTES", 10)
        assert not widen_by_files(Storage(), DeltaTable(narrow), narrow, wider, None)
    table = DeltaTable(narrow)
    table.alter.set_table_properties(asks, raise_if_not_exists=False)
    assert not widen_by_files(Storage(), DeltaTable(narrow), narrow, wider, None)


def test_of_no_files_no_file_is_made(tmp_path: Path) -> None:
    assert in_columns(Storage(), (), str(tmp_path), payload(Primitive.INT), payload(Primitive.BIGINT)) == ()
    assert list(tmp_path.iterdir()) == []
