"""A request is written down by record, then carried out: in silver, in quarantine, in bronze; then it is noted as done.

What is written down never names the person: it has positions. A request that was killed anywhere is finished by what
is written down. Until then the ledger counts its records as dropped, wherever they still are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc
from delta.tables import DeltaTable
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.core.causes import RemovalReason, Stage
from demux.core.columns.spark import spark_struct
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.rewrite_rows import delete_rows
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.spark.connect import new_session
from demux.core.storage.files import Storage
from demux.core.tables import FORGET, POSITION, REMOVED
from demux.operations.erasure.results import FORGOTTEN_ROWS, RemovedRows

_CONF = {
    "spark.databricks.delta.commitInfo.userMetadata": FORGOTTEN_ROWS,
    # a vector would only hide a row, and leave its bytes in a live file
    "spark.databricks.delta.delete.deletionVectors.persistent": "false",
    "spark.databricks.delta.merge.deletionVectors.persistent": "false",
}
_ID = "record_id"
# that one process holds
_MOST_RECORDS = 1_000_000


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """A game's part of a request; `game` as in `demux.operations.erasure.results.SearchResult`."""

    id: str
    game: str | None


@dataclass(frozen=True, slots=True)
class _WrittenDown:
    """The records that go: of each its id, and the batch of bronze that one of its rows is of, NULL where it has none.

    Attributes:
        rows: record_id STRING, batch_id BIGINT.
        batches: the same by id; None where there are too many for this process.
    """

    rows: DataFrame
    batches: Mapping[str, frozenset[int | None]] | None

    @staticmethod
    def of(rows: DataFrame) -> _WrittenDown:
        found = rows.limit(_MOST_RECORDS + 1).collect()
        if len(found) > _MOST_RECORDS:
            return _WrittenDown(rows, None)
        batches: defaultdict[str, set[int | None]] = defaultdict(set)
        for row in found:
            batches[row.record_id].add(row.batch_id)
        return _WrittenDown(rows, {record_id: frozenset(each) for record_id, each in batches.items()})


@dataclass(frozen=True, slots=True)
class _Erasure:
    """The rows of one table that go: those of records that are written down.

    Attributes:
        path: the table's; it need not be there.
        where: values that other columns of a row must have.
        record_id: the column of the record's id.
        batch_id: the column of the batch; None where rows of all batches go.
        partition: the partition that they are all in, by column; empty: the table has none.
    """

    path: str
    where: Mapping[str, str]
    record_id: str = _ID
    batch_id: str | None = None
    partition: Mapping[str, str] = field(default_factory=dict)

    def carry_out(self, session: SparkSession, storage: Storage, gone: _WrittenDown) -> int:
        """Remove the rows in one commit; return how many.

        Files with such rows are written again without them, whatever the table says of deletion vectors.
        """
        if not storage.table_exists(self.path):
            return 0
        if (batches := gone.batches) is not None:
            rows = delete_rows(
                storage,
                self.path,
                lambda rows: self._among(rows, batches),
                self._columns,
                self.partition,
                FORGOTTEN_ROWS,
            )
            if rows is not None:
                return rows
        return self._by_spark(session, gone.rows)

    @property
    def _columns(self) -> Struct:
        batch = [] if self.batch_id is None else [Column(self.batch_id, Primitive.BIGINT)]
        return Struct((*(Column(name, Primitive.STRING) for name in (self.record_id, *self.where)), *batch))

    def _among(self, rows: pa.RecordBatch, batches: Mapping[str, frozenset[int | None]]) -> pa.BooleanArray:
        ids = rows.column(self.record_id)
        meant = pc.is_in(ids, pa.array(list(batches), pa.string()))
        for name, value in self.where.items():
            meant = pc.and_(meant, pc.equal(rows.column(name), value))
        if self.batch_id is None or not pc.any(meant).as_py():
            return meant
        pairs = zip(ids.to_pylist(), rows.column(self.batch_id).to_pylist(), strict=True)
        return pc.and_(meant, pa.array([batch in batches.get(record_id, ()) for record_id, batch in pairs], pa.bool_()))

    def _by_spark(self, session: SparkSession, rows: DataFrame) -> int:
        same = {self.record_id: _ID, **({} if self.batch_id is None else {self.batch_id: "batch_id"})}
        keys = rows.select(*same.values()).distinct().alias("f")
        meant = {**self.where, **self.partition}
        conditions = [F.col(f"t.{name}") == F.lit(value) for name, value in meant.items()]
        conditions += [F.col(f"t.{ours}") == F.col(f"f.{theirs}") for ours, theirs in same.items()]
        matches = reduce(and_, conditions)
        table = DeltaTable.forPath(session, self.path).alias("t")
        count = table.toDF().join(keys, matches, "left_semi").count()
        if count:
            table.merge(keys, matches).whenMatchedDelete().execute()
        return count


def write_down(spark: SparkSession, layout: Layout, request: ErasureRequest, rows: DataFrame, now: datetime) -> None:
    """Write down which records go: from here on they will, even if the process is killed.

    Args:
        spark: the session.
        layout: where the tables are.
        request: the request.
        rows: as `demux.operations.erasure.search.SearchOutcome` has them.
        now: the time (UTC).
    """
    stamped = (
        rows.withColumn("reason", F.lit(RemovalReason.FORGOTTEN.value))
        .withColumn("game_name", F.lit(request.game).cast("string"))
        .withColumn("request", F.lit(request.id))
        .withColumn("removed_at", F.lit(now))
    )
    _append(stamped.select(*(column.name for column in REMOVED)).coalesce(1), layout.removed)


def unfinished(spark: SparkSession, layout: Layout) -> tuple[ErasureRequest, ...]:
    """Return the requests that were written down and are not done, in a fixed order."""
    if not layout.storage.table_exists(layout.removed):
        return ()
    written = _written(spark, layout).select("request", "game_name").distinct()
    if layout.storage.table_exists(layout.forget):
        done = spark.read.format("delta").load(layout.forget).select("request", "game_name").alias("d")
        same = [F.col(f"w.{name}").eqNullSafe(F.col(f"d.{name}")) for name in ("request", "game_name")]
        written = written.alias("w").join(done, same, "left_anti")
    found = (ErasureRequest(row.request, row.game_name) for row in written.collect())
    return tuple(sorted(found, key=lambda one: (one.id, one.game or "")))


def carry_out(
    spark: SparkSession, layout: Layout, request: ErasureRequest, read_batch: int | None = None
) -> RemovedRows:
    """Return what was removed, now, of a request that is written down; a second call removes what is left.

    Args:
        spark: the session.
        layout: where the tables are.
        request: the request.
        read_batch: as in `search.searched`, where the game may have read more since that was written
            down; None for a request of this moment.
    """
    if request.game is not None and read_batch is not None:
        _write_down_copies(spark, layout, request, read_batch)
    session = _session(spark)
    rows = _WrittenDown.of(_written(session, layout).where(_is(request)).select(_ID, "batch_id").distinct())
    if request.game is None:
        refused = _Erasure(layout.quarantine, {"stage": Stage.BRONZE.value})
        removed = RemovedRows(request.id, None, 0, 0, refused.carry_out(session, layout.storage, rows))
    else:
        of_silver = {"stage": Stage.SILVER.value, "game_name": request.game}
        retired = {"reason": RemovalReason.RETIRED.value, "game_name": request.game}
        silver, quarantine, _, _, bronze = (
            erasure.carry_out(session, layout.storage, rows)
            for erasure in (
                _Erasure(layout.silver(names_of(request.game).key), {}, f"_{_ID}"),
                _Erasure(layout.quarantine, of_silver),
                # a record that is forgotten counts as nothing else
                _Erasure(layout.dropped, of_silver),
                _Erasure(layout.removed, retired),
                # bronze's row goes last: until then nothing is lost
                _Erasure(layout.bronze, {}, batch_id="batch_id", partition={"game_name": request.game}),
            )
        )
        removed = RemovedRows(request.id, request.game, silver, bronze, quarantine)
    _note(spark, layout, removed)
    return removed


def _write_down_copies(spark: SparkSession, layout: Layout, request: ErasureRequest, read_batch: int) -> None:
    """Write down what bronze has besides of the same records, should the game have read that since: copies of a source.

    They are in silver too, and silver does not say of which copy a row is.
    """
    if not layout.storage.table_exists(layout.bronze):
        return
    written = _written(spark, layout).where(_is(request))
    bronze = spark.read.format("delta").load(layout.bronze)
    mine = bronze.where((F.col("game_name") == F.lit(request.game)) & (F.col("batch_id") <= read_batch))
    copies = mine.join(written.select(_ID).distinct(), _ID, "left_semi")
    new = copies.join(written.select(_ID, "batch_id"), [_ID, "batch_id"], "left_anti").cache()
    try:
        if new.limit(1).count():
            positions = [column.name for column in POSITION]
            write_down(spark, layout, request, new.select(*positions, "batch_id"), datetime.now(timezone.utc))
    finally:
        new.unpersist()


def _note(spark: SparkSession, layout: Layout, removed: RemovedRows) -> None:
    """Note the request as done."""
    now = datetime.now(timezone.utc)
    row = (removed.request, removed.game, removed.silver, removed.bronze, removed.quarantine, now)
    _append(spark.createDataFrame([row], spark_struct(FORGET)).coalesce(1), layout.forget)


def _append(rows: DataFrame, path: str) -> None:
    rows.write.format("delta").mode("append").save(path)


def _written(spark: SparkSession, layout: Layout) -> DataFrame:
    removed = spark.read.format("delta").load(layout.removed)
    return removed.where(F.col("reason") == RemovalReason.FORGOTTEN.value)


def _is(request: ErasureRequest) -> SparkColumn:
    return (F.col("request") == request.id) & F.col("game_name").eqNullSafe(F.lit(request.game).cast("string"))


def _session(spark: SparkSession) -> SparkSession:
    session = new_session(spark)
    for key, value in _CONF.items():
        session.conf.set(key, value)
    return session
