"""What the stages report to their callers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from demux.core.control.freshness import NO_FRESHNESS, Freshness


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What one run of the bronze stage did, in records."""

    rows_in: int
    rows_bronze: int
    rows_quarantined: int


def total(reports: Iterable[IngestReport]) -> IngestReport:
    """Return what several batches did together."""
    found = tuple(reports)
    return IngestReport(
        sum(report.rows_in for report in found),
        sum(report.rows_bronze for report in found),
        sum(report.rows_quarantined for report in found),
    )


@dataclass(frozen=True, slots=True)
class Period:
    """From when to when something was done, in seconds since 1970."""

    began_s: float
    ended_s: float


@dataclass(frozen=True, slots=True)
class GameReport:
    """What one run of one game did, in rows, and the schema ids that it met.

    Attributes:
        rows_in: read from bronze.
        rows_silver: of these, decoded.
        rows_quarantined: of these, in quarantine.
        schema_ids: that the rows have, sorted.
        rows_waiting: about how many are left in bronze, where a round has a limit.
        bytes_in: size of the files of bronze that they were in; 0 where a stream does not say.
        freshness: of the rows that were decoded, when they were committed.
    """

    game: str
    rows_in: int
    rows_silver: int
    rows_quarantined: int
    schema_ids: tuple[int, ...]
    rows_waiting: int = 0
    bytes_in: int = field(default=0, compare=False)
    freshness: Freshness = field(default=NO_FRESHNESS, compare=False)
