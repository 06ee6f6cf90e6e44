"""A thousand games: what idle ones begin (counted), what a few active ones cost beside them, and what all cost."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from benchmarks.support.counted import Count, counted
from benchmarks.support.events import Events
from benchmarks.support.roots import Bench, BenchRoot, Spent
from benchmarks.support.sizes import Sizes

IDLE_TITLE = "Idle games"
FEW_TITLE = "Many games, few of them active"
ALL_TITLE = "Many games, all of them active"


@dataclass(frozen=True, slots=True)
class Begun:
    """What a round began: Spark jobs and queries of its decoding, commits to silver and quarantine in all of it."""

    active: int
    jobs: int
    queries: int
    commits: int


def idle(bench: Bench, sizes: Sizes) -> list[str]:
    """Return what rounds begin in which nobody, or hardly anybody, has new rows."""
    root = grown(bench, sizes.most, sizes)
    few = bench.events(sizes.active, sizes.rows)
    # warm: the first round of a few has nothing to learn any more
    _spent(root, few)
    found = [begun(root, None), begun(root, few), begun(root, None)]
    names = ["nobody has new rows", f"{sizes.active} games have", "nobody has, again"]
    return [
        f"| a round over {sizes.most:,} games | Spark jobs | streaming queries | commits to silver and quarantine |",
        "| --- | ---: | ---: | ---: |",
        *(f"| {name} | {one.jobs} | {one.queries} | {one.commits} |" for name, one in zip(names, found, strict=True)),
        "",
        "Jobs and queries are those of the engine; bronze, which all games share, has its own.",
    ]


def few_active(bench: Bench, sizes: Sizes) -> list[str]:
    """Return what a round with a few active games costs among many, against a root with only those."""
    most, alone = grown(bench, sizes.most, sizes), grown(bench, sizes.active, sizes)
    few = bench.events(sizes.active, sizes.rows)
    here, there = _in_turn([(most, few), (alone, few)], sizes)
    return [
        f"| {sizes.active} games with {sizes.rows:,} new rows each | bronze, s | decoding, s | plan and control "
        "tables, s | whole round, s |",
        "| --- | ---: | ---: | ---: | ---: |",
        _row(f"among {sizes.most:,} games", here),
        _row("no other games", there),
        _ratios(here, there),
        "",
        "Bar: the whole round at most 3 times as long.",
    ]


def all_active(bench: Bench, sizes: Sizes) -> list[str]:
    """Return what a game costs where many, and where fewer, are all active."""
    most, fewer = grown(bench, sizes.most, sizes), grown(bench, sizes.fewer, sizes)
    works = [(most, bench.events(sizes.most, sizes.few_rows)), (fewer, bench.events(sizes.fewer, sizes.few_rows))]
    here, there = _in_turn(works, sizes)
    per_game = [_median(here, "silver") / sizes.most, _median(there, "silver") / sizes.fewer]
    whole = [_median(here, "round") / sizes.most, _median(there, "round") / sizes.fewer]
    return [
        f"| all active, {sizes.few_rows:,} new rows each | decoding, s a round | decoding, s per game | whole round, s "
        "per game |",
        "| --- | ---: | ---: | ---: |",
        f"| {sizes.most:,} games | {_median(here, 'silver'):.2f} | {per_game[0]:.4f} | {whole[0]:.4f} |",
        f"| {sizes.fewer:,} games | {_median(there, 'silver'):.2f} | {per_game[1]:.4f} | {whole[1]:.4f} |",
        f"| ratio | | {per_game[0] / per_game[1]:.2f} | {whole[0] / whole[1]:.2f} |",
        "",
        "Bar: seconds per game at most 1.3 times those of the smaller fleet.",
    ]


def details(sizes: Sizes) -> str:
    """Return what was measured, as part of a sentence."""
    return f"one schema version, medians of {sizes.repeats} rounds after {sizes.warm}"


def grown(bench: Bench, games: int, sizes: Sizes) -> BenchRoot:
    """Return a root where this many games have had rows before."""
    root = bench.root(f"of-{games}")
    if not root.silver():
        spent = _spent(root, bench.events(games, sizes.few_rows))
        print(
            f"{spent.round:8.1f} s  the first round of {games} games, {spent.silver:.1f} s of it decoding", flush=True
        )
    return root


def begun(root: BenchRoot, events: Events | None) -> Begun:
    """Return what a round begins."""
    if events is not None:
        root.send(events)
    count, before = Count(), root.commits()
    spent = root.round(lambda: counted(root.spark, count))
    return Begun(spent.games, count.jobs, count.queries, root.commits() - before)


def _in_turn(works: list[tuple[BenchRoot, Events]], sizes: Sizes) -> list[list[Spent]]:
    found: list[list[Spent]] = [[] for _ in works]
    for number in range(sizes.warm + sizes.repeats):
        for (root, events), mine in zip(works, found, strict=True):
            mine.append(_spent(root, events))
        print(f"round {number}: {[f'{mine[-1].silver:.2f}' for mine in found]} s of decoding", flush=True)
    return [mine[sizes.warm :] for mine in found]


def _spent(root: BenchRoot, events: Events) -> Spent:
    root.send(events)
    return root.round()


def _median(spent: list[Spent], what: str) -> float:
    return float(statistics.median(getattr(each, what) for each in spent))


def _row(name: str, spent: list[Spent]) -> str:
    figures = (_median(spent, what) for what in ("bronze", "silver", "rest", "round"))
    return f"| {name} | {' | '.join(f'{figure:.2f}' for figure in figures)} |"


def _ratios(here: list[Spent], there: list[Spent]) -> str:
    pairs = ((_median(here, what), _median(there, what)) for what in ("bronze", "silver", "rest", "round"))
    return f"| ratio | {' | '.join(f'{mine / other:.2f}' for mine, other in pairs)} |"
