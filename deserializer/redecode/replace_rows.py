"""Rows of bronze decoded again, and put into the place of what the tables have of them; by Spark.

In an order that loses nothing, wherever it is killed: first the rows that are bad now are added to quarantine, under
an id of this run alone; then one commit replaces the rows of silver; then what quarantine had of them before goes, and
what was said of dropped ones. Until then a record may be in both tables, and in quarantine twice; the same again ends
it.
"""

from __future__ import annotations

import shlex
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.core.causes import RemovalReason
from demux.core.delta.app_transactions import Batch
from demux.core.delta.batch_commit import REFUSED, RowSelection, append
from demux.core.errors import RangeRetired
from demux.core.names import names_of, sql_string
from demux.core.root.layout import Layout
from demux.core.root.lock import TableLock, unlocked
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.store import SchemaStore
from demux.core.settings.settings import Decoder
from demux.core.spark.map_in_arrow import Sizes, batches_within_memory, sizes_column, sizes_in
from demux.core.streaming.session import has_protobuf_functions
from demux.core.text import counted_rows
from demux.operations.quarantine.drop import delete_rows
from demux.operations.quarantine.filter import QuarantineFilter
from deserializer.decoders.arrow import REF
from deserializer.decoders.schema_decision import Decisions
from deserializer.decoders.select import choose, native_decoder
from deserializer.redecode.backfill_plan import NO_DAY, DayCounts, Span
from deserializer.redecode.backfill_worker import within
from deserializer.redecode.processed_rows import all_rows, without_forgotten
from deserializer.silver.evolve import examined_rows, silver_rows

_DAY = "_day"


@dataclass(frozen=True, slots=True)
class RedecodeTask:
    """What is decoded again.

    Attributes:
        game: the exact name.
        version: of bronze.
        span: of these days; None: all rows, those too that say of no day.
        request: the id of this run, of which no other has the same.
    """

    game: str
    version: int
    span: Span | None
    request: str

    def where(self, column: str) -> str:
        """Return the SQL condition of the rows that are meant, by a column of times."""
        return "TRUE" if self.span is None else self.span.sql(column)


@dataclass(frozen=True, slots=True)
class _RedecodedRows:
    """Rows of quarantine, or of dropped ones, that tasks have decoded again; those of their own requests may stay."""

    tasks: tuple[RedecodeTask, ...]
    keeps_own: bool

    def among(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """Return which rows are meant."""
        meant = pa.array([False] * len(rows), pa.bool_())
        for task in self.tasks:
            mine = pc.and_(QuarantineFilter(task.game).among(rows), within(rows.column("timestamp"), task.span))
            if self.keeps_own:
                own = pc.fill_null(pc.equal(rows.column("query_id"), task.request), False)
                mine = pc.and_(mine, pc.invert(own))
            meant = pc.or_(meant, mine)
        return meant

    def sql(self) -> str:
        """Return the same as a SQL condition."""
        return " OR ".join(f"({self._sql(task)})" for task in self.tasks)

    def _sql(self, task: RedecodeTask) -> str:
        mine = f"{QuarantineFilter(task.game).sql()} AND {task.where('timestamp')}"
        return f"{mine} AND NOT query_id <=> {sql_string(task.request)}" if self.keeps_own else mine


@dataclass(frozen=True, slots=True)
class RedecodeContents:
    """What is known of rows before they are decoded.

    Attributes:
        rows: by day.
        refs: by schema ref.
        sizes: how large their payloads are.
        ids: the sum of their record ids' hashes.
    """

    rows: Mapping[date, int]
    refs: Mapping[SchemaRef, int]
    sizes: Sizes
    ids: int


@dataclass(slots=True)
class Redecoder:
    """Decodes again below one root; may be shared by threads with a game each.

    Attributes:
        spark: the session.
        layout: where the tables are.
        schemas: the schemas in use.
        decoder: what decodes payloads.
        lock: held around each write of the quarantine table, which a fleet writes without Spark.
    """

    spark: SparkSession
    layout: Layout
    schemas: SchemaStore
    decoder: Decoder = Decoder.AUTO
    lock: TableLock = unlocked
    # commits that take rows out of one table one after the other: Delta would refuse the second
    _alone: threading.Lock = field(default_factory=threading.Lock)

    def contents(self, rows: DataFrame) -> RedecodeContents:
        """Return the contents of a frame with the columns of `INPUT`, in one pass over its rows."""
        names = [column.name for column in REF]
        found = rows.groupBy(day_of("timestamp"), *names).agg(
            sizes_column("payload").alias("sizes"), F.count(F.lit(1)).alias("rows"), _hashes().alias("ids")
        )
        by_day: defaultdict[date, int] = defaultdict(int)
        refs: Counter[SchemaRef] = Counter()
        sizes, ids = Sizes(), 0
        for row in found.collect():
            by_day[row[_DAY] or NO_DAY] += row.rows
            sizes |= sizes_in(row.sizes)
            refs[SchemaRef(*(row[name] for name in names))] += row.rows
            ids += row.ids
        return RedecodeContents(by_day, refs, sizes, ids)

    def quarantine(self, rows: DataFrame, decisions: Decisions, task: RedecodeTask) -> dict[date, int]:
        """Return how many rows of each day do not decode, once they are in quarantine under the task's request."""
        batch = Batch(task.request, task.version, retried=False)
        bad = examined_rows(rows, decisions, task.game, batch, RowSelection.REFUSED).persist()
        try:
            counted = bad.groupBy(day_of("timestamp")).count().collect()
            if counted:
                with self._alone, self.lock(self.layout.quarantine):
                    append(bad, self.layout.quarantine, None)
        finally:
            bad.unpersist()
        return {row[_DAY] or NO_DAY: row["count"] for row in counted}

    def good(self, rows: DataFrame, decisions: Decisions) -> DataFrame:
        """Return the rows that decode, in the columns of the table."""
        native = native_decoder(has_protobuf_functions(self.spark), self.layout.root)
        decoded = silver_rows(rows, decisions, choose(self.decoder, native, decisions))
        return decoded.where(~F.col(REFUSED)).drop(REFUSED)

    @contextmanager
    def within_memory(self, rows: DataFrame, contents: RedecodeContents) -> Iterator[None]:
        """Hand the rows to Python in batches that fit into memory while the block runs."""
        with batches_within_memory(rows, contents.sizes):
            yield

    def clean(self, *tasks: RedecodeTask) -> None:
        """Take what quarantine had of the rows before out of it, and forget that rows of them were dropped."""
        if not tasks:
            return
        storage, quarantine = self.layout.storage, self.layout.quarantine
        with self._alone:
            with self.lock(quarantine):
                delete_rows(self.spark, storage, quarantine, _RedecodedRows(tasks, keeps_own=True))
            delete_rows(self.spark, storage, self.layout.dropped, _RedecodedRows(tasks, keeps_own=False))

    def require_whole(self, spark: SparkSession, task: RedecodeTask, contents: RedecodeContents) -> None:
        """Check that bronze has every record that silver and quarantine have of what is decoded again.

        Args:
            spark: the session.
            task: what is decoded again.
            contents: of what is decoded.

        Raises:
            RangeRetired: rows of them would be lost.
        """
        known = [without_forgotten(spark, self.layout, task.game, each) for each in self._known(spark, task)]
        if not known:
            return
        ids = _union(known)
        # the sums cost no shuffle: nearly always they say it all
        every = _union([ids, *self._kept(spark, task, self.layout.dropped)])
        found = every.agg(F.count(F.lit(1)).alias("rows"), _hashes().alias("ids")).first()
        assert found is not None
        if (found["rows"], found["ids"]) == (sum(contents.rows.values()), contents.ids):
            return
        there = all_rows(spark, self.layout, task.game, task.version, task.span).select("record_id")
        gone = ids.join(there, "record_id", "left_anti").agg(F.count(F.lit(1)), F.max(day_of("timestamp"))).first()
        assert gone is not None
        if gone[0]:
            raise _lost(task.game, gone[0], gone[1])

    def _known(self, spark: SparkSession, task: RedecodeTask) -> list[DataFrame]:
        """Return what quarantine and silver have: record_id, timestamp."""
        table = self.layout.silver(names_of(task.game).key)
        quarantined = self._kept(spark, task, self.layout.quarantine)
        if not self.layout.storage.table_exists(table):
            return quarantined
        silver = spark.read.format("delta").load(table).where(task.where("_timestamp"))
        names = ("record_id", "timestamp")
        return [*quarantined, silver.select(*(F.col(f"_{name}").alias(name) for name in names))]

    def _kept(self, spark: SparkSession, task: RedecodeTask, table: str) -> list[DataFrame]:
        """Return what a table with the columns of quarantine has, if it is there: record_id, timestamp."""
        if not self.layout.storage.table_exists(table):
            return []
        rows = spark.read.format("delta").load(table).where(QuarantineFilter(task.game).sql())
        return [rows.where(task.where("timestamp")).select("record_id", "timestamp")]


def require_not_retired(spark: SparkSession, layout: Layout, game: str, version: int, condition: str) -> None:
    """Check that no row of the game that is meant was retired from bronze.

    Args:
        spark: the session.
        layout: where the tables are.
        game: the exact name.
        version: of bronze.
        condition: SQL, on `timestamp`.

    Raises:
        RangeRetired: some were.
    """
    if not layout.storage.table_exists(layout.removed):
        return
    mine = (F.col("game_name") == F.lit(game)) & (F.col("reason") == RemovalReason.RETIRED.value)
    retired = spark.read.format("delta").load(layout.removed).where(mine).where(condition)
    if not retired.limit(1).count():
        return
    # what is written down goes a moment later: it may be there still
    row = ["record_id", "batch_id"]
    there = all_rows(spark, layout, game, version, None).select(*(F.col(name).alias(f"_{name}") for name in row))
    same = reduce(lambda one, other: one & other, (F.col(name).eqNullSafe(F.col(f"_{name}")) for name in row))
    gone = retired.join(there, same, "left_anti").agg(F.count(F.lit(1)), F.max(day_of("timestamp"))).first()
    assert gone is not None
    if gone[0]:
        raise _lost(game, gone[0], gone[1])


def counts_of(rows: Mapping[date, int], bad: Mapping[date, int]) -> dict[date, DayCounts]:
    """Return what became of the rows of each day; those that say of no day are under `NO_DAY`."""
    return {day: DayCounts(number, number - bad.get(day, 0), bad.get(day, 0)) for day, number in rows.items()}


def _lost(game: str, rows: int, newest: date | None) -> RangeRetired:
    told = shlex.quote(game)
    if newest is None:
        return RangeRetired(
            f"Bronze does not have {counted_rows(rows)} of the game {told} any more, which say of no day.",
            f"Decode the days that bronze has: `demux backfill --game {told} --from DAY`.",
            game=game,
        )
    whole = newest + timedelta(days=1)
    return RangeRetired(
        f"Bronze does not have {counted_rows(rows)} of the game {told} any more; it is whole from {whole} on.",
        f"Decode what bronze has: `demux backfill --game {told} --from {whole}`.",
        game=game,
        whole_from=whole,
    )


def day_of(column: str) -> Column:
    """Return the day of a time; NULL of one that no calendar of Python has."""
    day = F.to_date(F.col(column))
    years = day.between(F.lit("0001-01-01").cast("date"), F.lit("9999-12-30").cast("date"))
    return F.when(years, day).alias(_DAY)


def _union(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)


def _hashes() -> Column:
    """Return a sum over record ids that others would hardly have."""
    return F.coalesce(F.sum(F.xxhash64("record_id").bitwiseAND(F.lit(0xFFFFFFFF))), F.lit(0))
