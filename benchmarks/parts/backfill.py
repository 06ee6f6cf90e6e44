"""Days of many games decoded again: seconds a row beside the live path, and games side by side beside one by one."""

from __future__ import annotations

import statistics
import threading
from collections import defaultdict
from dataclasses import replace

import numpy as np

from benchmarks.parts.decoding import timed
from benchmarks.support.events import Events
from benchmarks.support.roots import PARALLELISM, Bench, BenchRoot
from benchmarks.support.sizes import Sizes
from demux.cli.repair.backfill_days import Backfilling
from demux.pipeline.context import CommandContext, place_of
from deserializer.redecode.backfill_plan import BackfillRequest
from deserializer.redecode.redecoder import Redecoder, rebuild
from producer.schemas import games as first_games

TITLE = "Days decoded again"

DAILY, LIVE = "the live path, a round for each day", "the live path, one round of all"
TOGETHER, ALONE = "`demux backfill`", "`demux backfill`, `run.parallelism: 1`"
REBUILD = "`demux rebuild`, one game after the other"
_DAY_US = 86_400_000_000


def run(bench: Bench, sizes: Sizes) -> list[str]:
    """Return the section's lines."""
    events = bench.events(sizes.games, sizes.total // sizes.games)
    root, live = bench.root("backfill"), bench.root("live")
    root.send(spread(events, sizes.days))
    rows = root.round().rows
    each = max(1, sizes.total // sizes.games // sizes.days)
    names = [game.name for game in first_games(sizes.games)]
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    for number in range(1 + sizes.repeats):
        seconds[DAILY].append(rows * _row_seconds(live, bench.events(sizes.games, each), sizes.days))
        seconds[LIVE].append(rows * _row_seconds(live, events, 1))
        seconds[TOGETHER].append(timed(Backfilling(_place(root, PARALLELISM), BackfillRequest((), None, None)).run))
        seconds[ALONE].append(timed(Backfilling(_place(root, 1), BackfillRequest((), None, None)).run))
        seconds[REBUILD].append(timed(lambda: _rebuild(_place(root, 1), names)))
        print(f"round {number}: { {name: round(each[-1], 2) for name, each in seconds.items()} } s", flush=True)
    for name in ("backfill", "live"):
        bench.forget(name)
    bench.forget_events()
    return lines({name: statistics.median(each[1:]) for name, each in seconds.items()}, rows)


def spread(events: Events, days: int) -> Events:
    """Return the same events, of so many days in turn."""
    return Events(
        tuple(
            replace(batch, timestamps_us=batch.timestamps_us - _DAY_US * (np.arange(len(batch.values)) % days))
            for batch in events.batches
        )
    )


def lines(seconds: dict[str, float], rows: int) -> list[str]:
    """Return the costs as Markdown: medians of seconds for so many rows."""
    live = seconds[DAILY]
    return [
        f"| {rows:,} rows | seconds | rows per second | of the live path, day by day |",
        "| --- | ---: | ---: | ---: |",
        *(f"| {name} | {each:.1f} | {rows / each:,.0f} | {each / live:.2f} |" for name, each in seconds.items()),
        "",
        f"{PARALLELISM} games side by side take {seconds[TOGETHER] / seconds[ALONE]:.2f} of the time that they take "
        f"one after the other, on {PARALLELISM} cores. A backfill takes {seconds[TOGETHER] / live:.2f} of the time in "
        "which the live path (`engine: fleet`) takes such rows day by day, as they come, and "
        f"{seconds[TOGETHER] / seconds[LIVE]:.2f} of that in which it takes all in one round; bronze is left out, and "
        "finding out what there is to do is in each figure. Decoding again checks first that no row would be lost, and "
        "writes down what is done.",
    ]


def details(sizes: Sizes) -> str:
    """Return what was measured, as part of a sentence."""
    return (
        f"{sizes.total:,} rows of {sizes.games} games, {sizes.days} days each, medians of {sizes.repeats} after one "
        "that is not counted"
    )


def _row_seconds(root: BenchRoot, events: Events, rounds: int) -> float:
    """Return the seconds a row of so many rounds with these events, without taking them into bronze."""
    seconds, rows = 0.0, 0
    for _ in range(rounds):
        root.send(events)
        spent = root.round()
        seconds, rows = seconds + spent.silver + spent.rest, rows + spent.rows
    return seconds / rows


def _place(root: BenchRoot, parallelism: int) -> CommandContext:
    run_settings = root.settings.run.model_copy(update={"parallelism": parallelism})
    return place_of(root.settings.model_copy(update={"run": run_settings}), root.spark, threading.Event())


def _rebuild(place: CommandContext, games: list[str]) -> None:
    for game in games:
        rebuild(Redecoder(place.spark, place.layout, place.schemas), game)
