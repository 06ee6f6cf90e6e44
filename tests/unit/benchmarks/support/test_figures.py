from __future__ import annotations

import argparse

import numpy as np
import pytest

from benchmarks.parts import backfill as backfilling
from benchmarks.parts import maintenance as maintaining
from benchmarks.parts import scale, speed
from benchmarks.support import costs
from benchmarks.support.costs import Cost
from benchmarks.support.events import Events
from benchmarks.support.roots import Spent
from benchmarks.support.sizes import Sizes, add_options, sizes_of
from producer.records import Records


def test_costs_are_told_for_each_game_against_the_naive_design() -> None:
    table = costs.lines([Cost("naive", 20, 12.0, None), Cost("fleet", 200, 2.4, 3.0, "1/100")])
    assert "| naive | 20 | 12.00 |  | 0.6000 | 1 |  |" in table
    assert "| fleet | 200 | 2.40 | 3.00 | 0.0120 | 1/50.0 | 1/100 |" in table


def test_an_exponent_is_the_slope_of_the_logarithms() -> None:
    assert scale.exponent([10, 100, 1_000], [3, 300, 30_000]) == pytest.approx(2)
    assert scale.exponent([10, 100, 1_000], [7, 7, 7]) == pytest.approx(0)
    found = [scale.Grown(10, 1.0, 2.0, 300.4), scale.Grown(1_000, 10.0, 200.0, 900.0)]
    assert scale.growth_line("games", found) == (
        "| games | 10 / 1,000 | 1.00 / 10.00 | 0.50 | 2.00 / 200.00 | 1.00 | 300 / 900 |"
    )


def test_speeds_are_told_against_the_fleet() -> None:
    table = speed.lines({speed.FLEET: 600_000.0, speed.ARROW: 100_000.0, speed.BARE: 1_000_000.0})
    assert "| `engine: fleet` | 600,000 | 1.00 |  |" in table
    assert "| `engine: stream`, decoder `arrow` | 100,000 | 6.00 |  |" in table
    assert any(line.endswith("| 1,000,000 | 0.60 | 0.5 at least |") for line in table)
    assert any("the oldest lane is not installed" in line for line in table)


def test_without_the_oldest_lane_nothing_is_said_of_it_where_it_is_there() -> None:
    table = speed.lines({speed.FLEET: 6.0, speed.ARROW: 1.0, speed.BARE: 1.0, speed.NATIVE: 2.0})
    assert any(line.endswith("| 2 | 3.00 | 3 at least |") for line in table)
    assert not any("not installed" in line for line in table)


def test_decoding_again_is_told_against_the_live_path() -> None:
    seconds = {backfilling.DAILY: 10.0, backfilling.LIVE: 2.0, backfilling.TOGETHER: 5.0, backfilling.ALONE: 8.0}
    table = backfilling.lines(seconds, 1_000)
    assert "| `demux backfill` | 5.0 | 200 | 0.50 |" in table
    sentence = table[-1]
    assert sentence.startswith("2 games side by side take 0.62 of the time")
    assert "A backfill takes 0.50 of the time" in sentence
    assert "2.50 of that in which it takes all in one round" in sentence


def test_the_events_of_a_backfill_are_of_so_many_days_in_turn() -> None:
    batch = Records([b""] * 5, [b"chess"] * 5, np.zeros(5, np.int32), np.full(5, 1_770_000_000_000_000, np.int64))
    (found,) = backfilling.spread(Events((batch,)), 3).batches
    days = (batch.timestamps_us - found.timestamps_us) / (24 * 3600 * 1_000_000)
    assert days.tolist() == [0, 1, 2, 0, 1]


def test_maintenance_is_told_for_each_table() -> None:
    seconds = {maintaining.WORK: 6.0, maintaining.IDLE: 1.0, maintaining.BY_SPARK: 30.0}
    table = maintaining.lines(seconds, {maintaining.WORK: 200, maintaining.IDLE: 200, maintaining.BY_SPARK: 10})
    assert "| nothing to do | 200 | 1.0 | 0.0050 |" in table
    assert table[-1].endswith("| 10 | 30.0 | 3.0000 |")


def test_a_round_is_all_of_its_parts() -> None:
    assert Spent(1.0, 2.0, 0.5, 10, 100).round == 3.5


def test_every_size_is_an_option() -> None:
    parser = argparse.ArgumentParser()
    add_options(parser)
    assert sizes_of(parser.parse_args([])) == Sizes()
    assert sizes_of(parser.parse_args(["--few-rows", "7", "--games", "3"])) == Sizes(games=3, few_rows=7)
