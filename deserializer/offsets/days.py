"""Days of a table's rows: which rows are of some days, and what became of those of a day. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone

import pyarrow as pa
import pyarrow.compute as pc

from demux.core.columns.arrow import arrow_type, as_type
from demux.core.columns.types import Primitive

_DAY = timedelta(days=1)
_TIME = arrow_type(Primitive.TIMESTAMP)
# the end of the day after it is a time that no calendar has
LAST_DAY = date.max - _DAY
# of a row that says of no day
NO_DAY = date.max


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Days one after the other, from the first to the last, both included (UTC)."""

    first: date
    last: date

    @property
    def bounds(self) -> tuple[datetime, datetime]:
        """Its first moment, and the first one behind it."""
        begin, end = (datetime.combine(day, time.min, timezone.utc) for day in (self.first, self.last + _DAY))
        return begin, end

    def sql(self, column: str) -> str:
        """Return the SQL condition for a column of times; it is made from these two days alone."""
        begin, end = (f"TIMESTAMP'{at.isoformat()}'" for at in self.bounds)
        return f"({column} >= {begin} AND {column} < {end})"


def among(times: pa.ChunkedArray | pa.Array, span: Span | None) -> pa.ChunkedArray | pa.Array:
    """Return which times are in the days, where one that is not known is in none; all without days."""
    if span is None:
        return pa.array([True] * len(times), pa.bool_())
    begin, end = span.bounds
    times = as_type(times, _TIME)
    inside = pc.and_(pc.greater_equal(times, pa.scalar(begin, _TIME)), pc.less(times, pa.scalar(end, _TIME)))
    return pc.fill_null(inside, False)


@dataclass(frozen=True, slots=True)
class DayCounts:
    """Rows of a day: read from bronze, and of these in silver, and in quarantine."""

    rows_in: int = 0
    rows_silver: int = 0
    rows_quarantined: int = 0

    def __add__(self, other: DayCounts) -> DayCounts:
        """Return the rows of both."""
        return DayCounts(
            self.rows_in + other.rows_in,
            self.rows_silver + other.rows_silver,
            self.rows_quarantined + other.rows_quarantined,
        )
