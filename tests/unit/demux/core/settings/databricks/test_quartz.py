"""Quartz expressions: those of its documentation are right, and a wrong one is said with the field that it is in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.settings.databricks.quartz import quartz_mistake


@pytest.mark.parametrize(
    "expression",
    [
        "0 0 12 * * ?",
        "0 15 10 ? * *",
        "0 15 10 * * ? 2027",
        "0 0/5 14,18 * * ?",
        "0 0-5 14 * * ?",
        "0 10,44 14 ? 3 WED",
        "0 15 10 ? * mon-fri",
        "0 15 10 L * ?",
        "0 15 10 L-2 * ?",
        "0 15 10 LW * ?",
        "0 15 10 15W * ?",
        "0 15 10 ? * 6L 2027-2030",
        "0 15 10 ? * FRIL",
        "0 15 10 ? * 6#3",
        "0 0 22-2 ? JAN,DEC SAT-MON",
        "*/30 /5 * 1/5 * ?",
        "  0 0  5 * * ?  ",
    ],
)
def test_what_quartz_takes_is_right(expression: str) -> None:
    assert quartz_mistake(expression) is None


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("0 5 * * *", "a Quartz expression of 6 or 7 fields, seconds first, such as 0 0 5 * * ?"),
        ("0 0 5 * * *", "? for the day of the month or for the day of the week, and not for both"),
        ("60 0 5 * * ?", "0 to 59 for the second, not 60"),
        ("0 -1 5 * * ?", "0 to 59 for the minute, not -1"),
        ("0 0 25 * * ?", "0 to 23 for the hour, not 25"),
        ("0 0 1-24 * * ?", "0 to 23 for the hour, not 1-24"),
        ("0 0/0 5 * * ?", "0 to 59 for the minute, not 0/0"),
        ("0 0/ 5 * * ?", "0 to 59 for the minute, not 0/"),
        ("0 0 5, * * ?", "0 to 23 for the hour, not 5,"),
        ("0 0 5 32W * ?", "1 to 31 for the day of the month, not 32W"),
        ("0 0 5 * MAY-JUNE ?", "1 to 12, JAN to DEC for the month, not MAY-JUNE"),
        ("0 0 5 ? * 0", "1 to 7, SUN to SAT for the day of the week, not 0"),
        ("0 0 5 ? * 6#6", "1 to 7, SUN to SAT for the day of the week, not 6#6"),
        ("0 ? 5 * * ?", "0 to 59 for the minute, not ?"),
        ("0 0 5 * * ? 1969", "1970 to 2099 for the year, not 1969"),
        ("0 0 ５ * * ?", "0 to 23 for the hour, not ５"),
    ],
)
def test_what_quartz_refuses_is_said_with_its_field(expression: str, said: str) -> None:
    assert quartz_mistake(expression) == said


@given(st.integers(0, 59), st.integers(0, 59), st.integers(0, 23), st.integers(1, 31), st.integers(1, 12))
def test_every_time_of_the_year_has_an_expression(second: int, minute: int, hour: int, day: int, month: int) -> None:
    assert quartz_mistake(f"{second} {minute} {hour} {day} {month} ?") is None


@given(st.text(max_size=30))
def test_no_text_breaks_it(text: str) -> None:
    said = quartz_mistake(text)
    assert said is None or said
