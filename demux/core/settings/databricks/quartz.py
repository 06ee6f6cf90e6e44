"""Which Quartz expressions the scheduler of the jobs takes. Pure.

Source: the documentation of Quartz 2.3, CronExpression.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
# last day of the month or some days before it, and the weekday nearest to a day
_OF_MONTH = r"L(-([1-9]|[12]\d|30))?W?|([1-9]|[12]\d|3[01])W"
# Saturday, the last one of a day in the month, and the first to fifth
_OF_WEEK = rf"L|([1-7]|{'|'.join(_DAYS)})(L|#[1-5])"
_ENTRY = re.compile(r"(?:(?P<all>\*)|(?P<first>\w+)(?:-(?P<last>\w+))?)?(?:/(?P<step>\d{1,4}))?", re.ASCII)


class _QuartzField(NamedTuple):
    name: str
    least: int
    most: int
    words: tuple[str, ...] = ()
    further: str = r"(?!)"

    def has(self, text: str) -> bool:
        """Whether the text is a value of this field."""
        return text in self.words or (text.isdecimal() and self.least <= int(text) <= self.most)


_FIELDS = (
    _QuartzField("second", 0, 59),
    _QuartzField("minute", 0, 59),
    _QuartzField("hour", 0, 23),
    _QuartzField("day of the month", 1, 31, further=_OF_MONTH),
    _QuartzField("month", 1, 12, _MONTHS),
    _QuartzField("day of the week", 1, 7, _DAYS, _OF_WEEK),
    _QuartzField("year", 1970, 2099),
)
_DAY_OF_MONTH, _DAY_OF_WEEK = 3, 5


def quartz_mistake(text: str) -> str | None:
    """Return what is wrong with a Quartz expression, after "expected"; None for one that is right."""
    fields = text.upper().split()
    if len(fields) not in {6, 7}:
        return "a Quartz expression of 6 or 7 fields, seconds first, such as 0 0 5 * * ?"
    if (fields[_DAY_OF_MONTH] == "?") == (fields[_DAY_OF_WEEK] == "?"):
        return "? for the day of the month or for the day of the week, and not for both"
    for place, (field, given) in enumerate(zip(_FIELDS, fields, strict=False)):
        if given == "?" and place in {_DAY_OF_MONTH, _DAY_OF_WEEK}:
            continue
        if any(not _is_entry(field, entry) for entry in given.split(",")):
            return f"{_range(field)} for the {field.name}, not {given}"
    return None


def _is_entry(field: _QuartzField, entry: str) -> bool:
    if re.fullmatch(field.further, entry, re.ASCII):
        return True
    found = _ENTRY.fullmatch(entry)
    if not found or not entry:
        return False
    given = [value for value in (found["first"], found["last"]) if value is not None]
    return all(map(field.has, given)) and (found["step"] is None or 1 <= int(found["step"]) <= field.most)


def _range(field: _QuartzField) -> str:
    words = f", {field.words[0]} to {field.words[-1]}" if field.words else ""
    return f"{field.least} to {field.most}{words}"
