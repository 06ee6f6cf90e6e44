"""Rows of a silver table replaced by files: which of its files go, what of them stays, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demux.core.causes import Cause
from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.parquet_writer import TableFile
from demux.core.errors import DemuxError, RangeRetired
from demux.core.schemas.ref import SchemaRef
from demux.core.storage.files import Storage
from demux.core.tables import QUARANTINE, SILVER_ORIGIN
from deserializer.decoders.arrow import INPUT
from deserializer.decoders.schema_decision import Decisions, Refusal
from deserializer.fleet.replaced_rows import ReplacedRows
from deserializer.fleet.worker import GameFiles, WrittenGame, write_games
from deserializer.offsets.days import NO_DAY, DayCounts, Span

NOW = datetime(2026, 6, 1, tzinfo=timezone.utc)
FIRST, SECOND = date(2026, 1, 1), date(2026, 1, 2)
REF = SchemaRef(schema_id=1)
# whoever decodes: what happens to rows is the same
REFUSED = Decisions(
    Struct((Column("name", Primitive.STRING),)), (), {REF: Refusal(Cause.INVALID_SCHEMA, "It does not compile.")}
)


def at(day: date, hours: float = 12) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=timezone.utc) + timedelta(hours=hours)


def write(path: Path, columns: Struct, rows: Sequence[Mapping[str, object]]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([*rows], schema=pa.schema(arrow_fields(columns))), path)
    return str(path)


def bronze(folder: Path, *records: tuple[str, datetime | None]) -> str:
    rows = [{"record_id": one, "timestamp": time, "schema_id": 1, "payload": b""} for one, time in records]
    return write(folder / "bronze" / "a.parquet", INPUT, rows)


def silver(folder: Path, name: str, *records: tuple[str, datetime | None], columns: Struct | None = None) -> str:
    everything = columns or Struct((*REFUSED.columns, *SILVER_ORIGIN))
    rows = [{"_record_id": one, "_timestamp": time} for one, time in records]
    write(folder / "silver" / name, everything, rows)
    return name


def of_days(work: GameFiles, *files: str, **more: Any) -> GameFiles:
    """Return the work with other files of silver, or other attributes of what it replaces."""
    assert work.replaces is not None
    return replace(work, replaces=replace(work.replaces, files=dict.fromkeys(files, 0), **more))


@pytest.fixture
def work(tmp_path: Path) -> GameFiles:
    """The first day of a game whose bronze has two rows of it, one of the next day, and one of no day."""
    records = (("a", at(FIRST, 0)), ("b", at(FIRST, 23.9)), ("c", at(SECOND, 0)), ("d", None))
    path = bronze(tmp_path, *records)
    replaced = ReplacedRows(Span(FIRST, FIRST), {}, {})
    return GameFiles(Storage(), "chess", (path,), (1,), str(tmp_path / "silver"), REFUSED, 7, replaces=replaced)


def written(tmp_path: Path, work: GameFiles) -> tuple[WrittenGame, list[TableFile]]:
    (tmp_path / "quarantine").mkdir(exist_ok=True)
    one, *files = write_games(Storage(), [work], str(tmp_path / "quarantine"), "again", NOW)
    assert isinstance(one, WrittenGame)
    return one, [file for file in files if isinstance(file, TableFile)]


def test_rows_of_the_days_are_taken_and_no_others(tmp_path: Path, work: GameFiles) -> None:
    one, files = written(tmp_path, work)
    assert (one.error, one.days, one.rows_in, one.rows_bad) == (None, {FIRST: DayCounts(2, 0, 2)}, 2, 2)
    (rows,) = (pq.read_table(tmp_path / "quarantine" / file.path) for file in files)
    assert rows.schema.names == [column.name for column in QUARANTINE]
    assert rows.select(["record_id", "query_id", "batch_id", "game_name", "cause"]).to_pylist() == [
        {"record_id": one, "query_id": "again", "batch_id": 7, "game_name": "chess", "cause": "INVALID_SCHEMA"}
        for one in ("a", "b")
    ]


def test_without_days_all_rows_are_taken(tmp_path: Path, work: GameFiles) -> None:
    one, _ = written(tmp_path, of_days(work, span=None))
    assert one.days == {FIRST: DayCounts(2, 0, 2), SECOND: DayCounts(1, 0, 1), NO_DAY: DayCounts(1, 0, 1)}


def test_rows_of_silver_of_other_days_are_rewritten_in_the_columns_of_now(tmp_path: Path, work: GameFiles) -> None:
    older = Struct(SILVER_ORIGIN.columns)
    more = Struct((*REFUSED.columns, Column("more", Primitive.STRING), *SILVER_ORIGIN))
    names = (
        silver(tmp_path, "all.parquet", ("a", at(FIRST))),
        silver(tmp_path, "some.parquet", ("b", at(FIRST)), ("c", at(SECOND)), ("d", None), columns=older),
        silver(tmp_path, "other columns.parquet", ("b", at(FIRST)), ("f", at(SECOND)), columns=more),
        silver(tmp_path, "none.parquet", ("e", at(SECOND))),
    )
    one, _ = written(tmp_path, of_days(work, *(quote(name) for name in names)))
    assert one.removed == tuple(map(quote, names[:3]))
    (rows,) = (pq.read_table(tmp_path / "silver" / file.path) for file in one.silver)
    assert rows.schema.names == ["name", *(column.name for column in SILVER_ORIGIN)]
    assert [(row["_record_id"], row["_timestamp"], row["name"]) for row in rows.to_pylist()] == [
        ("c", at(SECOND), None),
        ("d", None, None),
        ("f", at(SECOND), None),
    ]


def test_records_that_bronze_lacks_are_counted_and_nothing_is_written(tmp_path: Path, work: GameFiles) -> None:
    lost = silver(tmp_path, "lost.parquet", ("z", at(FIRST)), ("y", at(FIRST)), ("a", at(FIRST)), ("x", at(SECOND)))
    refused = ((of_days(work, lost), 2), (of_days(work, lost, quarantined={"w": FIRST, "b": FIRST}), 3))
    for other, rows in refused:
        one, files = written(tmp_path, other)
        assert isinstance(one.error, RangeRetired)
        assert f"Bronze does not have {rows} rows of the game chess any more; it is whole from 2026-01-02" in str(
            one.error
        )
        assert (one.silver, one.removed, files) == ((), (), [])
    # what was forgotten on request is lacked by nobody
    one, _ = written(tmp_path, replace(of_days(work, lost), settled=frozenset({"z", "y", "a"})))
    assert (one.error, one.days, one.removed) == (None, {FIRST: DayCounts(1, 0, 1)}, (lost,))
    one, _ = written(tmp_path, of_days(work, lost, may_lose=True))
    assert (one.error, one.removed) == (None, (lost,))


def test_files_that_deltalake_has_rewritten_are_compared_too(tmp_path: Path, work: GameFiles) -> None:
    rows = pq.read_table(work.paths[0])
    texts = [column.cast(pa.string_view()) if pa.types.is_string(column.type) else column for column in rows.columns]
    pq.write_table(pa.table(texts, names=rows.column_names), work.paths[0])
    assert pa.types.is_string_view(pq.read_schema(work.paths[0]).field("record_id").type)
    name = silver(tmp_path, "some.parquet", ("b", at(FIRST)), ("z", at(FIRST)))
    one, _ = written(tmp_path, of_days(work, name))
    assert isinstance(one.error, RangeRetired)
    one, _ = written(tmp_path, replace(of_days(work, name), settled=frozenset({"z"})))
    assert (one.error, one.days) == (None, {FIRST: DayCounts(2, 0, 2)})


def test_what_fails_leaves_no_file_behind(tmp_path: Path, work: GameFiles) -> None:
    name = silver(tmp_path, "some.parquet", ("b", at(FIRST)), ("c", at(SECOND)))
    before = sorted((tmp_path / "silver").iterdir())
    for other in (of_days(work, name, "gone.parquet"), replace(work, paths=("no",))):
        one, files = written(tmp_path, other)
        assert (isinstance(one.error, DemuxError), files) == (True, [])
    assert sorted((tmp_path / "silver").iterdir()) == before


def test_refs_without_a_decision_are_named_before_anything_is_decided(tmp_path: Path, work: GameFiles) -> None:
    name = silver(tmp_path, "some.parquet", ("b", at(FIRST)), ("c", at(SECOND)))
    one, files = written(tmp_path, replace(of_days(work, name), decisions=replace(REFUSED, by_ref={})))
    assert (one, files) == (WrittenGame("chess", work.paths, unknown={REF: 4}), [])
