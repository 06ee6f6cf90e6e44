"""Text from outside on a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.text import count_text, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("chess", "chess"),
        ("将棋 🎮 é", "将棋 🎮 é"),
        ("\x1b[31mred", "\\u001b[31mred"),
        ("a\nb\tc", "a\\u000ab\\u0009c"),
        ("a\u202eb", "a\\u202eb"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("no\xa0break\u3000wide", "no\\u00a0break\\u3000wide"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_cannot_be_seen_is_written_as_its_code(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(st.characters()))
def test_nothing_invisible_is_left_and_a_second_time_changes_nothing(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1
    assert printable(shown) == shown


def test_one_thing_is_not_several_and_thousands_are_apart() -> None:
    shown = [count_text(number, "game") for number in (0, 1, 2, 999, 1000)]
    assert shown == ["0 games", "1 game", "2 games", "999 games", "1,000 games"]
