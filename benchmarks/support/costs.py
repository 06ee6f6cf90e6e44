"""Seconds per active game and round: the naive design, a stream for each game, and the fleet, in one session."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass

from benchmarks.support.roots import PARALLELISM, Bench, Spent
from benchmarks.support.sizes import Sizes
from demux.core.settings.settings import Engine

TITLE = "Seconds per active game"


@dataclass(frozen=True, slots=True)
class Cost:
    """Medians of a design's rounds: decoding alone, and with planning and the control tables; bronze not counted."""

    name: str
    games: int
    silver: float
    with_plan: float | None
    bar: str = ""

    @property
    def per_game(self) -> float:
        """Seconds of decoding for each game."""
        return self.silver / self.games


def measured(bench: Bench, sizes: Sizes) -> list[Cost]:
    """Return the costs, the naive design's first; all games are active in every round.

    Spark ends Python workers that nobody has used for a minute, and the slow designs take longer: what the fleet's
    round costs right after them is one figure, what the next one costs another.
    """
    streams, fleet, many = bench.root("streams", Engine.STREAM), bench.root("fleet"), bench.root("many")
    few_events = bench.events(sizes.games, sizes.rows, sizes.versions)
    many_events = bench.events(sizes.many, sizes.rows, sizes.versions)
    naive: list[float] = []
    spent: defaultdict[str, list[Spent]] = defaultdict(list)
    for number in range(sizes.warm + sizes.repeats):
        streams.send(few_events)
        spent["streams"].append(streams.round())
        naive.append(streams.naive(sizes.games))
        for name, root, events in (
            ("many, after a pause", many, many_events),
            ("many", many, many_events),
            ("fleet", fleet, few_events),
        ):
            root.send(events)
            spent[name].append(root.round())
        last = {name: f"{each[-1].silver:.2f}" for name, each in spent.items()}
        print(f"round {number}: naive {naive[-1]:.2f}, {last} s", flush=True)
    for name in ("streams", "fleet", "many"):
        bench.forget(name)
    counted = {name: each[sizes.warm :] for name, each in spent.items()}
    return [
        Cost("naive stream for each game, tuned", sizes.games, statistics.median(naive[sizes.warm :]), None),
        _cost("`engine: stream`", sizes.games, counted["streams"]),
        _cost("`engine: fleet`", sizes.games, counted["fleet"], "1/25"),
        _cost("`engine: fleet`", sizes.many, counted["many"], "1/100"),
        _cost("`engine: fleet`, right after the slow designs", sizes.many, counted["many, after a pause"]),
    ]


def lines(costs: list[Cost]) -> list[str]:
    """Return the costs as Markdown."""
    first = costs[0].per_game
    rows = [
        f"| {cost.name} | {cost.games:,} | {cost.silver:.2f} | {_seconds(cost.with_plan)} | {cost.per_game:.4f} | "
        f"{_ratio(first, cost.per_game)} | {cost.bar} |"
        for cost in costs
    ]
    return [
        "| all games active | games | decoding, s a round | with plan and control tables, s | decoding, s per game | "
        "of the naive | bar |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        *rows,
        "",
        f"The same events; every design has {PARALLELISM} cores and decodes {PARALLELISM} games at the same time. "
        "Spark ends Python workers that were idle for a minute; new ones import and make their decoders again.",
    ]


def details(sizes: Sizes) -> str:
    """Return what was measured, as part of a sentence."""
    return (
        f"{sizes.rows:,} rows of each game and round in {sizes.versions} schema versions, medians of {sizes.repeats} "
        f"rounds after {sizes.warm}"
    )


def run(bench: Bench, sizes: Sizes) -> list[str]:
    """Return the section's lines."""
    return lines(measured(bench, sizes))


def _cost(name: str, games: int, spent: list[Spent], bar: str = "") -> Cost:
    silver = statistics.median(each.silver for each in spent)
    return Cost(name, games, silver, statistics.median(each.silver + each.rest for each in spent), bar)


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2f}"


def _ratio(first: float, other: float) -> str:
    return "1" if first == other else f"1/{first / other:.1f}"
