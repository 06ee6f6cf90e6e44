"""The rows that a game has read: what waits is left out, row by row, whatever became of its files."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from demux.core.columns.arrow import arrow_fields
from demux.core.errors import PositionLost
from demux.core.root.layout import Layout
from demux.core.tables import REMOVED, SILVER_ORIGIN
from deserializer.offsets.bronze_files import file_session
from deserializer.redecode.backfill_plan import Span
from deserializer.redecode.processed_rows import ReadState, processed_rows, readings_of
from tests.support.spark.tables import MOMENT, bronze_row, write, write_bronze


def row(offset: int, batch: int | None, **more: object) -> Mapping[str, Any]:
    return bronze_row("chess", offset) | {"batch_id": batch, **more}


def files(layout: Layout) -> list[str]:
    return [each for each in DeltaTable(layout.bronze).file_uris() if "game_name=chess" in each]


def passed(spark: SparkSession, layout: Layout, waiting: list[str], span: Span | None = None) -> list[tuple[str, int]]:
    reading = ReadState("chess", DeltaTable(layout.bronze).version(), tuple(waiting))
    rows = processed_rows(file_session(spark), layout, reading, span).select("record_id", "batch_id").collect()
    return sorted((each.record_id, each.batch_id) for each in rows)


def test_of_a_record_that_came_twice_the_copy_that_waits_is_left_out(spark: SparkSession, tmp_path: Any) -> None:
    layout = Layout(str(tmp_path))
    write_bronze(layout.bronze, row(0, 0), row(1, 0), row(1, 0), bronze_row("go", 0) | {"batch_id": 0})
    read = files(layout)
    # the source held two of them again
    write_bronze(layout.bronze, row(0, 1), row(1, 0), row(2, 1))
    waiting = [each for each in files(layout) if each not in read]
    wanted = [("t/0/0", 0), ("t/0/1", 0), ("t/0/1", 0)]
    assert passed(spark, layout, []) == sorted([*wanted, ("t/0/0", 1), ("t/0/1", 0), ("t/0/2", 1)])
    assert passed(spark, layout, waiting) == wanted
    # joined with those that were read, as `demux maintain` does
    DeltaTable(layout.bronze).optimize.compact()
    assert not set(files(layout)) & {*read, *waiting}
    assert passed(spark, layout, waiting) == wanted


def test_a_day_has_its_own_rows_and_what_is_to_be_forgotten_is_in_none(spark: SparkSession, tmp_path: Any) -> None:
    layout, day = Layout(str(tmp_path)), MOMENT.date()
    before = MOMENT.replace(hour=0, minute=0, second=0, microsecond=0)
    times = [before, before - timedelta(microseconds=1), before + timedelta(days=1), None, MOMENT]
    write_bronze(layout.bronze, *(row(offset, 0, timestamp=at) for offset, at in enumerate(times)))
    assert passed(spark, layout, [], Span(day, day)) == [("t/0/0", 0), ("t/0/4", 0)]
    removed = [
        {"reason": reason, "game_name": game, "record_id": record_id}
        for reason, game, record_id in (
            ("forgotten", "chess", "t/0/0"),
            ("forgotten", "go", "t/0/4"),
            ("retired", "chess", "t/0/4"),
        )
    ]
    write_deltalake(layout.removed, pa.Table.from_pylist(removed, schema=pa.schema(arrow_fields(REMOVED))))
    assert passed(spark, layout, [], Span(day, day)) == [("t/0/4", 0)]
    assert [one for one, _ in passed(spark, layout, [])] == ["t/0/1", "t/0/2", "t/0/3", "t/0/4"]


def test_of_which_game_nobody_knows_what_it_has_read_is_told_beside_what_its_neighbours_have(
    spark: SparkSession, tmp_path: Any
) -> None:
    layout = Layout(str(tmp_path))
    write_bronze(layout.bronze, row(0, 0), bronze_row("go", 0), bronze_row("poker", 0))
    # a row, and no position of whoever wrote it; and a table without rows
    write(layout.silver("chess"), SILVER_ORIGIN, [{"_record_id": "t/0/0"}])
    write(layout.silver("go"), SILVER_ORIGIN, [])
    found = readings_of(spark, layout, ["chess", "go", "poker"], lambda game: 1 / 0, threads=2)
    assert isinstance(found["chess"], PositionLost)
    (waiting,) = (each for each in DeltaTable(layout.bronze).file_uris() if "game_name=go" in each)
    go = found["go"]
    assert isinstance(go, ReadState)
    assert (go.version, [path.rsplit("/", 1)[-1] for path in go.waiting]) == (0, [waiting.rsplit("/", 1)[-1]])
    assert found["poker"] == ReadState("poker", -1)
