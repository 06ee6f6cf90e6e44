"""Series of games are bounded, whatever is seen in whatever order."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from demux.core.control.freshness import Freshness, bucket_of
from demux.pipeline.observers.instruments import MOST_GAMES, OTHER, GameSeries
from tests.support.observed import BEGAN


def test_the_first_games_keep_series_of_their_own_and_the_others_share_one() -> None:
    games = GameSeries(most=2)
    for rows, name in enumerate(["chess", "go", "ludo", "skat", "chess"], 1):
        games.left(name, rows)
        games.fresh([name], BEGAN + timedelta(seconds=rows))
    assert games.lag_rows() == {"chess": 5, "go": 2, OTHER: 3 + 4}
    # the oldest of the others
    assert games.age_s(BEGAN + timedelta(seconds=10)) == {"chess": 5.0, "go": 8.0, OTHER: 7.0}


@given(st.lists(st.tuples(st.text(max_size=3), st.integers(0, 100))), st.integers(0, 4))
def test_no_more_series_than_the_limit_and_no_row_is_lost(seen: list[tuple[str, int]], most: int) -> None:
    games = GameSeries(most)
    for name, rows in seen:
        games.left(name, rows)
    assert sum(games.lag_rows().values()) == sum(dict(seen).values())
    assert len(games.lag_rows()) <= most + 1


def test_ten_thousand_games_have_501_series() -> None:
    games = GameSeries()
    games.fresh((f"game {number}" for number in range(10_000)), BEGAN)
    assert len(games.age_s(BEGAN)) == MOST_GAMES + 1


def test_freshness_is_that_of_the_last_hour_and_games_without_series_share_one() -> None:
    games = GameSeries(most=1)
    for minute, (name, age_s) in enumerate([("chess", 60.0), ("go", 3.0), ("chess", 1.0), ("ludo", 2.0)]):
        games.committed(name, Freshness(bucket_of(age_s), (10,)), BEGAN + timedelta(minutes=minute))
    assert games.freshness(BEGAN + timedelta(minutes=61)) == {
        "chess": Freshness(bucket_of(1.0), (10,)),
        OTHER: Freshness.of({bucket_of(3.0): 10, bucket_of(2.0): 10}),
    }
