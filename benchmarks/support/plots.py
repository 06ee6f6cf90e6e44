"""The plots of the README, drawn from their points: `python -m benchmarks.support.plots`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.support.points import DISK, FLEET, NAIVE, PLOTS, SLOW, STORE, STREAMS, Point, loaded, series

_INK, _GRID = "#24292f", "#d0d7de"


@dataclass(frozen=True, slots=True)
class _Look:
    """How a design is drawn; everybody can distinguish the colours (Okabe and Ito), and the marks without colour."""

    label: str
    colour: str
    marker: str


_LOOKS = {
    NAIVE: _Look("a stream for each game (naive, tuned)", "#d55e00", "s"),
    FLEET: _Look("run.engine: fleet", "#0072b2", "o"),
    DISK: _Look("root in a folder", "#0072b2", "o"),
    STORE: _Look("root in S3", "#009e73", "^"),
    SLOW: _Look("root in S3, 30 ms on each request", "#cc79a7", "D"),
    "20 games": _Look("20 games", "#0072b2", "o"),
    "200 games": _Look("200 games", "#009e73", "^"),
    "1,000 games, 10 active": _Look("1,000 games, 10 active", "#cc79a7", "D"),
    STREAMS: _Look(STREAMS, "#d55e00", "s"),
}


def draw_all(points: Sequence[Point], folder: Path = PLOTS) -> tuple[Path, ...]:
    """Write a plot of each kind of points and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    across = {
        "games": "active games, {rows:,} new rows each",
        "rows": "new rows of each game, {games} games",
        "stores": "active games, {rows:,} new rows each",
        "freshness": "percent of the rows that are at most so old",
    }
    first = {plot: next((point for point in points if point.plot == plot), None) for plot in across}
    return tuple(
        _draw(points, plot, across[plot].format(games=point.games, rows=point.rows), folder / f"{plot}.svg")
        for plot, point in first.items()
        if point is not None
    )


def _draw(points: Sequence[Point], plot: str, across: str, path: Path) -> Path:
    # no date, and ids that depend on nothing but the drawing
    with mpl.rc_context(
        {"svg.hashsalt": "demux", "svg.fonttype": "path", "font.size": 13, "font.family": "DejaVu Sans"}
    ):
        # a white ground of its own: a page may be dark
        figure = Figure(figsize=(7.2, 4.3), layout="constrained", facecolor="white")
        axes = figure.add_subplot()
        for design, look in _LOOKS.items():
            xs, ys = series(points, plot, design)
            if not xs:
                continue
            axes.plot(xs, ys, label=look.label, color=look.colour, marker=look.marker, linewidth=2.2, markersize=7)
        if plot != "freshness":
            axes.set_xscale("log")
        _dress(
            axes, across, "seconds from the broker to silver" if plot == "freshness" else "seconds to decode a round"
        )
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    return path


def _dress(axes: Any, across: str, up: str) -> None:
    axes.set_yscale("log")
    axes.set_xlabel(across, color=_INK)
    axes.set_ylabel(up, color=_INK)
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() != "log":
            continue
        axis.set_major_locator(LogLocator(10))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.grid(visible=True, which="major", color=_GRID, linewidth=0.8)
    axes.tick_params(colors=_INK, which="both")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, labelcolor=_INK, loc="upper left")
    low, high = axes.get_ylim()
    # room for the legend
    axes.set_ylim(low, high * 3)


def main() -> None:
    """Draw what was measured last."""
    for path in draw_all(loaded(PLOTS)):
        print(path)


if __name__ == "__main__":
    main()
