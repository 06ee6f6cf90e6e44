"""Which files may have rows of days, and what is left to Spark when days are decoded again without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demux.core.causes import Cause
from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.parquet_writer import TableFile
from demux.core.schemas.ref import SchemaRef
from demux.core.storage.files import Storage
from demux.core.tables import QUARANTINE, SILVER_ORIGIN
from deserializer.decoders.arrow import INPUT
from deserializer.decoders.schema_decision import Decisions, Refusal
from deserializer.redecode.backfill_files import LoggedFile
from deserializer.redecode.backfill_plan import DayCounts, Span
from deserializer.redecode.backfill_worker import DaysWritten, GameDays, write_days

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


@pytest.fixture
def work(tmp_path: Path) -> GameDays:
    """The first day of a game whose bronze has two rows of it, one of the next day, and one of no day."""
    records = (("a", at(FIRST, 0)), ("b", at(FIRST, 23.9)), ("c", at(SECOND, 0)), ("d", None))
    paths = (bronze(tmp_path, *records),)
    nothing: frozenset[str] = frozenset()
    table = str(tmp_path / "silver")
    return GameDays("chess", Span(FIRST, FIRST), Storage(), paths, 1, table, (), REFUSED, nothing, nothing, batch_id=7)


def written(tmp_path: Path, work: GameDays) -> tuple[DaysWritten, list[TableFile]]:
    (tmp_path / "quarantine").mkdir(exist_ok=True)
    one, *files = write_days(Storage(), [work], str(tmp_path / "quarantine"), "again", NOW)
    assert isinstance(one, DaysWritten)
    return one, [file for file in files if isinstance(file, TableFile)]


def test_rows_of_the_days_are_taken_and_no_others(tmp_path: Path, work: GameDays) -> None:
    one, files = written(tmp_path, work)
    assert one == DaysWritten("chess", {FIRST: DayCounts(2, 0, 2)})
    (rows,) = (pq.read_table(tmp_path / "quarantine" / file.path) for file in files)
    assert rows.schema.names == [column.name for column in QUARANTINE]
    assert rows.select(["record_id", "query_id", "batch_id", "game_name", "cause"]).to_pylist() == [
        {"record_id": one, "query_id": "again", "batch_id": 7, "game_name": "chess", "cause": "INVALID_SCHEMA"}
        for one in ("a", "b")
    ]


def test_rows_of_silver_of_other_days_are_written_anew_in_the_columns_of_now(tmp_path: Path, work: GameDays) -> None:
    older = Struct(SILVER_ORIGIN.columns)
    names = (
        silver(tmp_path, "all.parquet", ("a", at(FIRST))),
        silver(tmp_path, "some.parquet", ("b", at(FIRST)), ("c", at(SECOND)), ("d", None), columns=older),
        silver(tmp_path, "none.parquet", ("e", at(SECOND))),
    )
    one, _ = written(tmp_path, replace(work, files=names))
    assert one.replaced == {names[0]: True, names[1]: False}
    (rows,) = (pq.read_table(tmp_path / "silver" / file.path) for file in one.files)
    assert rows.schema.names == ["name", *(column.name for column in SILVER_ORIGIN)]
    assert [(row["_record_id"], row["_timestamp"], row["name"]) for row in rows.to_pylist()] == [
        ("c", at(SECOND), None),
        ("d", None, None),
    ]


def test_spark_does_it_where_bronze_may_lack_a_record(tmp_path: Path, work: GameDays) -> None:
    lost = silver(tmp_path, "lost.parquet", ("z", at(FIRST)))
    for other in (replace(work, files=(lost,)), replace(work, aside=frozenset({"z"}))):
        one, files = written(tmp_path, other)
        assert "bronze may lack records" in str(one.left)
        assert (one.files, one.replaced, files) == ((), {}, [])
    # what somebody asked to forget is lacked by nobody
    one, _ = written(tmp_path, replace(work, files=(lost,), forgotten=frozenset({"z", "a"})))
    assert (one.left, one.counts, one.replaced) == (None, {FIRST: DayCounts(1, 0, 1)}, {"lost.parquet": True})


def test_spark_does_what_fails_and_nothing_is_left_lying_about(tmp_path: Path, work: GameDays) -> None:
    names = (silver(tmp_path, "some.parquet", ("b", at(FIRST)), ("c", at(SECOND))),)
    before = sorted((tmp_path / "silver").iterdir())
    more = Struct((*REFUSED.columns, Column("more", Primitive.STRING), *SILVER_ORIGIN))
    odd = (silver(tmp_path, "some.parquet", ("b", at(FIRST)), ("c", at(SECOND)), columns=more),)
    for other in (
        replace(work, files=odd),
        replace(work, files=(*names, "gone.parquet")),
        replace(work, paths=("no",)),
    ):
        one, files = written(tmp_path, other)
        assert (one.left is None, files) == (False, [])
    assert sorted((tmp_path / "silver").iterdir()) == before


def test_refs_without_a_decision_are_named_before_anything_is_decided(tmp_path: Path, work: GameDays) -> None:
    name = silver(tmp_path, "some.parquet", ("b", at(FIRST)), ("c", at(SECOND)))
    one, files = written(tmp_path, replace(work, files=(name,), decisions=replace(REFUSED, by_ref={})))
    assert (one, files) == (DaysWritten("chess", replaced={name: False}, unknown={REF: 4}), [])
    # the second look needs not to find out again which files go
    again = replace(work, paths=(), files=("gone.parquet",), replaced={name: False})
    two, _ = written(tmp_path, again)
    assert (two.left, two.replaced) == (None, {name: False})


@pytest.mark.parametrize(
    ("first", "last", "may"),
    [
        (None, None, True),
        (at(FIRST, 1), at(FIRST, 2), True),
        (at(SECOND, 0), at(SECOND, 1), False),
        (at(FIRST, -2), at(FIRST, -1), False),
        # Spark cuts bounds off at milliseconds
        (at(FIRST, -2), at(FIRST, 0) - timedelta(milliseconds=1), True),
        (at(FIRST, -2), None, True),
    ],
)
def test_a_file_is_looked_at_where_its_bounds_allow_for_rows_of_the_days(
    first: datetime | None, last: datetime | None, may: bool
) -> None:
    assert LoggedFile("a", "a", "/a", 1, first, last).may_have(Span(FIRST, FIRST)) is may
