"""The state of backfills, day by day, in a table below the root: what a run has not done, the next one does.

Each state that a day comes to is a row of its own; the newest counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from demux.core.delta.record_table import RecordTable
from demux.core.root.layout import Layout
from demux.core.tables import BACKFILLS
from deserializer.offsets.days import DayCounts
from deserializer.redecode.backfill_plan import Backfill, BackfillRequest, Day, DayState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Row = Mapping[str, Any]


def backfills(
    spark: SparkSession | None, layout: Layout, newest: int | None = None, asked: BackfillRequest | None = None
) -> tuple[Backfill, ...]:
    """Return the backfills of a root, the newest first; only so many, and only those that do what is asked, if said.

    Without a session where the table is reached without one.
    """
    latest: dict[str, dict[tuple[str, str], _Row]] = {}
    # written at the same time, what is done is the newer one
    for row in sorted(_table(spark, layout).select("SELECT * FROM {records}"), key=_age):
        latest.setdefault(row["backfill_id"], {})[row["game_name"], row["day"]] = row
    found = (_backfill([*days.values()]) for days in latest.values())
    wanted = sorted((one for one in found if asked in {None, one.asked}), key=lambda one: one.id)
    return tuple(sorted(wanted, key=lambda one: one.begun, reverse=True)[:newest])


def record(spark: SparkSession | None, layout: Layout, backfill: Backfill, days: Iterable[Day], now: datetime) -> None:
    """Append the state of these days of the backfill, in one commit; none for no days."""
    asked = backfill.asked
    same = (backfill.id, list(asked.games), _text(asked.first), _text(asked.last), backfill.begun)
    rows = [(*same, *_values(day), now) for day in days]
    if rows:
        _table(spark, layout).append(rows)


def _table(spark: SparkSession | None, layout: Layout) -> RecordTable:
    return RecordTable(spark, layout.storage, layout.backfills, BACKFILLS)


def _age(row: _Row) -> tuple[datetime, bool]:
    return row["recorded_at"], row["state"] != DayState.WAITING.value


def _values(day: Day) -> tuple[object, ...]:
    counts = day.counts
    done = (counts.rows_in, counts.rows_silver, counts.rows_quarantined, float(day.seconds))
    return (day.game, _text(day.day), day.state.value, day.rows, *done, day.condition, day.sentence)


def _backfill(rows: list[_Row]) -> Backfill:
    one = rows[0]
    asked = BackfillRequest(tuple(one["games"]), _day(one["first_day"]), _day(one["last_day"]))
    days = sorted((_task(row) for row in rows), key=lambda day: (day.game, day.day))
    return Backfill(one["backfill_id"], asked, one["begun_at"], tuple(days))


def _task(row: _Row) -> Day:
    counts = DayCounts(row["rows_in"], row["rows_silver"], row["rows_quarantined"])
    day = date.fromisoformat(row["day"])
    done = (counts, row["seconds"], row["condition"], row["sentence"])
    return Day(row["game_name"], day, row["rows"], DayState(row["state"]), *done)


def _text(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def _day(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)
