"""A game's silver table that two processes have open."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import LongType, StructField, StructType

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.parquet_writer import TableFile, TableWriter
from demux.core.delta.scan import sizes_of
from demux.core.errors import ConcurrentChange
from demux.core.storage.files import Storage
from demux.core.tables import SILVER_ORIGIN
from deserializer.silver.file_table import SilverReplacement, SilverTable

COLUMNS = Struct((Column("name", Primitive.STRING), *SILVER_ORIGIN))


@pytest.fixture
def path(tmp_path: Path) -> str:
    SilverTable.at(Storage(), str(tmp_path / "chess")).create(COLUMNS, None, "")
    return str(tmp_path / "chess")


def files(path: str, name: str) -> list[TableFile]:
    with TableWriter(Storage(), path, COLUMNS) as writer:
        writer.add(pa.RecordBatch.from_pylist([{"name": name}], schema=pa.schema(arrow_fields(COLUMNS))))
        return writer.close()


def opened(path: str) -> SilverTable:
    table = SilverTable.at(Storage(), path)
    table.transaction("fleet")
    return table


def names_in(path: str) -> list[str]:
    return sorted(row["name"] for row in DeltaTable(path).to_pyarrow_table().to_pylist())


def test_a_process_that_was_stopped_while_another_went_on_writes_nothing(path: str) -> None:
    stopped, running = opened(path), opened(path)
    running.append(files(path, "one"), "fleet", 1)
    running.append(files(path, "two"), "fleet", 2)
    written = files(path, "one again, and two")
    with pytest.raises(ConcurrentChange, match="Another process decoded rows"):
        stopped.append(written, "fleet", 3)
    assert names_in(path) == ["one", "two"]
    assert not any(Path(path, file.path).exists() for file in written)


def test_what_another_process_has_written_up_to_the_same_place_is_not_written_twice(path: str) -> None:
    stopped, running = opened(path), opened(path)
    running.append(files(path, "one"), "fleet", 1)
    stopped.append(files(path, "one"), "fleet", 1)
    assert names_in(path) == ["one"]


def test_a_commit_of_something_else_in_between_stops_nobody(path: str) -> None:
    first, replay = opened(path), opened(path)
    replay.append(files(path, "replayed"), "another", 7)
    first.append(files(path, "one"), "fleet", 1)
    first.append(files(path, "two"), "fleet", 2)
    assert names_in(path) == ["one", "replayed", "two"]


def paths_in(path: str) -> list[str]:
    return [*sizes_of(DeltaTable(path))]


def test_rows_are_replaced_in_one_commit_with_schema_comment_and_transaction(path: str) -> None:
    table = opened(path)
    table.append(files(path, "old"), "fleet", 1)
    before = paths_in(path)
    wider = StructType([*table.schema.fields, StructField("score", LongType())])
    table.replace(SilverReplacement(before, None, files(path, "new"), (wider, "What a player did."), {"fleet": 2}))
    after = DeltaTable(path)
    assert (names_in(path), after.transaction_version("fleet"), after.version()) == (["new"], 2, 2)
    assert after.metadata().description == "What a player did."
    assert [field.name for field in after.schema().fields][-1] == "score"
    # the same rows in the same columns: nothing is said of the table
    table = opened(path)
    table.replace(SilverReplacement(paths_in(path), None, files(path, "again")))
    assert (names_in(path), DeltaTable(path).transaction_version("fleet")) == (["again"], 2)
    assert '"metaData"' not in Path(path, "_delta_log", f"{3:020}.json").read_text()


def test_rows_are_not_replaced_where_another_process_has_written_since(path: str) -> None:
    stopped, running = opened(path), opened(path)
    running.append(files(path, "one"), "fleet", 1)
    with pytest.raises(ConcurrentChange, match="Another process wrote"):
        stopped.replace(SilverReplacement([], None, files(path, "two")))
    assert names_in(path) == ["one"]
