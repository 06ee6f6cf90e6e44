"""One game's table made again from bronze: beside what it has, and then in its place, in one commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from demux.core.columns.spark import MESSAGE, columns_of_spark, message_in, spark_struct
from demux.core.delta.app_transactions import Batch
from demux.core.delta.bronze_games import position_id
from demux.core.delta.log import newest_version
from demux.core.names import names_of, quoted, sql_string
from demux.core.reports import GameReport
from demux.core.root.layout import Layout
from demux.core.schemas.ref import SchemaRef
from demux.core.settings.schema_contract import Contract, SchemaChanges
from demux.core.settings.settings import Sink
from demux.core.storage import table_exists
from demux.core.streaming.bronze_offset import BronzeOffset
from demux.core.tables import SILVER_RESERVED
from deserializer.decoders.schema_decision import Decisions, SchemaLookup, decide, schema_ids_of
from deserializer.offsets.bronze_files import file_session
from deserializer.redecode.processed_rows import all_rows, without_forgotten
from deserializer.redecode.replace_rows import Redecoder, RedecodeTask, counts_of, require_not_retired
from deserializer.silver.backend import tables_of
from deserializer.silver.comments import Description, description_of
from deserializer.silver.evolve import payload_of, say


@dataclass(frozen=True, slots=True)
class _RebuiltTable:
    """The table as it is to be.

    Attributes:
        decisions: what is done with each row.
        schema: the table's.
        comment: the table's; empty for the one that it has.
    """

    decisions: Decisions
    schema: StructType
    comment: str


def rebuilt(redecoding: Redecoder, game: str, request: str, *, accept_loss: bool = False) -> GameReport:
    """Return what was decoded of all rows that bronze has of the game, those too that wait; readers see one change.

    Before that change everything is as it was; after it, whoever decodes the game next continues behind these rows.
    A second call, also after a crash, does it again, and ends what the first one has begun.

    Args:
        redecoding: what decodes.
        game: the exact name; bronze has rows of it.
        request: an id that no other call has.
        accept_loss: also where rows of the game are not in bronze any more, which are lost then.

    Raises:
        RangeRetired: rows of the game are not in bronze any more.
        ApprovalNeeded: a schema would change the table, which asks first; nothing was written.
        RegistryUnavailable: a schema is not known here and the registry does not answer; nothing was written.
    """
    layout, schemas = redecoding.layout, redecoding.schemas
    spark = file_session(redecoding.spark)
    task = RedecodeTask(game, newest_version(spark, layout.bronze), None, request)
    rows = without_forgotten(spark, layout, game, all_rows(spark, layout, game, task.version, None))
    contents = redecoding.contents(rows)
    if not accept_loss:
        require_not_retired(spark, layout, game, task.version, "TRUE")
        redecoding.require_whole(spark, task, contents)
    answers = schemas.lookup(contents.refs, game)
    table = layout.silver(names_of(game).key)
    wanted = _wanted(spark, layout, game, answers, schemas.contract(game), contents.refs)
    with redecoding.within_memory(rows, contents):
        counts = counts_of(contents.rows, redecoding.quarantine(rows, wanted.decisions, task))
        _swap(spark, table, wanted, redecoding.good(rows, wanted.decisions), _position(spark, layout, task))
    _comment(spark, table, wanted.comment)
    redecoding.clean(task)
    rows_in, rows_silver, rows_bad = (
        sum(getattr(one, name) for one in counts.values()) for name in ("rows_in", "rows_silver", "rows_quarantined")
    )
    return GameReport(game, rows_in, rows_silver, rows_bad, tuple(sorted(schema_ids_of(answers))))


def _wanted(
    spark: SparkSession,
    layout: Layout,
    game: str,
    answers: Mapping[SchemaRef, SchemaLookup],
    contract: Contract,
    rows: Mapping[SchemaRef, int],
) -> _RebuiltTable:
    """Return what the table is to be: one that evolves gets the columns of these schemas alone, others keep theirs."""
    table = layout.silver(names_of(game).key)
    now = spark.read.format("delta").load(table).schema if table_exists(spark, table) else StructType([])
    if contract.mode is SchemaChanges.EVOLVE:
        now = StructType([])
    decisions = decide(payload_of(now), answers, message_in(now), contract, rows=rows)
    description = description_of(decisions, answers, columns_of_spark(now))
    schema = _schema(description, decisions.message, now)
    return _RebuiltTable(replace(decisions, columns=payload_of(schema)), schema, description.comment)


def _schema(description: Description, message: str | None, now: StructType) -> StructType:
    """Return the table's schema; a column that it has now stays as it is, unless a newer schema says more of it."""
    before = {} if description.is_new else {field.name: field for field in now.fields}
    fields = list(spark_struct(description.all_columns).fields)
    if message is not None and fields[0].name not in SILVER_RESERVED:
        fields[0].metadata[MESSAGE] = message
    kept = (before.get(field.name, field) for field in fields)
    same = [
        old if columns_of_spark(StructType([old])) == columns_of_spark(StructType([new])) else new
        for old, new in zip(kept, fields, strict=True)
    ]
    return StructType(same)


def _comment(spark: SparkSession, table: str, comment: str) -> None:
    if comment and _detail(spark, table)["description"] != comment:
        say(spark, [f"COMMENT ON TABLE delta.{quoted(table)} IS {sql_string(comment)}"])


def _swap(spark: SparkSession, table: str, wanted: _RebuiltTable, rows: DataFrame, position: Batch | None) -> None:
    """Replace all rows of the table, with the position behind the new ones, in one commit."""
    told = {field.name: field.metadata for field in rows.schema.fields}
    named = (
        F.col(quoted(field.name)).alias(field.name, metadata=field.metadata)
        if told[field.name] != field.metadata
        else F.col(quoted(field.name))
        for field in wanted.schema.fields
    )
    writer = rows.select(*named).write.format("delta").mode("overwrite")
    if position is not None:
        writer = writer.option("txnAppId", position.query_id).option("txnVersion", position.batch_id)
    if table_exists(spark, table) and spark.read.format("delta").load(table).schema != wanted.schema:
        columns = {field.name for field in wanted.schema.fields}
        parts = [name for name in _detail(spark, table)["partitionColumns"] if name in columns]
        writer = writer.option("overwriteSchema", "true").partitionBy(*parts)
    writer.save(table)


def _position(spark: SparkSession, layout: Layout, task: RedecodeTask) -> Batch | None:
    """Return the transaction that says that the game is decoded up to the task's version; None: its table says so.

    Spark writes nothing, and says nothing, where a transaction's version is not above the one before.
    """
    app_id, after = position_id(spark, layout), BronzeOffset(task.version + 1)
    table = tables_of(spark, layout, app_id, Sink.AUTO).silver(names_of(task.game).key)
    if table.transaction(app_id) == after.number:
        return None
    return Batch(app_id, after.number, retried=False)


def _detail(spark: SparkSession, table: str) -> Row:
    detail = DeltaTable.forPath(spark, table).detail().select("description", "partitionColumns").first()
    assert detail is not None
    return detail
