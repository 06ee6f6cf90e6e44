"""The rows that a game has read: unread files are left out, and what is unclear is decoded before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from demux.core.columns.arrow import arrow_fields
from demux.core.errors import ConcurrentChange, DemuxError, PositionLost
from demux.core.root.layout import Layout
from demux.core.schemas.store import SchemaStore
from demux.core.tables import REMOVED, SILVER_ORIGIN
from deserializer.offsets.days import Span
from deserializer.redecode.source import BronzeRows, read_rows, retired_rows
from deserializer.silver.rewrite import replacing_session
from tests.support.spark.registries import CountingRegistry, every_game
from tests.support.spark.tables import MOMENT, bronze_row, write, write_bronze


@pytest.fixture
def schemas(spark: SparkSession) -> Callable[[Layout], SchemaStore]:
    return lambda layout: SchemaStore(spark, layout, every_game(CountingRegistry()))


def row(offset: int, batch: int | None, **more: object) -> Mapping[str, Any]:
    return bronze_row("chess", offset) | {"batch_id": batch, **more}


def files(layout: Layout) -> list[str]:
    return [each for each in DeltaTable(layout.bronze).file_uris() if "game_name=chess" in each]


def taken(spark: SparkSession, layout: Layout, source: BronzeRows) -> list[str]:
    rows = source.frame(replacing_session(spark), layout)
    return sorted(row.record_id for row in rows.select("record_id").collect())


def newest(layout: Layout) -> BronzeRows:
    return BronzeRows("chess", DeltaTable(layout.bronze).version())


@pytest.mark.both_lanes
def test_of_a_record_that_came_twice_the_copy_in_an_unread_file_is_left_out(spark: SparkSession, tmp_path: Any) -> None:
    layout = Layout(str(tmp_path))
    write_bronze(layout.bronze, row(0, 0), row(1, 0), row(1, 0), bronze_row("go", 0) | {"batch_id": 0})
    read = files(layout)
    # the source held two of them again
    write_bronze(layout.bronze, row(0, 1), row(1, 0), row(2, 1))
    unread = frozenset(each.rsplit("/", 1)[-1] for each in files(layout) if each not in read)
    assert taken(spark, layout, newest(layout)) == ["t/0/0", "t/0/0", "t/0/1", "t/0/1", "t/0/1", "t/0/2"]
    assert taken(spark, layout, replace(newest(layout), unread=unread)) == ["t/0/0", "t/0/1", "t/0/1"]


def test_a_day_has_its_own_rows(spark: SparkSession, tmp_path: Any) -> None:
    layout, day = Layout(str(tmp_path)), MOMENT.date()
    before = MOMENT.replace(hour=0, minute=0, second=0, microsecond=0)
    times = [before, before - timedelta(microseconds=1), before + timedelta(days=1), None, MOMENT]
    write_bronze(layout.bronze, *(row(offset, 0, timestamp=at) for offset, at in enumerate(times)))
    assert taken(spark, layout, replace(newest(layout), span=Span(day, day))) == ["t/0/0", "t/0/4"]
    assert len(taken(spark, layout, newest(layout))) == 5


def test_retired_rows_of_the_days_are_counted_by_game(spark: SparkSession, tmp_path: Any) -> None:
    layout, day = Layout(str(tmp_path)), MOMENT.date()
    assert retired_rows(spark, layout, ["chess"], None) == {}
    removed = [
        {"reason": reason, "game_name": game, "record_id": f"t/0/{offset}", "timestamp": at}
        for offset, (reason, game, at) in enumerate(
            (
                ("retired", "chess", MOMENT),
                ("retired", "chess", MOMENT - timedelta(days=1)),
                ("retired", "chess", None),
                ("retired", "go", MOMENT),
                ("forgotten", "poker", MOMENT),
            )
        )
    ]
    write_deltalake(layout.removed, pa.Table.from_pylist(removed, schema=pa.schema(arrow_fields(REMOVED))))
    found = retired_rows(spark, layout, ["chess", "poker"], None)
    whole = day + timedelta(days=1)
    cause = f"Bronze does not have 3 rows of the game chess any more; it is whole from {whole} on."
    assert {game: error.message for game, error in found.items()} == {"chess": cause}
    (error,) = retired_rows(spark, layout, ["chess"], Span(day, day)).values()
    assert "Bronze does not have 1 row of" in error.message
    assert retired_rows(spark, layout, ["chess"], Span(day + timedelta(days=1), day + timedelta(days=9))) == {}


def test_a_game_of_unknown_offset_gives_its_error_and_unread_files_are_named(
    spark: SparkSession, tmp_path: Any, schemas: Callable[[Layout], SchemaStore]
) -> None:
    layout = Layout(str(tmp_path))
    write_bronze(layout.bronze, row(0, 0), bronze_row("go", 0), bronze_row("poker", 0))
    # a row, and no position of whoever wrote it; and a table without rows
    write(layout.silver("chess"), SILVER_ORIGIN, [{"_record_id": "t/0/0"}])
    write(layout.silver("go"), SILVER_ORIGIN, [])
    finished: list[str] = []

    def look() -> dict[str, BronzeRows | DemuxError]:
        return read_rows(spark, layout, schemas(layout), ["chess", "go", "poker"], finished.append, threads=2)

    found = look()
    assert isinstance(found["chess"], PositionLost)
    names = {each.rsplit("/", 1)[-1] for each in DeltaTable(layout.bronze).file_uris() if "game_name=go" in each}
    assert found["go"] == BronzeRows("go", 0, None, frozenset(names))
    assert isinstance(found["poker"], BronzeRows)
    assert (len(found["poker"].unread), finished) == (1, [])

    # joined with others, as `demux maintain` does: it cannot be told any more which rows are unread
    write_bronze(layout.bronze, bronze_row("go", 1))
    DeltaTable(layout.bronze).optimize.compact()
    assert isinstance(look()["go"], ConcurrentChange)
    assert finished == ["go"]
