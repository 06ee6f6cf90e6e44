"""One number for each game, whatever is known of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from demux.core.control.games_and_rounds import Load
from install_workflow.planning.rebalance import weights_ms

names = st.text(max_size=3)
loads = st.builds(Load, st.floats(0, 1e9), st.none() | st.floats(0, 1e6))


def test_a_game_weighs_its_seconds() -> None:
    assert weights_ms(["chess", "go"], {"chess": Load(10, 1.5), "go": Load(10_000, 0.25)}) == {"chess": 1500, "go": 250}


def test_a_game_that_nobody_timed_weighs_its_rows_at_the_usual_speed() -> None:
    known = {"chess": Load(100, 1.0), "go": Load(100, 2.0), "ludo": Load(100, 9.0), "halma": Load(50, None)}
    assert weights_ms(known, known)["halma"] == 1000


def test_where_nobody_was_timed_rows_alone_are_compared() -> None:
    assert weights_ms(["chess", "go"], {"chess": Load(400, None), "go": Load(100, None)}) == {"chess": 400, "go": 100}


def test_a_new_game_weighs_as_much_as_a_usual_one() -> None:
    known = {"chess": Load(1, 1.0), "go": Load(1, 2.0), "ludo": Load(1, 30.0)}
    assert weights_ms([*known, "new"], known)["new"] == 2000


def test_games_that_are_gone_do_not_count() -> None:
    assert weights_ms(["chess"], {"gone": Load(1, 1.0)}) == {}
    assert weights_ms(["chess", "new"], {"chess": Load(1, 1.0), "gone": Load(1, 9.0)}) == {"chess": 1000, "new": 1000}


def test_no_game_weighs_nothing() -> None:
    assert weights_ms(["chess", "go"], {"chess": Load(0, 0.0), "go": Load(0, None)}) == {"chess": 1, "go": 1}


@given(st.sets(names, max_size=8), st.dictionaries(names, loads, max_size=8))
def test_every_game_has_a_weight_or_none_has(games: set[str], known: dict[str, Load]) -> None:
    weights = weights_ms(games, known)
    assert weights.keys() == (games if games & known.keys() else set())
    assert all(weight >= 1 for weight in weights.values())
    assert weights_ms(sorted(games, reverse=True), dict(sorted(known.items()))) == weights
