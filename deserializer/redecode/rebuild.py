"""One game's table made again from bronze: beside what it has, and then in its place, in one commit."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from demux.core.causes import RemovalReason, Stage
from demux.core.columns.spark import MESSAGE, columns_of_spark, message_in, spark_struct
from demux.core.delta.app_transactions import Batch
from demux.core.delta.bronze_games import position_id
from demux.core.delta.commit import Replacement
from demux.core.delta.log import newest_version
from demux.core.delta.parquet_writer import remove_files, schema_json
from demux.core.delta.rewrite_rows import open_to_replace
from demux.core.delta.scan import sizes_of
from demux.core.errors import TaskInterrupted
from demux.core.names import names_of, quoted, sql_string
from demux.core.reports import GameReport
from demux.core.root.layout import Layout
from demux.core.schemas.ref import SchemaRef
from demux.core.settings.games import Contract, SchemaChanges
from demux.core.settings.settings import Sink
from demux.core.storage.files import Storage
from demux.core.streaming.bronze_offset import BronzeOffset
from demux.core.tables import SILVER_RESERVED
from deserializer.decoders.schema_decision import UNDECIDED, Decisions, SchemaLookup, decide, schema_ids_of
from deserializer.offsets.bronze_files import file_session
from deserializer.redecode.backfill_files import bronze_of_files, ids_by_game, parts_of_table, run_days
from deserializer.redecode.backfill_plan import DayCounts
from deserializer.redecode.backfill_worker import GameDays
from deserializer.redecode.processed_rows import all_rows, without_forgotten
from deserializer.redecode.replace_rows import Redecoder, RedecodeTask, counts_of, require_not_retired
from deserializer.silver.backend import tables_of
from deserializer.silver.comments import Description, description_of
from deserializer.silver.evolve import payload_of, say
from deserializer.silver.file_quarantine import Quarantine

_LOG = logging.getLogger("demux")
# of bronze, which one task decodes; of more, Spark's tasks have a part each
_MOST_BYTES = 512 * 2**20


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


def rebuilt(
    redecoding: Redecoder, game: str, request: str, *, sink: Sink = Sink.AUTO, accept_loss: bool = False
) -> GameReport:
    """Return what was decoded of all rows that bronze has of the game, those too that wait; readers see one change.

    Before that change everything is as it was; after it, whoever decodes the game next continues behind these rows.
    A second call, also after a crash, does it again, and ends what the first one has begun.

    Args:
        redecoding: what decodes.
        game: the exact name; bronze has rows of it.
        request: an id that no other call has.
        sink: who is to write silver.
        accept_loss: also where rows of the game are not in bronze any more, which are lost then.

    Raises:
        RangeRetired: rows of the game are not in bronze any more.
        ApprovalNeeded: a schema would change the table, which asks first; nothing was written.
        RegistryUnavailable: a schema is not known here and the registry does not answer; nothing was written.
    """
    report = _rebuilt_by_files(redecoding, game, request, sink, accept_loss=accept_loss)
    if report is None:
        report = _rebuilt_by_spark(redecoding, game, request, accept_loss=accept_loss)
    return report


def _rebuilt_by_files(
    redecoding: Redecoder, game: str, request: str, sink: Sink, *, accept_loss: bool
) -> GameReport | None:
    """Return what was decoded, in one task; None where the game is left to Spark: it is large, or not all is plain."""
    layout = redecoding.layout
    storage, path = layout.storage, layout.silver(names_of(game).key)
    bronze = bronze_of_files(redecoding, sink)
    table = None if bronze is None else open_to_replace(storage, path)
    if bronze is None or table is None:
        return None
    everything = {game: None}
    files = parts_of_table(bronze, layout.bronze, "timestamp").get(game, ())
    size = sum(file.bytes for file in files)
    retired = ids_by_game(storage, layout.removed, "reason", RemovalReason.RETIRED.value, everything)
    if not files or size > _MOST_BYTES or (retired[game] and not accept_loss):
        return None
    removed = sizes_of(table)
    work = GameDays(
        game,
        None,
        storage,
        tuple(file.where for file in files),
        size,
        path,
        tuple(removed),
        UNDECIDED,
        ids_by_game(storage, layout.quarantine, "stage", Stage.SILVER.value, everything)[game],
        ids_by_game(storage, layout.removed, "reason", RemovalReason.FORGOTTEN.value, everything)[game],
        batch_id=bronze.version(),
        replaced={} if accept_loss else None,
    )
    now = StructType.fromJson(json.loads(schema_json(table)))
    answers: Mapping[SchemaRef, SchemaLookup] = {}
    wanted: _RebuiltTable | None = None
    at = datetime.now(timezone.utc)
    # the first look finds out which schemas the rows have
    for _ in range(2):
        (written,), bad = run_days(redecoding, [work], request, at)
        if not written.unknown:
            break
        answers = redecoding.schemas.lookup(written.unknown, game)
        wanted = _wanted(now, answers, redecoding.schemas.contract(game), written.unknown)
        work = replace(work, decisions=wanted.decisions, replaced=written.replaced)
    if written.left is not None or wanted is None:
        _LOG.info("a rebuild is left to Spark: %s", written.left)
        return None
    if bad:
        Quarantine(storage, layout.quarantine, layout.dropped, request, redecoding.lock).append(bad, {})
    is_new = wanted.schema != now or wanted.comment not in {"", table.metadata().description}
    replacement = Replacement(
        "WRITE",
        removed,
        written.files,
        {position_id(redecoding.spark, layout): BronzeOffset(bronze.version() + 1).number},
        wanted.schema.jsonValue() if is_new else None,
        wanted.comment or None,
    )
    if not replacement.commit(storage, table, path):
        remove_files(storage, path, [file.path for file in written.files])
        raise TaskInterrupted(
            f"Another process wrote {path} meanwhile.", "Run the same command again; nothing is lost.", game=game
        )
    redecoding.clean(RedecodeTask(game, bronze.version(), None, request))
    return _report(game, written.counts, answers)


def _rebuilt_by_spark(redecoding: Redecoder, game: str, request: str, *, accept_loss: bool) -> GameReport:
    layout, schemas = redecoding.layout, redecoding.schemas
    spark = file_session(redecoding.spark)
    task = RedecodeTask(game, newest_version(layout.storage, layout.bronze), None, request)
    rows = without_forgotten(spark, layout, game, all_rows(spark, layout, game, task.version, None))
    contents = redecoding.contents(rows)
    if not accept_loss:
        require_not_retired(spark, layout, game, task.version, "TRUE")
        redecoding.require_whole(spark, task, contents)
    answers = schemas.lookup(contents.refs, game)
    table = layout.silver(names_of(game).key)
    now = spark.read.format("delta").load(table).schema if layout.storage.table_exists(table) else StructType([])
    wanted = _wanted(now, answers, schemas.contract(game), contents.refs)
    with redecoding.within_memory(rows, contents):
        counts = counts_of(contents.rows, redecoding.quarantine(rows, wanted.decisions, task))
        _swap(
            spark,
            layout.storage,
            table,
            wanted,
            redecoding.good(rows, wanted.decisions),
            _position(spark, layout, task),
        )
    _comment(spark, table, wanted.comment)
    redecoding.clean(task)
    return _report(game, counts, answers)


def _report(game: str, counts: Mapping[date, DayCounts], answers: Mapping[SchemaRef, SchemaLookup]) -> GameReport:
    rows_in, rows_silver, rows_bad = (
        sum(getattr(one, name) for one in counts.values()) for name in ("rows_in", "rows_silver", "rows_quarantined")
    )
    return GameReport(game, rows_in, rows_silver, rows_bad, tuple(sorted(schema_ids_of(answers))))


def _wanted(
    now: StructType, answers: Mapping[SchemaRef, SchemaLookup], contract: Contract, rows: Mapping[SchemaRef, int]
) -> _RebuiltTable:
    """Return what the table is to be: one that evolves gets the columns of these schemas alone, others keep theirs."""
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


def _swap(
    spark: SparkSession, storage: Storage, table: str, wanted: _RebuiltTable, rows: DataFrame, position: Batch | None
) -> None:
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
    if storage.table_exists(table) and spark.read.format("delta").load(table).schema != wanted.schema:
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
