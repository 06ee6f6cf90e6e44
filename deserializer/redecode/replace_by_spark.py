"""Rows of one game's table replaced by Spark: for tables that ask it of their writers, and for very large games."""

from __future__ import annotations

from functools import reduce

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from demux.core.causes import RemovalReason
from demux.core.delta.app_transactions import Batch, transaction_of
from demux.core.delta.batch_commit import append
from demux.core.delta.bronze_games import position_id
from demux.core.names import names_of, quoted, sql_string
from demux.core.root.layout import Layout
from demux.core.root.lock import TableLock
from demux.core.schemas.store import SchemaStore
from demux.core.spark.map_in_arrow import batches_within_memory
from demux.core.streaming.bronze_offset import BronzeOffset
from demux.operations.quarantine.filter import QuarantineFilter
from deserializer.fleet.replaced_rows import day_counts, lost_rows
from deserializer.redecode.rebuilt_table import RebuiltTable, rebuilt_table
from deserializer.redecode.source import BronzeRows, Redecoded
from deserializer.silver.append import contents_of, day_of, rows_of_days, write_rows
from deserializer.silver.evolve import say
from deserializer.silver.fit import fit
from deserializer.silver.rewrite import replace_rows, replacing_session
from deserializer.silver.spark_quarantine import ALONE
from deserializer.silver.spark_table import SilverBySpark


def replace_by_spark(
    spark: SparkSession,
    layout: Layout,
    schemas: SchemaStore,
    source: BronzeRows,
    request: str,
    lock: TableLock,
    *,
    accept_loss: bool,
) -> Redecoded:
    """Return what became of the rows; as `Redecoder.replace`."""
    spark = replacing_session(spark)
    game, contract = source.game, schemas.contract(source.game)
    everything = source.frame(spark, layout)
    rows = _without_forgotten(spark, layout, game, everything)
    if not accept_loss:
        _require_whole(spark, layout, source, everything)
    contents = contents_of(rows)
    answers = schemas.lookup(contents.refs, game)
    table = SilverBySpark(spark, layout.storage, layout.silver(names_of(game).key))
    rebuilt = None
    if source.span is None:
        rebuilt = rebuilt_table(table.schema, answers, contract, contents.refs)
        decisions = rebuilt.decisions
    else:
        decisions = fit(spark, layout.storage, table, answers, contract, contents.refs)

    def put_bad(bad: DataFrame) -> None:
        with ALONE, lock(layout.quarantine):
            append(bad, layout.quarantine, None)

    def put_good(good: DataFrame) -> None:
        if source.span is not None:
            replace_rows(good, table.path, replaceWhere=source.span.sql("_timestamp"))
        elif rebuilt is not None:
            _overwrite(spark, table, rebuilt, good, _position(spark, layout, source, table.path))

    batch = Batch(request, source.version, retried=False)
    with batches_within_memory(rows, contents.sizes):
        bad = write_rows(rows, decisions, game, batch, put_bad, put_good)
    return Redecoded(day_counts(rows_of_days(rows), bad), decisions.schema_ids())


def _overwrite(
    spark: SparkSession, table: SilverBySpark, rebuilt: RebuiltTable, rows: DataFrame, position: Batch | None
) -> None:
    """Replace all rows of the table, with the position behind the new ones, in one commit; then its comment."""
    before = {field.name: field.metadata for field in rows.schema.fields}
    named = (
        F.col(quoted(field.name)).alias(field.name, metadata=field.metadata)
        if before[field.name] != field.metadata
        else F.col(quoted(field.name))
        for field in rebuilt.schema.fields
    )
    writer = rows.select(*named).write.format("delta").mode("overwrite")
    if position is not None:
        writer = writer.option("txnAppId", position.query_id).option("txnVersion", position.batch_id)
    if table.exists and table.schema != rebuilt.schema:
        columns = {field.name for field in rebuilt.schema.fields}
        parts = [name for name in _detail(spark, table.path)["partitionColumns"] if name in columns]
        writer = writer.option("overwriteSchema", "true").partitionBy(*parts)
    writer.save(table.path)
    if rebuilt.comment and _detail(spark, table.path)["description"] != rebuilt.comment:
        say(spark, [f"COMMENT ON TABLE delta.{quoted(table.path)} IS {sql_string(rebuilt.comment)}"])


def _position(spark: SparkSession, layout: Layout, source: BronzeRows, table: str) -> Batch | None:
    """Return the transaction that says that the game is decoded up to the source; None: its table says so.

    Spark writes nothing, and says nothing, where a transaction's version is not above the one before.
    """
    app_id, after = position_id(spark, layout), BronzeOffset(source.version + 1).number
    is_there = transaction_of(layout.storage, table, app_id) == after
    return None if is_there else Batch(app_id, after, retried=False)


def _detail(spark: SparkSession, table: str) -> Row:
    detail = DeltaTable.forPath(spark, table).detail().select("description", "partitionColumns").first()
    assert detail is not None
    return detail


def _require_whole(spark: SparkSession, layout: Layout, source: BronzeRows, bronze: DataFrame) -> None:
    """Check that bronze has every record that silver and quarantine have of the days; raises RangeRetired."""

    def records(path: str, prefix: str, condition: str) -> list[DataFrame]:
        if not layout.storage.table_exists(path):
            return []
        days = "TRUE" if source.span is None else source.span.sql(f"{prefix}timestamp")
        rows = spark.read.format("delta").load(path).where(condition).where(days)
        return [rows.select(*(F.col(f"{prefix}{name}").alias(name) for name in ("record_id", "timestamp")))]

    silver = layout.silver(names_of(source.game).key)
    known = [*records(silver, "_", "TRUE"), *records(layout.quarantine, "", QuarantineFilter(source.game).sql())]
    if not known:
        return
    lost = _without_forgotten(spark, layout, source.game, reduce(DataFrame.unionByName, known))
    lost = lost.join(bronze.select("record_id"), "record_id", "left_anti")
    found = lost.agg(F.count(F.lit(1)), F.max(day_of("timestamp"))).first()
    if found is not None and found[0]:
        raise lost_rows(source.game, found[0], found[1])


def _without_forgotten(spark: SparkSession, layout: Layout, game: str, rows: DataFrame) -> DataFrame:
    """Return rows of the game, by `record_id`, without those that were forgotten on request, if any are here still."""
    if not layout.storage.table_exists(layout.removed):
        return rows
    removed = spark.read.format("delta").load(layout.removed)
    mine = (F.col("game_name") == F.lit(game)) & (F.col("reason") == RemovalReason.FORGOTTEN.value)
    forgotten = removed.where(mine).select("record_id").distinct()
    return rows.join(forgotten, "record_id", "left_anti").select(*rows.columns)
