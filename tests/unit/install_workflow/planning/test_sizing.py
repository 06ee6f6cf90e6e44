from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.errors import SettingsInvalid
from install_workflow.planning.sizing import (
    DAY_S,
    LEAST_CORES,
    SHORTEST_ROUND_S,
    SizedLoad,
    SizeEstimate,
    estimate_size,
    round_cpu_s,
    rows_per_day_of,
)

PAGE = Path(__file__).parents[4] / "docs" / "sizing.md"

loads = st.builds(
    SizedLoad,
    games=st.integers(1_000, 100_000),
    rows_per_day=st.floats(1, 1e12),
    active=st.integers(0, 1_000),
    every_s=st.floats(1, 3600),
    bytes_per_record=st.integers(1, 1_000_000),
    columns=st.integers(1, 4_000),
)


def figures(found: SizeEstimate) -> tuple[float, ...]:
    return (
        found.cores,
        found.memory_mib,
        found.requests_per_day,
        found.bronze_files_per_day,
        found.silver_files_per_day,
        found.commits_per_day,
        found.bytes_per_day,
    )


@pytest.mark.parametrize("what", ["games", "rows_per_day", "active", "bytes_per_record", "columns"])
@given(loads, st.floats(1, 10))
def test_more_of_anything_never_needs_less(what: str, load: SizedLoad, times: float) -> None:
    value = getattr(load, what)
    more = type(value)(value * times)
    larger = replace(load, **{"games": max(load.games, more) if what == "active" else load.games, what: more})
    pairs = zip(figures(estimate_size(load)), figures(estimate_size(larger)), strict=True)
    assert all(one <= other for one, other in pairs)


@given(loads, st.floats(1, 10))
def test_rarer_rounds_never_need_more_requests_files_or_cores(load: SizedLoad, times: float) -> None:
    now, rarer = estimate_size(load), estimate_size(replace(load, every_s=load.every_s * times))
    assert rarer.cores <= now.cores
    assert rarer.requests_per_day <= now.requests_per_day
    assert rarer.silver_files_per_day <= now.silver_files_per_day


@given(loads)
def test_cores_do_the_work_of_a_round_before_the_next_one_begins(load: SizedLoad) -> None:
    found = estimate_size(load)
    assert sum(found.cpu_s.values()) <= found.cores * found.round_s
    assert found.cores >= LEAST_CORES
    assert found.round_s >= SHORTEST_ROUND_S
    assert found.rows_per_round * found.rounds_per_day == pytest.approx(load.rows_per_day)


def test_fewer_rows_than_games_make_fewer_games_active() -> None:
    found = estimate_size(SizedLoad(1_000, rows_per_day=DAY_S, active=1_000, every_s=10))
    assert (found.active, found.bronze_files_per_day) == (10, 86_400)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("2e9/day", 2e9),
        ("2e9/d", 2e9),
        (" 25000/s ", 25_000 * DAY_S),
        ("1_000_000 / h", 24e6),
        ("1.5e3/min", 1_500 * 1_440),
        ("1E+3/hour", 24_000),
    ],
)
def test_rows_are_a_number_and_a_time(text: str, rows: float) -> None:
    assert rows_per_day_of(text) == pytest.approx(rows)


@pytest.mark.parametrize(
    "text",
    ["", "2e9", "2e9/parsec", "-5/s", "0/s", "1e-3/s", "1e999/s", "nan/s", "inf/s", "/s", "5/", "5//s", "\x1b/s"],
)
def test_what_is_no_number_of_rows_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(SettingsInvalid, match="is no number of rows a time") as refused:
        rows_per_day_of(text)
    assert "2e9/day" in refused.value.remedy
    assert "\x1b" not in refused.value.message


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"games": 0}, "--games 0 is less than 1."),
        ({"bytes_per_record": -1}, "--bytes -1 is less than 1."),
        ({"columns": 0}, "--columns 0 is less than 1."),
        ({"active": 11}, "--active 11 is not between 0 and the 10 games."),
        ({"active": -1}, "--active -1 is not between 0 and the 10 games."),
    ],
)
def test_a_load_that_cannot_be_is_refused(changed: dict[str, int], sentence: str) -> None:
    with pytest.raises(SettingsInvalid) as refused:
        replace(SizedLoad(games=10, rows_per_day=1e6, active=10), **changed)
    assert (refused.value.message, bool(refused.value.remedy)) == (sentence, True)


def table_below(heading: str) -> list[list[float]]:
    """The numbers of the first table below a heading of the page, row by row."""
    _, _, rest = PAGE.read_text("utf-8").partition(f"\n{heading}\n")
    rows = re.findall(r"^\| ([\d.,| ]+) \|", rest.partition("\n#")[0], re.MULTILINE)
    return [[float(cell.replace(",", "")) for cell in row.split("|")] for row in rows]


def test_the_formula_is_near_the_three_rounds_of_the_page() -> None:
    rounds = table_below("## Checked against three rounds")
    assert len(rounds) == 3
    for games, active, rows, measured, predicted, ratio in rounds:
        found = sum(round_cpu_s(int(games), active, active * rows).values())
        assert found == pytest.approx(predicted, abs=0.01)
        assert ratio == pytest.approx(found / measured, abs=0.01)
        assert 1 / 1.3 < found / measured < 1.3
