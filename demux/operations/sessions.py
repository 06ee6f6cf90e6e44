"""A game's sessions: events of one user with no long pause between them, made from its silver table as it grows.

An example of stateful work downstream of silver, to be copied (docs/sessions.md). The state is rows of the result: a
session whose `_closed_by` is NULL is open. So state and result change in one commit, which carries the batch as its
application transaction, and whoever likes can look at the state. What a batch is going to do (its watermark, and how
many events come too late for that) is written down before, in `control/sessions`, and not decided again by a retry.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from difflib import get_close_matches
from enum import Enum

from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructField, StructType, TimestampType

from demux.core.columns.spark import spark_struct
from demux.core.delta.app_transactions import Batch
from demux.core.delta.batch_commit import append
from demux.core.errors import DemuxError, GameUnknown, SettingsInvalid
from demux.core.names import names_of, quoted
from demux.core.root.layout import Layout
from demux.core.storage.files import Storage
from demux.core.streaming.checkpoints import read_checkpoint, require_checkpoint
from demux.core.streaming.query import run_query
from demux.core.tables import SESSION, SESSION_BATCHES
from demux.core.text import printable

LONGEST_GAP = timedelta(days=3650)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_US = timedelta(microseconds=1)
# before any time that a table can have
_FIRST = (datetime.min.replace(tzinfo=timezone.utc) - _EPOCH) // _US
_OWN = tuple(column.name for column in SESSION)
_OPEN = "_closed_by IS NULL"
# metadata of the table's first own column: what the sessions were made by
_MADE_BY = "demux.sessions"
# what replaces the open sessions need not be open itself
_CHECK = "spark.databricks.delta.replaceWhere.constraintCheck.enabled"
# a column of silver that gets wider is none that is read: the types of those are on record
_ANY_AT_START = "spark.databricks.delta.streaming.unsafeReadOnIncompatibleSchemaChangesDuringStreamStart.enabled"


class ClosedBy(Enum):
    """What ended a session: its gap had passed by the watermark, or on request."""

    WATERMARK = "watermark"
    FLUSH = "flush"


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """Which events make a session; for one table always the same.

    Attributes:
        game: the exact game name.
        by: columns of the silver table; a session's events have equal values there, and NULL equals NULL.
        gap: events no further apart than this belong together.
        time: the column with the time of the event.
    """

    game: str
    by: tuple[str, ...]
    gap: timedelta
    time: str = "_timestamp"


@dataclass(frozen=True, slots=True)
class SessionStep:
    """What one batch does: decided once, written down, then done.

    Attributes:
        rows_in: the batch's rows of silver; each is in a session, late, or untimed.
        rows_late: those whose sessions would have been over by the watermark of the batches before.
        rows_untimed: those without a time.
        late_before: that watermark, in microseconds since 1970; None before the first event.
        watermark: the watermark with this batch, which closes sessions; never less.
    """

    rows_in: int
    rows_late: int
    rows_untimed: int
    late_before: int | None
    watermark: int | None


@dataclass(frozen=True, slots=True)
class SessionsReport:
    """What a run took in, and what there is since the beginning.

    Attributes:
        new: a step for each batch of this run.
        all: a step for each batch there ever was.
        sessions: how many sessions there are by what closed them; None: open ones.
        rows_silver: how many rows silver has now.
    """

    new: tuple[SessionStep, ...]
    all: tuple[SessionStep, ...]
    sessions: Mapping[str | None, int]
    rows_silver: int


def next_watermark(before: int | None, newest: int | None, now: int, lateness: timedelta) -> int | None:
    """Return the watermark after a batch: so much before its newest event, never less than it was.

    One clock that is ahead must not make all other events late: an event counts as no newer than now. All but
    `lateness` in microseconds since 1970.

    Args:
        before: the watermark until now; None for none.
        newest: the time of the newest event; None where none has one.
        now: the time.
        lateness: how long to wait for an event that is late.
    """
    known = [] if before is None else [before]
    seen = [] if newest is None else [max(_FIRST, min(newest, now) - lateness // _US)]
    return max((*known, *seen), default=None)


def require_columns(silver: StructType, spec: SessionSpec) -> None:
    """Check that the game's table has the columns that sessions are to be made by.

    Raises:
        SettingsInvalid: one is not there, holds more than one value, is no time, or is called as one of ours.
    """
    kinds = {field.name: field.dataType for field in silver.fields}
    for option, name in (*(("--by", name) for name in spec.by), ("--time", spec.time)):
        if name not in kinds:
            near = " or ".join(get_close_matches(name, kinds, n=2))
            remedy = f"Did you mean {near}?" if near else f"Its columns: {', '.join(kinds)}."
            raise _invalid(spec, f"{option} {name!r}: the table has no such column", remedy)
        if isinstance(kinds[name], (StructType, ArrayType, MapType)):
            remedy = "Name a column of texts, numbers, times or the like."
            raise _invalid(spec, f"{option} {name!r}: the column holds more than one value", remedy)
        if option == "--by" and name.lower() in _OWN:
            raise _invalid(
                spec, f"--by {name!r}: a table of sessions has a column of that name", "Name another column."
            )
    if not isinstance(kinds[spec.time], TimestampType):
        times = ", ".join(name for name, kind in kinds.items() if isinstance(kind, TimestampType))
        raise _invalid(spec, f"--time {spec.time!r}: the column holds no times", f"These do: {times}.")


def run_sessions(
    spark: SparkSession,
    layout: Layout,
    spec: SessionSpec,
    lateness: timedelta,
    now: Callable[[], datetime],
    *,
    flush: bool = False,
    rebuild: bool = False,
) -> SessionsReport:
    """Return what became of the rows that silver got since the last call; a second call takes only what is new.

    Rows that a repair writes again (a repair, wider columns) are passed over: they were counted before.

    Args:
        spark: the session.
        layout: where the tables are.
        spec: which events make a session.
        lateness: how long to wait for an event that is late; may be another one each time.
        now: the clock.
        flush: then close all sessions; later events begin new ones.
        rebuild: forget the sessions that there are, and begin with the first row of silver.

    Raises:
        GameUnknown: the game has no table.
        SettingsInvalid: as `require_columns`, or the table's sessions were made by something else, or columns of
            silver have changed so that no stream continues over it.
        CheckpointLost, TableLost: one of table and checkpoint is gone; nothing was written.
    """
    key = names_of(spec.game).key
    table, checkpoint = layout.sessions(key), layout.sessions_checkpoint(key)
    silver = _silver(spark, layout, spec)
    if rebuild:
        # the checkpoint first: a table without one is noticed, and this is the remedy
        layout.storage.delete_folder(checkpoint)
        layout.storage.delete_folder(table)
    require_checkpoint(spark, layout.storage, checkpoint, table, table, "FALSE", _command(spec))
    _require_table(spark, layout.storage, table, silver.schema, spec)
    new: list[SessionStep] = []

    def one_batch(frame: DataFrame, batch: Batch) -> None:
        new.append(_decided(frame, batch, layout, spec, lateness, now()))
        _replace_open(frame, batch, table, spec, new[-1])

    with _over_wider_columns(spark, spec):
        run_query(layout.storage, _stream(spark, layout.silver(key), spec), checkpoint, f"sessions/{key}", one_batch)
    if flush:
        _flush(spark, table)
    steps = _steps(spark, layout, read_checkpoint(layout.storage, checkpoint).query_id)
    closed = spark.read.format("delta").load(table).groupBy("_closed_by").count().collect()
    return SessionsReport(tuple(new), tuple(steps.values()), {row[0]: row[1] for row in closed}, silver.count())


def merged(pieces: DataFrame, by: tuple[str, ...], gap: timedelta) -> DataFrame:
    """Return sessions made of sessions and events: those of equal `by` that are no further apart than the gap.

    As Spark's own `session_window`, which can neither continue nor end a given session.

    Args:
        pieces: the columns of `by` and `SESSION` without `_closed_by`; an event begins and ends at its time.
        by: columns.
        gap: the longest pause in a session.
    """
    keys = [F.col(quoted(name)) for name in by]
    ordered = Window.partitionBy(*keys).orderBy("session_start", "session_end", "first_record_id")
    reach = F.max("session_end").over(ordered.rowsBetween(Window.unboundedPreceding, -1))
    begins = reach.isNull() | (F.col("session_start") > reach + _interval(gap))
    number = F.sum(begins.cast("int")).over(ordered.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    first = F.min(F.struct("session_start", "first_record_id"))["first_record_id"]
    last = F.max(F.struct("session_end", "last_record_id"))["last_record_id"]
    sessions = pieces.withColumn("_session", number).groupBy(*keys, "_session")
    return sessions.agg(
        F.min("session_start").alias("session_start"),
        F.max("session_end").alias("session_end"),
        F.sum("events").alias("events"),
        first.alias("first_record_id"),
        last.alias("last_record_id"),
    ).drop("_session")


def _stream(spark: SparkSession, silver: str, spec: SessionSpec) -> DataFrame:
    # one batch takes all that is there: what is late must not depend on how many files there are
    reader = spark.readStream.format("delta").option("maxFilesPerTrigger", "1000000")
    return events_of(reader.option("skipChangeCommits", "true").load(silver), spec)


def events_of(silver: DataFrame, spec: SessionSpec) -> DataFrame:
    """Return a row for each row of silver, as `merged` takes it; a session of one event."""
    time, record_id = F.col(quoted(spec.time)), F.col("_record_id")
    return silver.select(
        *(F.col(quoted(name)) for name in spec.by),
        time.alias("session_start"),
        time.alias("session_end"),
        F.lit(1).cast("long").alias("events"),
        record_id.alias("first_record_id"),
        record_id.alias("last_record_id"),
    )


@contextmanager
def _over_wider_columns(spark: SparkSession, spec: SessionSpec) -> Iterator[None]:
    """Let a stream continue over columns that became wider since it stopped; where it cannot, say what does."""
    spark.conf.set(_ANY_AT_START, "true")
    try:
        yield
    except DemuxError as error:
        if "schema change" not in error.cause:
            raise
        what = "columns of silver have changed, more than once, since the sessions were made last"
        raise _invalid(spec, what, f"Run `{_command(spec)}`, which makes them from all rows.") from error
    finally:
        spark.conf.unset(_ANY_AT_START)


def _decided(
    frame: DataFrame, batch: Batch, layout: Layout, spec: SessionSpec, lateness: timedelta, now: datetime
) -> SessionStep:
    """Return what the batch does, written down; a batch that comes again does what it was going to do."""
    spark = frame.sparkSession
    steps = _steps(spark, layout, batch.query_id)
    if batch.batch_id in steps:
        return steps[batch.batch_id]
    before = max((step.watermark for step in steps.values() if step.watermark is not None), default=None)
    newest, rows, untimed, late = _measured(frame, spec, before)
    step = SessionStep(rows, late, untimed, before, next_watermark(before, newest, (now - _EPOCH) // _US, lateness))
    row = (spec.game, batch.query_id, batch.batch_id, rows, late, untimed, *map(_moment, (before, step.watermark)), now)
    append(spark.createDataFrame([row], spark_struct(SESSION_BATCHES)).coalesce(1), layout.session_batches, batch)
    return step


def _measured(frame: DataFrame, spec: SessionSpec, before: int | None) -> tuple[int | None, int, int, int]:
    """Return the newest time, and how many rows there are, have no time, and are late."""
    found = frame.agg(
        F.expr("unix_micros(max(session_start))"),
        F.count(F.lit(1)),
        F.sum(F.col("session_start").isNull().cast("long")),
        F.sum(_is_over(spec, before).cast("long")),
    ).collect()[0]
    return found[0], found[1], found[2] or 0, found[3] or 0


def _replace_open(frame: DataFrame, batch: Batch, table: str, spec: SessionSpec, step: SessionStep) -> None:
    """Put the open sessions, with the batch's events, into the place of those before; once for each batch."""
    spark = frame.sparkSession
    spark.conf.set(_CHECK, "false")
    timely = frame.where(F.col("session_start").isNotNull() & ~_is_over(spec, step.late_before))
    still_open = spark.read.format("delta").load(table).where(_OPEN).drop("_closed_by")
    sessions = merged(still_open.unionByName(timely), spec.by, spec.gap)
    closed_by = F.when(_is_over(spec, step.watermark), F.lit(ClosedBy.WATERMARK.value))
    writer = sessions.withColumn("_closed_by", closed_by).write.format("delta").mode("overwrite")
    writer = writer.option("replaceWhere", _OPEN)
    writer.option("txnAppId", batch.query_id).option("txnVersion", batch.batch_id).save(table)


def _flush(spark: SparkSession, table: str) -> None:
    from delta.tables import DeltaTable

    DeltaTable.forPath(spark, table).update(_OPEN, {"_closed_by": F.lit(ClosedBy.FLUSH.value)})


def _is_over(spec: SessionSpec, watermark: int | None) -> Column:
    """Return whether a session, or that of an event alone, is over by the watermark."""
    if watermark is None:
        return F.lit(False)
    over = F.col("session_end") + _interval(spec.gap) <= F.expr(f"timestamp_micros({watermark})")
    return F.coalesce(over, F.lit(False))


def _steps(spark: SparkSession, layout: Layout, query_id: str | None) -> dict[int, SessionStep]:
    """Return the query's batches by number."""
    if query_id is None or not layout.storage.table_exists(layout.session_batches):
        return {}
    rows = spark.read.format("delta").load(layout.session_batches).where(F.col("query_id") == F.lit(query_id))
    found = rows.withColumn("late_before", F.expr("unix_micros(late_before)")).withColumn(
        "watermark", F.expr("unix_micros(watermark)")
    )
    return {row.batch_id: _step(row) for row in found.orderBy("batch_id").collect()}


def _step(row: Row) -> SessionStep:
    return SessionStep(row.rows_in, row.rows_late, row.rows_untimed, row.late_before, row.watermark)


def _silver(spark: SparkSession, layout: Layout, spec: SessionSpec) -> DataFrame:
    silver = layout.silver(names_of(spec.game).key)
    if not layout.storage.table_exists(silver):
        raise GameUnknown(
            f"The game {printable(spec.game)!r} has no table.",
            "See `demux status` for the games; names are exact, upper and lower case included.",
            game=spec.game,
        )
    rows = spark.read.format("delta").load(silver)
    require_columns(rows.schema, spec)
    return rows


def _require_table(spark: SparkSession, storage: Storage, table: str, silver: StructType, spec: SessionSpec) -> None:
    """Make the table where there is none; check that it is of the same sessions where there is."""
    wanted = _made_by(silver, spec)
    if storage.table_exists(table):
        fields = spark.read.format("delta").load(table).schema.fields
        made_by = next((field.metadata[_MADE_BY] for field in fields if _MADE_BY in field.metadata), None)
        if made_by != wanted:
            raise _invalid(
                spec,
                f"the sessions that there are were made by {made_by}, and this asks for {wanted}",
                "Ask for the same, or give --rebuild to make them again from all rows of silver.",
            )
        return
    kinds = {field.name: field.dataType for field in silver.fields}
    first, *others = spark_struct(SESSION).fields
    first = StructField(first.name, first.dataType, True, {**first.metadata, _MADE_BY: wanted})
    schema = StructType([*(StructField(name, kinds[name]) for name in spec.by), first, *others])
    append(spark.createDataFrame([], schema), table, None)


def _made_by(silver: StructType, spec: SessionSpec) -> str:
    kinds = {field.name: field.dataType.simpleString() for field in silver.fields}
    by = {name: kinds[name] for name in spec.by}
    return json.dumps({"by": by, "gap_s": spec.gap // timedelta(seconds=1), "time": spec.time})


def _invalid(spec: SessionSpec, what: str, remedy: str) -> SettingsInvalid:
    return SettingsInvalid(f"Sessions of {printable(spec.game)!r}: {printable(what)}.", remedy)


def _command(spec: SessionSpec) -> str:
    words = [part for name in spec.by for part in ("--by", name)]
    words += ["--gap", f"{spec.gap // timedelta(seconds=1)}s", "--time", spec.time]
    return shlex.join(["demux", "sessions", "--rebuild", "--game", spec.game, *words])


def _moment(us: int | None) -> datetime | None:
    return None if us is None else _EPOCH + us * _US


def _interval(length: timedelta) -> Column:
    return F.expr(f"INTERVAL {length // _US} MICROSECOND")
