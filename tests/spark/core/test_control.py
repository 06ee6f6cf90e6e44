"""The control tables: what one process writes, the next one reads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from demux.core.control.games_and_rounds import Control, KnownGame, Load, RoundHistory, TaskOutcome, TaskRecord
from demux.core.root.layout import Layout
from demux.core.storage.files import Storage

NOW = datetime(2025, 3, 30, 1, 59, 59, 123_456, tzinfo=timezone.utc)
HOSTILE = ["../../etc", "a'b; drop table x", "Chess", "chess", "`${x}`", "象棋"]


@pytest.fixture(params=[{}, {"/": "/"}], ids=["without Spark", "by Spark, on a mount"])
def layout(tmp_path: Path, request: pytest.FixtureRequest) -> Layout:
    return Layout(str(tmp_path), Storage(mounts=request.param))


def record(game: str, outcome: TaskOutcome = TaskOutcome.DONE, minutes: int = 0) -> TaskRecord:
    failed = outcome is TaskOutcome.FAILED
    return TaskRecord(
        "round",
        game,
        outcome,
        rows_in=5,
        rows_silver=4,
        rows_quarantined=1,
        schema_ids=(-3, 7),
        seconds=1.5,
        condition="TASK_FAILED" if failed else None,
        sentence="It broke. Mend it." if failed else None,
        finished_at=NOW + timedelta(minutes=minutes),
    )


def test_a_new_root_has_no_games_and_no_history(spark: SparkSession, layout: Layout) -> None:
    control = Control(spark, layout)
    assert (control.known_games(), control.history()) == ({}, RoundHistory(-1, {}))


def test_games_are_read_back_as_they_were_written_whatever_their_names(spark: SparkSession, layout: Layout) -> None:
    games = {
        name: KnownGame(name, None if name == "Chess" else f"cluster_{number:03}", "plan", NOW)
        for number, name in enumerate(HOSTILE)
    }
    Control(spark, layout).replace_games(games.values())
    control = Control(spark, layout)
    assert control.known_games() == games
    control.replace_games([games["chess"]])
    assert control.known_games() == Control(spark, layout).known_games() == {"chess": games["chess"]}


def test_the_last_record_of_each_game_is_its_history(spark: SparkSession, layout: Layout) -> None:
    control = Control(spark, layout)
    control.close_round([record("chess", TaskOutcome.FAILED), record("go")], 3)
    control.close_round([record("chess", minutes=1)], 5)
    control.close_round([record("a'b", TaskOutcome.FAILED, minutes=2)], None)
    expected = RoundHistory(
        5,
        {"chess": record("chess", minutes=1), "go": record("go"), "a'b": record("a'b", TaskOutcome.FAILED, minutes=2)},
        {"chess": (Load(5, 1.5),), "go": (Load(5, 1.5),)},
    )
    assert control.history() == expected
    assert Control(spark, layout).history() == expected


def test_the_last_five_rounds_that_decoded_something_are_a_games_load(spark: SparkSession, layout: Layout) -> None:
    control = Control(spark, layout)
    rounds = [replace(record("chess", minutes=minute), rows_in=minute, seconds=minute / 2) for minute in range(1, 8)]
    failed, idle = record("chess", TaskOutcome.FAILED, 8), replace(record("chess", minutes=9), rows_in=0)
    control.close_round(rounds, None)
    control.close_round([failed, replace(idle, game="go")], None)
    control.close_round([idle], 2)
    expected = tuple(Load(each.rows_in, each.seconds) for each in rounds[-5:])
    for history in (control.history(), Control(spark, layout).history()):
        assert history.recent == {"chess": expected}
        assert history.last["chess"] == idle
        assert history.loads == {"chess": Load(5, 2.5)}


def test_a_round_that_was_not_complete_does_not_say_how_far_bronze_was_looked_at(
    spark: SparkSession, layout: Layout
) -> None:
    control = Control(spark, layout)
    control.close_round([record("chess")], None)
    assert control.history().bronze_version == Control(spark, layout).history().bronze_version == -1


def test_a_round_without_tasks_writes_only_how_far_it_looked(spark: SparkSession, layout: Layout) -> None:
    control = Control(spark, layout)
    control.close_round([record("chess")], 1)
    before = DeltaTable(layout.rounds).version()
    control.close_round([], 1)
    assert DeltaTable(layout.rounds).version() == before
    control.close_round([], 9)
    assert DeltaTable(layout.rounds).version() == before + 1
    expected = RoundHistory(9, {"chess": record("chess")}, {"chess": (Load(5, 1.5),)})
    assert control.history() == Control(spark, layout).history() == expected


def test_many_that_end_at_the_same_time_all_leave_their_records(spark: SparkSession, layout: Layout) -> None:
    games = [f"game{number}" for number in range(6)]
    together = threading.Barrier(len(games))

    def end(game: str) -> None:
        control = Control(spark, layout)
        together.wait(60)
        # the first one makes the table
        control.close_round([record(game)], None)

    with ThreadPoolExecutor(len(games)) as pool:
        list(pool.map(end, games))
    history = Control(spark, layout).history()
    assert (history.bronze_version, history.last) == (-1, {game: record(game) for game in games})
    assert history.recent == {game: (Load(5, 1.5),) for game in games}


def test_records_that_others_left_meanwhile_are_known_to_who_reads_after_them(
    spark: SparkSession, layout: Layout
) -> None:
    mine, other = Control(spark, layout), Control(spark, layout)
    other.close_round([record("go")], None)
    mine.close_round([record("chess")], None)
    assert mine.history().last == {"chess": record("chess"), "go": record("go")}
