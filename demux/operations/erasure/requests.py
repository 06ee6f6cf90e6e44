"""A request is written down by record, then carried out: in silver, in quarantine, in bronze; then it is noted as done.

What is written down never names the person: it has positions. A request that was killed anywhere is finished by what
is written down. Until then the ledger counts its records as dropped, wherever they still are.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from functools import reduce
from operator import and_

from delta.tables import DeltaTable
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.core.causes import RemovalReason, Stage
from demux.core.columns.spark import spark_struct
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.storage import table_exists
from demux.core.tables import FORGET, POSITION, REMOVED
from demux.operations.erasure.results import FORGOTTEN_ROWS, RemovedRows

_CONF = {
    "spark.databricks.delta.commitInfo.userMetadata": FORGOTTEN_ROWS,
    # a vector would only hide a row, and leave its bytes in a live file
    "spark.databricks.delta.delete.deletionVectors.persistent": "false",
    "spark.databricks.delta.merge.deletionVectors.persistent": "false",
}
_ID = "record_id"


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """A game's part of a request; `game` as in `demux.operations.erasure.results.SearchResult`."""

    id: str
    game: str | None


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
    if not table_exists(spark, layout.removed):
        return ()
    written = _written(spark, layout).select("request", "game_name").distinct()
    if table_exists(spark, layout.forget):
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
    rows = _written(session, layout).where(_is(request)).select(_ID, "batch_id").distinct()
    if request.game is None:
        removed = RemovedRows(request.id, None, 0, 0, _from_quarantine(session, layout, request, rows))
    else:
        silver = _from(session, layout.silver(names_of(request.game).key), rows, {f"_{_ID}": _ID})
        quarantine = _from_quarantine(session, layout, request, rows)
        of_game = F.col("t.game_name") == F.lit(request.game)
        # a record that is forgotten counts as nothing else
        _from(session, layout.dropped, rows, {_ID: _ID}, of_game & (F.col("t.stage") == Stage.SILVER.value))
        _from(session, layout.removed, rows, {_ID: _ID}, of_game & (F.col("t.reason") == RemovalReason.RETIRED.value))
        # bronze's row goes last: until then nothing is lost
        bronze = _from(session, layout.bronze, rows, {_ID: _ID, "batch_id": "batch_id"}, of_game)
        removed = RemovedRows(request.id, request.game, silver, bronze, quarantine)
    _note(spark, layout, removed)
    return removed


def _write_down_copies(spark: SparkSession, layout: Layout, request: ErasureRequest, read_batch: int) -> None:
    """Write down what bronze has besides of the same records, should the game have read that since: copies of a source.

    They are in silver too, and silver does not say of which copy a row is.
    """
    if not table_exists(spark, layout.bronze):
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


def _from_quarantine(session: SparkSession, layout: Layout, request: ErasureRequest, rows: DataFrame) -> int:
    if request.game is None:
        return _from(session, layout.quarantine, rows, {_ID: _ID}, F.col("t.stage") == Stage.BRONZE.value)
    of_game = (F.col("t.stage") == Stage.SILVER.value) & (F.col("t.game_name") == F.lit(request.game))
    return _from(session, layout.quarantine, rows, {_ID: _ID}, of_game)


def _from(
    session: SparkSession, path: str, rows: DataFrame, same: dict[str, str], condition: SparkColumn | None = None
) -> int:
    """Remove the rows of a table that have the same values as one of these, in one commit; return how many.

    Files with such rows are rewritten without them, whatever the table says of deletion vectors.

    Args:
        session: one with the settings for it.
        path: the table's path; it need not be there.
        rows: what goes.
        same: columns of the table, and of `rows`.
        condition: on the table's columns, behind `t.`.
    """
    if not table_exists(session, path):
        return 0
    keys = rows.select(*same.values()).distinct().alias("f")
    matches = reduce(and_, (F.col(f"t.{ours}") == F.col(f"f.{theirs}") for ours, theirs in same.items()))
    if condition is not None:
        matches = condition & matches
    table = DeltaTable.forPath(session, path).alias("t")
    count = table.toDF().join(keys, matches, "left_semi").count()
    if count:
        table.merge(keys, matches).whenMatchedDelete().execute()
    return count


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
    session = spark.newSession()
    for key, value in _CONF.items():
        session.conf.set(key, value)
    return session
