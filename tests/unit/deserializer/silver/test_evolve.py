"""How columns that Delta added at the end come to their place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deserializer.silver.evolve import moves

orders = st.permutations(["a", "B", "c`d", "é", "_schema_id", "_offset"])


def after(now: list[str], moved: list[tuple[str, str]]) -> list[str]:
    """The order after Spark did the moves: FIRST, or AFTER another column."""
    order = list(now)
    for name, place in moved:
        order.remove(name)
        position = 0 if place == "FIRST" else order.index(place.removeprefix("AFTER `")[:-1].replace("``", "`")) + 1
        order.insert(position, name)
    return order


@pytest.mark.parametrize(
    ("now", "wanted", "moved"),
    [
        (["a", "_offset"], ["a", "_offset"], []),
        (["a", "_offset", "b"], ["a", "b", "_offset"], [("b", "AFTER `a`")]),
        (["_offset", "a"], ["a", "_offset"], [("a", "FIRST")]),
        (["a", "_o", "_p", "b", "c"], ["a", "b", "c", "_o", "_p"], [("b", "AFTER `a`"), ("c", "AFTER `b`")]),
        ([], [], []),
    ],
)
def test_only_what_stands_in_the_wrong_place_is_moved(
    now: list[str], wanted: list[str], moved: list[tuple[str, str]]
) -> None:
    assert moves(now, wanted) == moved


@given(orders, orders)
def test_the_moves_take_any_order_to_any_other(now: list[str], wanted: list[str]) -> None:
    assert after(now, moves(now, wanted)) == wanted


@given(orders)
def test_an_order_that_is_right_already_needs_no_move(order: list[str]) -> None:
    assert moves(order, order) == []
