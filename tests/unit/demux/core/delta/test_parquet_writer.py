"""Files that workers write, and the one commit that puts them into a Delta table; no Spark."""

from __future__ import annotations

import errno
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import demux.core.delta.parquet_writer
from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.app_transactions import Batch
from demux.core.delta.file_stats import stats_of
from demux.core.delta.parquet_writer import FILES, TableFile, TableWriter, commit_files, encode_files, takes_files
from demux.core.names import key_folder
from demux.core.storage.backend import NewFile
from demux.core.storage.files import Storage
from demux.core.storage.folder import _FileSink

COLUMNS = Struct(
    (
        Column("game_name", Primitive.STRING),
        Column("offset", Primitive.BIGINT),
        Column("payload", Primitive.BINARY),
        Column("timestamp", Primitive.TIMESTAMP),
    )
)
SCHEMA = pa.schema(arrow_fields(COLUMNS))
START = datetime(2026, 1, 2, tzinfo=timezone.utc)
GAMES = ["chess", "../../etc", "将棋", "a=b/c%2F", "Chess"]


def rows(*offsets: int, games: list[str] = GAMES, payload: bytes = b"p") -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [
            {
                "game_name": games[offset % len(games)],
                "offset": offset,
                "payload": payload,
                "timestamp": START + timedelta(microseconds=offset),
            }
            for offset in offsets
        ],
        schema=SCHEMA,
    )


def write(
    table: Path, *batches: pa.RecordBatch, partition_by: str | None = "game_name", storage: Storage | None = None
) -> list[TableFile]:
    with TableWriter(storage or Storage(), str(table), COLUMNS, partition_by) as writer:
        for batch in batches:
            writer.add(batch)
        return writer.close()


def commit(table: Path, files: list[TableFile], partition_by: str | None, batch: Batch) -> None:
    commit_files(Storage(), str(table), files, partition_by, batch, DeltaTable(str(table)))


def in_table(table: Path) -> list[tuple[int, str]]:
    found = DeltaTable(str(table)).to_pyarrow_table().to_pylist()
    return sorted((row["offset"], row["game_name"]) for row in found)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    DeltaTable.create(str(tmp_path / "table"), SCHEMA, partition_by=["game_name"])
    return tmp_path / "table"


def test_rows_come_to_the_partition_of_their_game_whatever_its_name_and_stay_below_the_table(table: Path) -> None:
    files = write(table, rows(*range(20)), rows(*range(20, 33)))
    commit(table, files, "game_name", Batch("q", 0, retried=False))
    assert in_table(table) == [(offset, GAMES[offset % len(GAMES)]) for offset in range(33)]
    assert {file.partition for file in files} == set(GAMES)
    inside = {path.relative_to(table).as_posix() for path in table.rglob("*.parquet")}
    assert inside == {file.path for file in files}
    # no two games in one folder, also where the file system knows no capitals
    assert len({path.split("/")[0].lower() for path in inside}) == len(GAMES)


def test_a_batch_that_comes_again_is_not_there_twice_and_leaves_no_files(table: Path) -> None:
    for _ in range(2):
        commit(table, write(table, rows(1, 2)), "game_name", Batch("q", 5, retried=True))
    commit(table, write(table, rows(3)), "game_name", Batch("other", 5, retried=False))
    assert [offset for offset, _ in in_table(table)] == [1, 2, 3]
    assert len(list(table.rglob("*.parquet"))) == 3


def test_an_earlier_batch_of_the_same_query_is_not_written_after_a_later_one(table: Path) -> None:
    commit(table, write(table, rows(1)), "game_name", Batch("q", 5, retried=False))
    commit(table, write(table, rows(2)), "game_name", Batch("q", 4, retried=True))
    assert [offset for offset, _ in in_table(table)] == [1]


def test_a_batch_without_rows_is_a_commit_without_files(table: Path) -> None:
    commit(table, write(table, rows()), "game_name", Batch("q", 0, retried=False))
    assert in_table(table) == []
    assert DeltaTable(str(table)).transaction_version("q") == 0


def test_an_error_while_writing_leaves_no_files(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demux.core.delta.parquet_writer, "_BUFFER_BYTES", 1)
    wrong = pa.RecordBatch.from_pydict({"game_name": ["chess"], "wrong": [1]})
    with pytest.raises(ValueError, match="wrong"):
        write(table, rows(1, 2, 3), wrong)
    assert (table / "key=chess").is_dir()
    assert list(table.rglob("*.parquet")) == []


class Full(Storage):
    """A folder whose files are closed side by side, with no room for those of one game."""

    def side_by_side(self, path: str) -> int:
        return 4

    def writer(self, path: str) -> NewFile:
        return NoRoom(Path(path)) if f"/{key_folder('go')}/" in path else Storage.writer(self, path)


class NoRoom(_FileSink):
    def close(self) -> None:
        was_open = not self.closed
        super().close()
        if was_open:
            raise OSError(errno.ENOSPC, "No space left on device")


def test_when_one_file_cannot_be_closed_all_are_removed(table: Path) -> None:
    games = ["go", *(f"game {number}" for number in range(9))]
    (table / key_folder("go")).mkdir()
    with pytest.raises(OSError, match="No space left"):
        write(table, rows(*range(20), games=games), storage=Full())
    assert list(table.rglob("*.parquet")) == []


def test_a_large_file_ends_and_another_one_begins(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demux.core.delta.parquet_writer, "_BUFFER_BYTES", 1)
    monkeypatch.setattr(demux.core.delta.parquet_writer, "_FILE_BYTES", 1)
    files = write(table, rows(0), rows(5), rows(1))
    assert sorted((file.partition or "", file.rows) for file in files) == [("../../etc", 1), ("chess", 1), ("chess", 1)]


def test_no_more_files_are_open_than_the_system_allows(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demux.core.delta.parquet_writer, "_OPEN_FILES", 2)
    games = [f"game {number}" for number in range(7)]
    files = write(table, rows(*range(70), games=games))
    commit(table, files, "game_name", Batch("q", 0, retried=False))
    assert len(in_table(table)) == 70


def test_a_table_without_partitions_has_its_files_in_its_own_folder(tmp_path: Path) -> None:
    table = tmp_path / "table"
    DeltaTable.create(str(table), SCHEMA)
    files = write(table, rows(1, 2, 3), partition_by=None)
    commit(table, files, None, Batch("q", 0, retried=False))
    assert [file.path.startswith("part-") for file in files] == [True]
    assert [offset for offset, _ in in_table(table)] == [1, 2, 3]


def test_what_workers_tell_comes_back_as_it_was(table: Path) -> None:
    files = write(table, rows(*range(5)))
    batch = encode_files(files)
    assert batch.schema.equals(pa.schema(arrow_fields(FILES)))
    assert [TableFile(**row) for row in batch.to_pylist()] == files
    assert len(encode_files([])) == 0


def test_the_log_gets_the_rows_and_the_bounds_of_each_file(table: Path) -> None:
    (file,) = write(table, rows(0, 5, 10), rows(15))
    assert (file.rows, file.bytes) == (4, (table / file.path).stat().st_size)
    assert json.loads(file.stats) == {
        "numRecords": 4,
        "minValues": {"offset": 0, "timestamp": "2026-01-02T00:00:00.000Z"},
        # outwards: 15 microseconds are no whole millisecond
        "maxValues": {"offset": 15, "timestamp": "2026-01-02T00:00:00.001Z"},
        "nullCount": {"offset": 0, "timestamp": 0},
    }


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([None, None], (None, None, 2)),
        ([-1, 2**62], (None, None, 0)),
        ([-62135596800_000_000], ("0001-01-01T00:00:00.000Z", "0001-01-01T00:00:00.000Z", 0)),
    ],
    ids=["nothing", "no reader's year", "year 1"],
)
def test_a_time_that_no_reader_could_read_has_no_bound(tmp_path: Path, values: list[Any], expected: object) -> None:
    times = pa.array(values, pa.int64()).cast(pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"at": times}), tmp_path / "file.parquet")
    stats = stats_of(pq.read_metadata(tmp_path / "file.parquet"))
    bounds = [stats.get(side, {}).get("at") for side in ("minValues", "maxValues")]
    assert (*bounds, stats["nullCount"]["at"]) == expected


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("a" * 32, "a" * 32),
        ("a" * 33, "a" * 32 + "\U0010ffff"),
        ("a" * 32 + "\U0010ffff!", "a" * 32 + "\U0010ffff!"),
    ],
    ids=["short", "long", "long, with the last character of all where it would be cut"],
)
def test_a_long_text_has_bounds_that_hold(tmp_path: Path, text: str, most: str) -> None:
    pq.write_table(pa.table({"text": [text, "a" * 40]}), tmp_path / "file.parquet")
    stats = stats_of(pq.read_metadata(tmp_path / "file.parquet"))
    assert stats["minValues"]["text"] == "a" * 32
    assert stats["maxValues"]["text"] == max(most, "a" * 32 + "\U0010ffff")
    assert stats["maxValues"]["text"].encode() >= text.encode()


@pytest.mark.parametrize("fraction", [[1.5, 2.5], [None, None], [float("nan"), 0.5]], ids=str)
def test_readers_that_leave_files_out_find_every_row(tmp_path: Path, fraction: list[float | None]) -> None:
    columns = Struct(
        (
            Column("number", Primitive.INT),
            Column("text", Primitive.STRING),
            Column("fraction", Primitive.DOUBLE),
            Column("flag", Primitive.BOOLEAN),
            Column("nothing", Primitive.STRING),
        )
    )
    schema = pa.schema(arrow_fields(columns))
    rows = pa.table([[1, 2], ["x", "y" * 5000], fraction, [True, None], [None, None]], schema=schema).to_batches()[0]
    table = str(tmp_path / "table")
    DeltaTable.create(table, schema)
    with TableWriter(Storage(), table, columns) as writer:
        writer.add(rows)
        commit(Path(table), writer.close(), None, Batch("q", 0, retried=False))
    found = DeltaTable(table).to_pyarrow_dataset()
    wanted = (
        (pc.field("number") == 1, 1),
        (pc.field("text") == "x", 1),
        (pc.field("text") == "y" * 5000, 1),
        (pc.field("flag") == True, 1),  # noqa: E712
        (pc.field("nothing").is_null(), 2),
    )
    assert [found.to_table(filter=search).num_rows for search, _ in wanted] == [rows for _, rows in wanted]
    half = fraction.count(0.5) + fraction.count(1.5)
    assert found.to_table(filter=pc.field("fraction") < 2).num_rows == half


def test_a_table_that_asks_more_of_its_writers_is_left_to_spark(table: Path, tmp_path: Path) -> None:
    assert takes_files(DeltaTable(table))
    DeltaTable.create(
        str(tmp_path / "mapped"),
        SCHEMA,
        configuration={
            "delta.minReaderVersion": "2",
            "delta.minWriterVersion": "5",
            "delta.columnMapping.mode": "name",
        },
        raise_if_key_not_exists=False,
    )
    assert not takes_files(DeltaTable(tmp_path / "mapped"))
