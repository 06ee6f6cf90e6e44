"""Freshness of games, and the limit that the settings give it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

from demux.core.control.freshness import Freshness, bucket_of
from demux.operations.status.facts import BronzeFile, Facts, TableFacts
from demux.operations.status.json_view import COLUMNS, status_json
from demux.operations.status.model import LATE, Status
from demux.operations.status.prometheus import ServerCounts, metrics
from demux.operations.status.summary import status_of
from tests.support.data.statuses import NOW, known, record


def ages(*seconds: float) -> Freshness:
    return Freshness.of({bucket_of(age): 100 for age in seconds})


def root(waits_s: float | None = None, limit_s: float | None = 5.0) -> Status:
    """Chess committed rows two hours ago (an hour old), half an hour ago (2 s) and now (10 s)."""
    records = [
        replace(record("chess"), finished_at=NOW - timedelta(hours=2), freshness=ages(3600.0)),
        replace(record("chess", 30), freshness=ages(2.0)),
        replace(record("chess", 60), freshness=ages(10.0)),
        replace(record("go", 60), freshness=ages(1.0)),
    ]
    came = [] if waits_s is None else [BronzeFile(NOW - timedelta(seconds=waits_s), 7)]
    facts = Facts({"chess": known("chess"), "go": known("go")}, records, {"go": came}, {"go": TableFacts(1, 1, 0)})
    return status_of("/root", facts, NOW, fresh_within_s=lambda game: limit_s)


def test_freshness_is_that_of_the_last_hour() -> None:
    chess, go = root().games
    assert chess.freshness == Freshness.of({bucket_of(2.0): 100, bucket_of(10.0): 100})
    assert (chess.is_late(NOW), go.is_late(NOW)) == (True, False)


def test_a_game_is_a_problem_once_its_p95_misses_the_limit() -> None:
    (problem,) = root().problems
    assert (problem.condition, problem.games) == (LATE, ("chess",))
    assert "`games.fresh_within` allows, 5 s" in problem.sentence
    assert "`demux run --every`" in problem.sentence


def test_rows_that_wait_for_longer_than_the_limit_are_late_too() -> None:
    assert [one.games for one in root(waits_s=4.0).problems] == [("chess",)]
    assert [one.games for one in root(waits_s=6.0).problems] == [("chess", "go")]


def test_without_a_limit_no_game_is_late() -> None:
    assert root(waits_s=1000.0, limit_s=None).problems == ()


def test_json_has_p50_p95_and_the_limit() -> None:
    games = json.loads(status_json(root()))["games"]
    found = [[row[COLUMNS.index(name)] for name in ("fresh_p50", "fresh_p95", "fresh_within")] for row in games]
    assert found == [[1.961, 10.17, 5.0], [0.9806, 0.9806, 5.0]]


def test_metrics_have_a_series_for_each_quantile_and_say_who_is_late() -> None:
    found = metrics(root(), ServerCounts()).splitlines()
    assert any(
        line.startswith('demux_game_freshness_seconds{game="chess",table="chess",quantile="0.95"} 10.17')
        for line in found
    )
    assert 'demux_game_late{game="chess",table="chess"} 1' in found
    assert 'demux_game_late{game="go",table="go"} 0' in found
    assert not any(
        line.startswith("demux_game_late{") for line in metrics(root(limit_s=None), ServerCounts()).splitlines()
    )
