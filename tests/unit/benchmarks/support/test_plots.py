from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.support.plots import draw_all
from benchmarks.support.points import DISK, FLEET, NAIVE, STORE, Point, loaded, save, series, steps

POINTS = (
    Point("games", FLEET, 200, 100, 1.5),
    Point("games", FLEET, 1, 100, 0.04),
    Point("games", NAIVE, 1, 100, 0.9),
    Point("rows", FLEET, 20, 100, 0.2),
    Point("rows", NAIVE, 20, 100, 9.0),
)


def test_a_line_goes_from_the_least_to_the_most() -> None:
    assert series(POINTS, "games", FLEET) == ((1, 200), (0.04, 1.5))
    assert series(POINTS, "rows", NAIVE) == ((100,), (9.0,))


@pytest.mark.parametrize(
    ("last", "expected"), [(20, (1, 5, 20)), (7, (1, 5, 7)), (1, (1,)), (1000, (1, 5, 20, 50, 1000))]
)
def test_steps_end_with_the_last_one(last: int, expected: tuple[int, ...]) -> None:
    assert steps(last, (1, 5, 20, 50)) == expected


def test_points_come_back_as_they_were(tmp_path: Path) -> None:
    save(POINTS, tmp_path)
    assert loaded(tmp_path) == POINTS


def test_points_of_one_plot_replace_those_of_it_alone(tmp_path: Path) -> None:
    stores = (Point("stores", DISK, 20, 100, 1.0), Point("stores", STORE, 20, 100, 2.0))
    save(POINTS, tmp_path)
    save(stores, tmp_path)
    save([Point("games", FLEET, 5, 100, 0.1)], tmp_path)
    assert loaded(tmp_path) == (Point("games", FLEET, 5, 100, 0.1), *POINTS[3:], *stores)
    assert series(stores, "stores", STORE) == ((20,), (2.0,))
    assert [path.name for path in draw_all(stores, tmp_path)] == ["stores.svg"]


def test_the_same_points_are_drawn_in_the_same_bytes_without_a_date(tmp_path: Path) -> None:
    first, second = (draw_all(POINTS, tmp_path / name) for name in ("a", "b"))
    texts = [[path.read_text(encoding="utf-8") for path in drawn] for drawn in (first, second)]
    assert texts[0] == texts[1]
    assert [path.name for path in first] == ["games.svg", "rows.svg"]
    assert "dc:date" not in texts[0][0]
    assert max(len(text) for text in texts[0]) < 60_000
