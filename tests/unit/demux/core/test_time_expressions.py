from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.errors import SettingsInvalid
from demux.core.time_expressions import age_of, moment_of, seconds_of

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=timezone.utc)


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=timezone.utc)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31", at(2026, 1, 31)),
        (" 2026-01-31T12:30 ", at(2026, 1, 31, 12, 30)),
        ("2026-01-31 12:30:05", at(2026, 1, 31, 12, 30, 5)),
        ("2026-01-31T12:30:05.5Z", at(2026, 1, 31, 12, 30, 5, 500_000)),
        ("2026-01-31T00:30:00+01:00", at(2026, 1, 30, 23, 30)),
        ("7d", at(2026, 2, 22, 12)),
        ("12h", at(2026, 3, 1)),
        ("90m", at(2026, 3, 1, 10, 30)),
        ("1w", at(2026, 2, 22, 12)),
        ("0s", NOW),
    ],
)
def test_a_date_a_time_and_an_age_are_moments_in_utc(text: str, moment: datetime) -> None:
    assert moment_of(text, NOW, "--since") == moment
    assert moment_of(text, NOW, "--since").tzinfo is timezone.utc


def test_an_age_alone_is_a_time_that_it_is_long() -> None:
    assert [age_of(text) for text in (" 90m ", "2w", "0s")] == [
        timedelta(minutes=90),
        timedelta(weeks=2),
        timedelta(0),
    ]
    for text in ("", "7", "-7d", "7D", "2026-01-31", "999999999w", "٧d"):
        assert age_of(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-02-30",
        "2026-13-01",
        "31.01.2026",
        "7",
        "d",
        "-7d",
        "7 d",
        "7D",
        "1e3d",
        "999999999w",
        "2026-01-31T25:00",
        "2026-01-31T12:00+99:00",
        "0001-01-01T00:00+14:00",
        "2026-01-31T12:00:00 UTC",
        "٧d",
    ],
)
def test_anything_else_is_an_error_that_says_what_may_be_written(text: str) -> None:
    with pytest.raises(SettingsInvalid) as caught:
        moment_of(text, NOW, "--since")
    assert caught.value.message == f"--since {text!r} is no date, no time and no age."
    assert "7d" in caught.value.remedy


def test_a_long_and_hostile_text_is_cut_and_made_printable() -> None:
    with pytest.raises(SettingsInvalid) as caught:
        moment_of("\x1b[31m" * 1000, NOW, "--since")
    assert "\x1b" not in caught.value.message
    assert len(caught.value.message) < 500


ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=ZONES))
def test_what_python_writes_is_read(moment: datetime) -> None:
    assert moment_of(moment.isoformat(), NOW, "--since") == moment


@given(st.text(max_size=30))
def test_no_text_does_anything_else(text: str) -> None:
    with suppress(SettingsInvalid):
        assert moment_of(text, NOW, "--since").tzinfo is timezone.utc


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("30", 30),
        ("5m", 300),
        ("1h", 3600),
        ("0.5s", 0.5),
        ("1.5m", 90),
        (" 30s ", 30),
        ("9999h", 35996400),
    ],
)
def test_a_time_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0s", "-5s", "5 s", "5d", "s", "1e3", "inf", "nan", "5m30s", ".5s", "1\n2"])
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(SettingsInvalid) as refused:
        seconds_of(text)
    assert (refused.value.message, refused.value.remedy) == (f"--every {text!r} is not a time.", "Write 30s, 5m or 1h.")


@pytest.mark.parametrize("text", ["9" * 30, "9" * 400, "99999999999h"])
def test_a_time_longer_than_a_thread_can_wait_is_refused(text: str) -> None:
    with pytest.raises(SettingsInvalid):
        seconds_of(text)


@given(st.integers(1, 10_000), st.sampled_from("smh"))
def test_a_minute_is_sixty_seconds_and_an_hour_sixty_minutes(number: int, unit: str) -> None:
    assert seconds_of(f"{number}{unit}") == number * {"s": 1, "m": 60, "h": 3600}[unit]
