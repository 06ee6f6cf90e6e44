"""The state of backfills, day by day, in a table below the root: what a run has not done, the next one does.

Each state that a day comes to is a row of its own; the newest counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import date, datetime, timezone

from pyspark.sql import Row, SparkSession, Window
from pyspark.sql import functions as F

from demux.core.columns.spark import spark_struct
from demux.core.root.layout import Layout
from demux.core.storage import table_exists
from demux.core.tables import BACKFILLS
from deserializer.redecode.backfill_plan import Backfill, BackfillRequest, Day, DayCounts, DayState


def backfills(
    spark: SparkSession, layout: Layout, newest: int | None = None, asked: BackfillRequest | None = None
) -> tuple[Backfill, ...]:
    """Return the backfills of a root, the newest first; only so many, and only those that do what is asked, if said."""
    if not table_exists(spark, layout.backfills):
        return ()
    rows = spark.read.format("delta").load(layout.backfills)
    if asked is not None:
        first, last = (F.lit(_text(day)) for day in (asked.first, asked.last))
        days = F.col("first_day").eqNullSafe(first) & F.col("last_day").eqNullSafe(last)
        games = F.array(*map(F.lit, asked.games)).cast("array<string>")
        rows = rows.where(days & (F.col("games") == games))
    ids = rows.groupBy("backfill_id").agg(F.max("begun_at").alias("at")).collect()
    chosen = [row.backfill_id for row in sorted(ids, key=lambda row: (-row.at.timestamp(), row.backfill_id))[:newest]]
    task = Window.partitionBy("backfill_id", "game_name", "day")
    # written at the same time, what is done is the newer one
    latest = F.row_number().over(task.orderBy(F.desc("recorded_at"), F.col("state") == DayState.WAITING.value))
    mine = rows.where(F.col("backfill_id").isin(chosen)).withColumn("_latest", latest).where("_latest = 1")
    by_id: defaultdict[str, list[Row]] = defaultdict(list)
    for row in mine.collect():
        by_id[row.backfill_id].append(row)
    return tuple(_backfill(by_id[one]) for one in chosen)


def record(spark: SparkSession, layout: Layout, backfill: Backfill, days: Iterable[Day], now: datetime) -> None:
    """Append how these days of the backfill stand, in one commit; none for no days."""
    asked = backfill.asked
    same = (backfill.id, list(asked.games), _text(asked.first), _text(asked.last), backfill.begun)
    rows = [(*same, *_values(day), now) for day in days]
    if rows:
        frame = spark.createDataFrame(rows, spark_struct(BACKFILLS)).coalesce(1)
        frame.write.format("delta").mode("append").save(layout.backfills)


def _values(day: Day) -> tuple[object, ...]:
    counts = day.counts
    done = (counts.rows_in, counts.rows_silver, counts.rows_quarantined, float(day.seconds))
    return (day.game, _text(day.day), day.state.value, day.rows, *done, day.condition, day.sentence)


def _backfill(rows: list[Row]) -> Backfill:
    one = rows[0]
    asked = BackfillRequest(tuple(one.games), _day(one.first_day), _day(one.last_day))
    days = sorted((_task(row) for row in rows), key=lambda day: (day.game, day.day))
    return Backfill(one.backfill_id, asked, one.begun_at.astimezone(timezone.utc), tuple(days))


def _task(row: Row) -> Day:
    counts = DayCounts(row.rows_in, row.rows_silver, row.rows_quarantined)
    day = date.fromisoformat(row.day)
    return Day(row.game_name, day, row["rows"], DayState(row.state), counts, row.seconds, row.condition, row.sentence)


def _text(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def _day(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)
