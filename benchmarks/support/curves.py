"""Seconds of a round against the number of games, and against the rows of a game; the naive design where affordable."""

from __future__ import annotations

import statistics

from benchmarks.support.plots import draw_all
from benchmarks.support.points import FLEET, NAIVE, Point, save, series, steps
from benchmarks.support.roots import Bench, BenchRoot
from benchmarks.support.sizes import Sizes

TITLE = "Cost against games and against rows"

_GAMES = (1, 5, 20, 50, 200, 1_000)
_ROWS = (100, 1_000, 10_000, 100_000)


def run(bench: Bench, sizes: Sizes) -> list[str]:
    """Return the section's lines; saves the points and draws the plots."""
    points = [*against_games(bench, sizes), *against_rows(bench, sizes)]
    save(points, bench.plots)
    draw_all(points, bench.plots)
    return [*_table(points, "games"), "", *_table(points, "rows")]


def against_games(bench: Bench, sizes: Sizes) -> list[Point]:
    """Return points with few rows of each game, so that it is games that cost."""
    found: list[Point] = []
    for games in steps(sizes.curve_games, _GAMES):
        root = bench.root(f"curve-{games}")
        designs = [FLEET, NAIVE] if games <= sizes.naive_games else [FLEET]
        found += _points(bench, root, "games", games, sizes.few_rows, designs, sizes)
        bench.forget(f"curve-{games}")
    return found


def against_rows(bench: Bench, sizes: Sizes) -> list[Point]:
    """Return points with the same games and ever more rows."""
    root = bench.root("curve-rows")
    found: list[Point] = []
    for rows in steps(sizes.curve_rows, _ROWS):
        found += _points(bench, root, "rows", sizes.games, rows, [FLEET, NAIVE], sizes)
        bench.forget_events()
    bench.forget("curve-rows")
    return found


def details(sizes: Sizes) -> str:
    """Return what was measured, as part of a sentence."""
    return f"seconds of decoding in a round, medians of {sizes.repeats} rounds after {sizes.warm}; all games active"


def _points(
    bench: Bench, root: BenchRoot, plot: str, games: int, rows: int, designs: list[str], sizes: Sizes
) -> list[Point]:
    events = bench.events(games, rows)
    seconds: dict[str, list[float]] = {design: [] for design in designs}
    for _ in range(sizes.warm + sizes.repeats):
        root.send(events)
        seconds[FLEET].append(root.round().silver)
        if NAIVE in seconds:
            seconds[NAIVE].append(root.naive(games))
    found = [
        Point(plot, design, games, rows, round(statistics.median(each[sizes.warm :]), 4))
        for design, each in seconds.items()
    ]
    print("\n".join(map(str, found)), flush=True)
    return found


def _table(points: list[Point], plot: str) -> list[str]:
    fleet, naive = (dict(zip(*series(points, plot, design), strict=True)) for design in (FLEET, NAIVE))
    fixed = "rows" if plot == "games" else "games"
    (value,) = {getattr(point, fixed) for point in points if point.plot == plot}
    what = f"games, {value:,} new rows each" if plot == "games" else f"new rows of each game, {value} games"
    return [
        f"| {what} | fleet, s | naive, s |",
        "| ---: | ---: | ---: |",
        *(f"| {x:,} | {y:.2f} | {f'{naive[x]:.2f}' if x in naive else ''} |" for x, y in fleet.items()),
    ]
