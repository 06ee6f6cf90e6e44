"""What a game usually costs."""

from __future__ import annotations

from demux.core.control.games_and_rounds import Load, usual_load


def test_the_one_round_of_a_long_history_counts_for_little() -> None:
    assert usual_load([Load(1_000_000, 900.0), Load(10, 1.0), Load(20, 3.0)]) == Load(20, 3.0)


def test_of_two_rounds_the_usual_is_in_the_middle() -> None:
    assert usual_load([Load(10, 1.0), Load(20, 2.0)]) == Load(15.0, 1.5)


def test_rounds_that_nobody_timed_have_no_seconds() -> None:
    assert usual_load([Load(10, None), Load(30, None)]) == Load(20, None)
    assert usual_load([Load(10, None), Load(30, 4.0)]) == Load(20, 4.0)
