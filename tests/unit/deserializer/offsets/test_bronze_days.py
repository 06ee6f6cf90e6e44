"""Rows of bronze counted by game and day: by the log alone, and by the files of which it does not say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake

from demux.core.root.layout import Layout
from demux.core.storage.files import Storage
from deserializer.offsets.bronze_days import plain_bronze, rows_by_day_of_files

FIRST, SECOND = date(2026, 1, 30), date(2026, 1, 31)


def at(day: date, hour: int = 12) -> datetime:
    return datetime(day.year, day.month, day.day, hour, tzinfo=timezone.utc)


def append(bronze: str, game: str | None, times: Sequence[datetime | int | None]) -> None:
    """Append one file; a number is microseconds since 1970."""
    column = pa.array(times, pa.timestamp("us", tz="UTC"))
    table = pa.table({"game_name": pa.array([game] * len(times), pa.string()), "timestamp": column})
    write_deltalake(bronze, table, mode="append", partition_by=["game_name"])


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(str(tmp_path), Storage())
    append(layout.bronze, "chess", [at(FIRST), at(FIRST, 23)])
    append(layout.bronze, "chess", [at(FIRST, 23), at(SECOND, 0), None])
    append(layout.bronze, "a/b %", [at(SECOND)])
    append(layout.bronze, None, [at(FIRST)])
    return layout


def counted(layout: Layout, *games: str) -> dict[str, dict[date | None, int]]:
    bronze = plain_bronze(layout)
    assert bronze is not None
    found = rows_by_day_of_files(layout.storage, bronze, layout.bronze, games)
    return {game: dict(days) for game, days in found.items()}


def test_each_row_counts_for_its_game_and_its_day(layout: Layout) -> None:
    assert counted(layout) == {"chess": {FIRST: 3, SECOND: 1, None: 1}, "a/b %": {SECOND: 1}}
    assert counted(layout, "a/b %", "nobody") == {"a/b %": {SECOND: 1}}


def test_a_file_of_one_day_is_not_read(layout: Layout) -> None:
    for file in Path(layout.bronze).rglob("*.parquet"):
        if pq.read_metadata(file).num_rows != 3:
            file.unlink()
    assert counted(layout) == {"chess": {FIRST: 3, SECOND: 1, None: 1}, "a/b %": {SECOND: 1}}


def test_a_time_that_no_calendar_has_is_of_no_day(tmp_path: Path) -> None:
    layout = Layout(str(tmp_path), Storage())
    append(layout.bronze, "chess", [2**62, at(FIRST)])
    append(layout.bronze, "chess", [2**62])
    assert counted(layout) == {"chess": {None: 2, FIRST: 1}}


def test_where_there_is_no_bronze_there_is_nothing_to_open(tmp_path: Path) -> None:
    assert plain_bronze(Layout(str(tmp_path), Storage())) is None


def test_bronze_with_deletion_vectors_is_for_spark(layout: Layout) -> None:
    DeltaTable(layout.bronze).alter.add_feature([TableFeatures.DeletionVectors], allow_protocol_versions_increase=True)
    assert plain_bronze(layout) is None
