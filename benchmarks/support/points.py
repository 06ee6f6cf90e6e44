"""The points of the plots: seconds of rounds by design, games and rows; kept in a file to draw them again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

PLOTS = Path(__file__).parents[2] / "docs" / "plots"
_FILE = "points.json"

NAIVE, FLEET = "naive", "fleet"
STREAMS = "a stream for each game, 20 games"
DISK, STORE, SLOW = "disk", "store", "store, late"


@dataclass(frozen=True, slots=True)
class Point:
    """One figure.

    Attributes:
        plot: `games` or `rows`: what is on the other axis; `stores`: games, by where the root is; `freshness`: percent
            of the rows.
        design: one of those above; for `freshness`, a variant's name.
        games: how many were active.
        rows: new rows of each; for `freshness`, the percent of the rows that were at most so old.
        seconds: of decoding, in a round; for `freshness`, the age.
    """

    plot: str
    design: str
    games: int
    rows: int
    seconds: float


def save(points: Iterable[Point], folder: Path) -> None:
    """Write the points into the folder of the plots, one on each line; those of other plots stay."""
    folder.mkdir(parents=True, exist_ok=True)
    new = tuple(points)
    plots = {point.plot for point in new}
    kept = [point for point in loaded(folder) if point.plot not in plots] if (folder / _FILE).exists() else []
    lines = ",\n".join(json.dumps(asdict(point)) for point in sorted([*kept, *new], key=lambda point: point.plot))
    (folder / _FILE).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def loaded(folder: Path) -> tuple[Point, ...]:
    """Return the points that were saved."""
    return tuple(Point(**point) for point in json.loads((folder / _FILE).read_text(encoding="utf-8")))


def series(points: Sequence[Point], plot: str, design: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return what is on the other axis, in order, and the seconds of each."""
    mine = [point for point in points if (point.plot, point.design) == (plot, design)]
    pairs = sorted((point.rows if plot in {"rows", "freshness"} else point.games, point.seconds) for point in mine)
    return tuple(x for x, _ in pairs), tuple(y for _, y in pairs)


def steps(last: int, all_steps: Sequence[int]) -> tuple[int, ...]:
    """Return the steps up to the last one, which is there too."""
    return (*(step for step in all_steps if step < last), last)
