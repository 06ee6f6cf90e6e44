"""Times as people write them: a date, a date-time, an age, an interval between rounds. Pure."""

from __future__ import annotations

import re
import threading
from datetime import datetime, timedelta, timezone

from demux.core.errors import SettingsInvalid
from demux.core.text import printable

_AGE = re.compile(r"([0-9]{1,9})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
# Python 3.10 reads neither `Z` nor fractions of other than three or six digits
_TIME = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?P<fraction>\.[0-9]{1,6})?(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_SHOWN = 40
_INTERVAL_UNITS = {"s": 1, "m": 60, "h": 3600}


def moment_of(text: str, now: datetime, option: str) -> datetime:
    """Return the time that a text means, in UTC: `2026-01-31`, `2026-01-31T12:00:00+01:00`, or an age such as `7d`.

    A date is its first moment; what has no zone is UTC. An age counts back from now, in seconds (`s`), minutes (`m`),
    hours (`h`), days (`d`) or weeks (`w`).

    Args:
        now: the time (UTC).
        option: the option's name, for the error.

    Raises:
        SettingsInvalid: it is none of these, or a time that no calendar has.
    """
    try:
        found = _moment(text.strip(), now)
    except (ValueError, OverflowError):
        found = None
    if found is None:
        shown = printable(text[:_SHOWN]) + ("…" if len(text) > _SHOWN else "")
        raise SettingsInvalid(
            f"{option} {shown!r} is no date, no time and no age.",
            "Write a date (2026-01-31), a time (2026-01-31T12:00:00, UTC unless it ends as +01:00), or an age (7d, "
            "12h, 30m).",
            option=option,
        )
    return found


def time_of(text: str) -> datetime | None:
    """Return the time of a date or date-time, in UTC, as `moment_of`; None where it is none."""
    try:
        return _time(text.strip())
    except (ValueError, OverflowError):
        return None


def age_of(text: str) -> timedelta | None:
    """Return the time that an age such as `7d` is long, as `moment_of` reads it; None where it is none."""
    found = _AGE.fullmatch(text.strip())
    try:
        return None if found is None else timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError:
        return None


def seconds_of(text: str) -> float:
    """Return the seconds of `30s`, `5m`, `1h` or `30`.

    Raises:
        SettingsInvalid: it is none of these, not positive, or longer than a thread can wait.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    seconds = float(found[1]) * _INTERVAL_UNITS[found[2] or "s"] if found else 0.0
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise SettingsInvalid(f"--every {text!r} is not a time.", "Write 30s, 5m or 1h.", option=text)
    return seconds


def _moment(text: str, now: datetime) -> datetime | None:
    age = age_of(text)
    return _time(text) if age is None else now - age


def _time(text: str) -> datetime | None:
    if (found := _TIME.fullmatch(text)) is None:
        return None
    fraction = (found["fraction"] or ".").ljust(7, "0")
    zone = "+00:00" if found["zone"] in (None, "Z") else found["zone"]
    time = found["time"] or "00:00"
    full = time if len(time) == 8 else f"{time}:00"
    return datetime.fromisoformat(f"{found['date']}T{full}{fraction}{zone}").astimezone(timezone.utc)
