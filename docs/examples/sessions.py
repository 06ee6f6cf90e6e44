"""Makes sessions from a game's silver table as it grows: an example of stateful work downstream of silver.

A session is the events of one user with no long pause between them. Each call takes the rows that silver got since the
last one, so call it after each round:

    python docs/examples/sessions.py --root s3://lake/demux --game chess --by user_name --gap-s 1800 --to s3://lake/sessions

docs/sessions.md says how it works.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from datetime import datetime, timezone

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampType

from demux.api import Root

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_US = 1_000_000
_OPEN = "_closed_by IS NULL"
_OWN = "session_start TIMESTAMP, session_end TIMESTAMP, events BIGINT, first_record_id STRING, last_record_id STRING"
_BATCHES = (
    "query_id STRING, batch_id BIGINT, made_by STRING, rows_in BIGINT, rows_late BIGINT, rows_untimed BIGINT, "
    "late_before_us BIGINT, watermark_us BIGINT"
)
# the rows that replace the open sessions may be closed
_NO_CHECK = "spark.databricks.delta.replaceWhere.constraintCheck.enabled"


@dataclass(frozen=True)
class SessionSpec:
    """Which events make a session; always the same for one output folder.

    Attributes:
        by: columns of silver; the events of a session have equal values there, and NULL equals NULL.
        gap_s: the longest pause between two events of a session.
        time: the column with the time of the event.
    """

    by: tuple[str, ...]
    gap_s: int
    time: str = "_timestamp"


@dataclass(frozen=True)
class SessionStep:
    """What one batch does. It is decided once and written to `batches`, and a retry does the same.

    Attributes:
        rows_in: rows of silver; each is in a session, late, or untimed.
        rows_late: rows whose sessions were over by the watermark of the batches before.
        rows_untimed: rows without a time.
        late_before_us: that watermark, in microseconds since 1970; None before the first event.
        watermark_us: the watermark after this batch, which closes sessions; it never decreases.
    """

    rows_in: int
    rows_late: int
    rows_untimed: int
    late_before_us: int | None
    watermark_us: int | None


def next_watermark(before_us: int | None, newest_us: int | None, now_us: int, lateness_s: int) -> int | None:
    """Return the watermark after a batch, in microseconds since 1970: `lateness_s` before the newest event.

    An event counts as no newer than now: one clock that is ahead must not make all other events late.
    """
    seen = None if newest_us is None else min(newest_us, now_us) - lateness_s * _US
    return max((value for value in (before_us, seen) if value is not None), default=None)


def merge_sessions(pieces: DataFrame, spec: SessionSpec) -> DataFrame:
    """Return the sessions of sessions and events: those of equal `by` that are at most the gap apart.

    Spark's `session_window` does the same, but can neither continue nor close a given session.

    Args:
        pieces: the columns of `by`, then `session_start`, `session_end`, `events`, `first_record_id`, `last_record_id`.
        spec: the columns and the gap.
    """
    keys = [F.col(_quoted(name)) for name in spec.by]
    ordered = Window.partitionBy(*keys).orderBy("session_start", "session_end", "first_record_id")
    latest = F.max("session_end").over(ordered.rowsBetween(Window.unboundedPreceding, -1))
    begins = latest.isNull() | (F.col("session_start") > latest + _seconds(spec.gap_s))
    number = F.sum(begins.cast("int")).over(ordered.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    return (
        pieces.withColumn("_session", number)
        .groupBy(*keys, "_session")
        .agg(
            F.min("session_start").alias("session_start"),
            F.max("session_end").alias("session_end"),
            F.sum("events").alias("events"),
            F.min(F.struct("session_start", "first_record_id"))["first_record_id"].alias("first_record_id"),
            F.max(F.struct("session_end", "last_record_id"))["last_record_id"].alias("last_record_id"),
        )
        .drop("_session")
    )


def events_of(silver: DataFrame, spec: SessionSpec) -> DataFrame:
    """Return a session of one event for each row of silver, as `merge_sessions` takes it."""
    time, record_id = F.col(_quoted(spec.time)), F.col("_record_id")
    return silver.select(
        *(F.col(_quoted(name)) for name in spec.by),
        time.alias("session_start"),
        time.alias("session_end"),
        F.lit(1).cast("long").alias("events"),
        record_id.alias("first_record_id"),
        record_id.alias("last_record_id"),
    )


@dataclass(frozen=True)
class SessionTables:
    """The output: `sessions`, `batches` and `checkpoint` below one folder, and what they are made from.

    Attributes:
        spark: the session.
        silver: the path of the game's silver table.
        folder: where the output is.
        spec: which events make a session.
    """

    spark: SparkSession
    silver: str
    folder: str
    spec: SessionSpec

    def update(self, lateness_s: int, now: datetime, flush: bool = False) -> list[SessionStep]:
        """Take the rows that silver got since the last call, and return what each batch did.

        A call that died at any point is finished by the next one.

        Args:
            lateness_s: how far behind the newest event an event may come.
            now: the time.
            flush: then close all sessions; later events begin new ones.

        Raises:
            ValueError: a column does not suit, or the folder holds other sessions, or a part of it is lost.
        """
        self._prepare()
        done: list[SessionStep] = []

        def write_batch(frame: DataFrame, batch_id: int) -> None:
            query_id = self._query_id()
            assert query_id is not None, "Spark writes it before the first batch"
            step = self._decide(frame, query_id, batch_id, lateness_s, now)
            self._replace_open(frame, query_id, batch_id, step)
            done.append(step)

        # one batch takes everything, as what is late must not depend on the number of files
        rows = self.spark.readStream.format("delta").option("maxFilesPerTrigger", 1_000_000)
        # commits of a repair are skipped: their rows were counted before
        events = events_of(rows.option("skipChangeCommits", "true").load(self.silver), self.spec)
        query = events.writeStream.foreachBatch(write_batch).option("checkpointLocation", f"{self.folder}/checkpoint")
        query.trigger(availableNow=True).start().awaitTermination()
        if flush:
            self._flush()
        return done

    def _prepare(self) -> None:
        """Make the tables where there are none; check that they are whole and hold the same sessions."""
        silver = self.spark.read.format("delta").load(self.silver).schema
        require_columns(silver, self.spec)
        query_id, sessions = self._query_id(), self._schema("sessions")
        if sessions is None and query_id is not None:
            raise ValueError(f"{self.folder}/sessions is lost. Remove the folder {self.folder}, and run this again.")
        if sessions is None:
            by = StructType([silver[name] for name in self.spec.by])
            own = self.spark.createDataFrame([], f"{_OWN}, _closed_by STRING").schema
            self._append(self.spark.createDataFrame([], StructType([*by.fields, *own.fields])), "sessions")
            self._append(self.spark.createDataFrame([], _BATCHES), "batches")
        before = self.read("batches").select("query_id", "made_by").distinct().collect()
        if before and query_id not in {row.query_id for row in before}:
            raise ValueError(f"{self.folder}/checkpoint is lost. Remove the folder {self.folder}, and run this again.")
        if {row.made_by for row in before} - {self._made_by()}:
            raise ValueError(f"{self.folder} has sessions by {before[0].made_by}; this asks for {self._made_by()}.")

    def _decide(self, frame: DataFrame, query_id: str, batch_id: int, lateness_s: int, now: datetime) -> SessionStep:
        """Return what the batch does, from `batches` where it was decided before."""
        steps = {
            row.batch_id: SessionStep(*row[3:])
            for row in self.read("batches").where(F.col("query_id") == query_id).collect()
        }
        if batch_id in steps:
            return steps[batch_id]
        before = max((step.watermark_us for step in steps.values() if step.watermark_us is not None), default=None)
        newest, rows, untimed, late = frame.agg(
            F.expr("unix_micros(max(session_start))"),
            F.count(F.lit(1)),
            F.coalesce(F.sum(F.col("session_start").isNull().cast("long")), F.lit(0)),
            F.coalesce(F.sum(self._is_over(before).cast("long")), F.lit(0)),
        ).collect()[0]
        now_us = int((now - _EPOCH).total_seconds() * _US)
        step = SessionStep(rows, late, untimed, before, next_watermark(before, newest, now_us, lateness_s))
        row = (query_id, batch_id, self._made_by(), *asdict(step).values())
        self._append(self.spark.createDataFrame([row], _BATCHES).coalesce(1), "batches", query_id, batch_id)
        return step

    def _replace_open(self, frame: DataFrame, query_id: str, batch_id: int, step: SessionStep) -> None:
        """Replace the open sessions by those with the batch's events, in one commit, once for each batch."""
        self.spark.conf.set(_NO_CHECK, "false")
        timely = frame.where(F.col("session_start").isNotNull() & ~self._is_over(step.late_before_us))
        still_open = self.read("sessions").where(_OPEN).drop("_closed_by")
        sessions = merge_sessions(still_open.unionByName(timely), self.spec)
        closed_by = F.when(self._is_over(step.watermark_us), F.lit("watermark"))
        writer = sessions.withColumn("_closed_by", closed_by).write.format("delta").mode("overwrite")
        writer = writer.option("txnAppId", query_id).option("txnVersion", batch_id)
        writer.option("replaceWhere", _OPEN).save(f"{self.folder}/sessions")

    def _flush(self) -> None:
        from delta.tables import DeltaTable

        table = DeltaTable.forPath(self.spark, f"{self.folder}/sessions")
        table.update(_OPEN, {"_closed_by": F.lit("flush")})

    def _is_over(self, watermark_us: int | None) -> Column:
        """Whether the watermark closes a session, or that of an event alone."""
        if watermark_us is None:
            return F.lit(False)
        over = F.col("session_end") + _seconds(self.spec.gap_s) <= F.expr(f"timestamp_micros({watermark_us})")
        return F.coalesce(over, F.lit(False))

    def _query_id(self) -> str | None:
        """Return the id of the streaming query in the checkpoint; a constant id would skip data after a lost one."""
        try:
            return str(self.spark.read.json(f"{self.folder}/checkpoint/metadata").collect()[0]["id"])
        except AnalysisException:
            return None

    def _schema(self, name: str) -> StructType | None:
        try:
            return self.read(name).schema
        except AnalysisException:
            return None

    def read(self, name: str) -> DataFrame:
        """Return `sessions` or `batches`."""
        return self.spark.read.format("delta").load(f"{self.folder}/{name}")

    def _append(self, rows: DataFrame, name: str, query_id: str | None = None, batch_id: int = 0) -> None:
        writer = rows.write.format("delta").mode("append")
        if query_id is not None:
            writer = writer.option("txnAppId", query_id).option("txnVersion", batch_id)
        writer.save(f"{self.folder}/{name}")

    def _made_by(self) -> str:
        return json.dumps(asdict(self.spec), sort_keys=True)


def require_columns(silver: StructType, spec: SessionSpec) -> None:
    """Check that silver has the columns of the spec.

    Raises:
        ValueError: one is missing, or `time` is no timestamp.
    """
    names = silver.fieldNames()
    missing = [name for name in (*spec.by, spec.time) if name not in names]
    if missing:
        raise ValueError(f"Silver has no column {', '.join(missing)}. Its columns: {', '.join(names)}.")
    if not isinstance(silver[spec.time].dataType, TimestampType):
        times = [field.name for field in silver.fields if isinstance(field.dataType, TimestampType)]
        raise ValueError(f"The column {spec.time} is no timestamp. These are: {', '.join(times)}.")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _seconds(number: int) -> Column:
    return F.expr(f"INTERVAL {number} SECOND")


def main() -> None:
    """Update the sessions of one game."""
    parser = argparse.ArgumentParser(description="Make sessions from the new rows of a game's silver table.")
    parser.add_argument("--root", required=True, help="the root, as for demux")
    parser.add_argument("--game", required=True, help="the exact name")
    parser.add_argument("--by", required=True, action="append", help="column that a session's events share; repeatable")
    parser.add_argument("--gap-s", required=True, type=int, help="the longest pause in a session, in seconds")
    parser.add_argument("--time", default="_timestamp", help="column with the time of an event")
    parser.add_argument("--lateness-s", default=600, type=int, help="how far behind the newest an event may come")
    parser.add_argument("--to", required=True, help="folder of the output, one for each game and spec")
    parser.add_argument("--flush", action="store_true", help="then close all sessions")
    given = parser.parse_args()
    root, spec = Root.open(given.root), SessionSpec(tuple(given.by), given.gap_s, given.time)
    tables = SessionTables(root.session(), root.silver(given.game).path, given.to, spec)
    for step in tables.update(given.lateness_s, datetime.now(timezone.utc), given.flush):
        print(f"{step.rows_in:,} rows, {step.rows_late:,} late, {step.rows_untimed:,} without a time")
    tables.read("sessions").groupBy("_closed_by").count().show()


if __name__ == "__main__":
    main()
