"""What was kept in `_rescued` put into the columns that the table has by now; the rest stays there."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.map_in_arrow import ArrowFunction, Batches, map_in_arrow
from demux.core.columns.spark import spark_struct
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.errors import GameUnknown
from demux.core.names import names_of, quoted
from demux.core.protobuf.decode.reference_parser import Row
from demux.core.protobuf.decode.rescue_fill import filling_of
from demux.core.protobuf.schema.message_selection import has_message
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.root.layout import Layout
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.store import SchemaStore
from demux.core.storage.files import Storage
from demux.core.tables import SILVER_ORIGIN, SILVER_RESERVED
from deserializer.decoders.schema_decision import SchemaLookup, WriterSchema
from deserializer.silver.evolve import silver_table
from deserializer.silver.fit import fit
from deserializer.silver.rewrite import replace_rows
from deserializer.silver.spark_table import SilverBySpark

_RESCUED = "_rescued"
_HELD = f"{_RESCUED} IS NOT NULL"
# not a column of any table
_CHANGED = Column("_changed", Primitive.BOOLEAN)
# what replaces the rows that hold something need not hold something itself
_CHECK = "spark.databricks.delta.replaceWhere.constraintCheck.enabled"


@dataclass(frozen=True, slots=True)
class BackfillReport:
    """What a backfill did, in rows: those that got values, and those that still hold something in `_rescued`."""

    game: str
    filled: int
    left: int


def backfill_rescued(spark: SparkSession, layout: Layout, schemas: SchemaStore, game: str) -> BackfillReport:
    """Return what became of the game's rows that hold something in `_rescued`, in one commit of the table.

    Read by all schemas that rows of the table have, the newest first; before that, the table gets the columns of these
    as its mode allows. A second call changes nothing; after a crash the table is as it was, or filled.

    Raises:
        GameUnknown: the game has no table.
        ApprovalNeeded: the table asks before it gets a column.
        RegistryUnavailable: a schema is not known here and the registry does not answer; nothing was written.
    """
    table = layout.silver(names_of(game).key)
    if not layout.storage.table_exists(table):
        raise GameUnknown(
            f"The game {shlex.quote(game)} has no table.",
            "See `demux status` for the games; names are exact, upper and lower case included.",
            game=game,
        )
    session = _session(spark)
    if not _rows(session, table).limit(1).count():
        return BackfillReport(game, 0, 0)
    answers = _schemas_of(spark, layout.storage, table, schemas, game)
    decisions = fit(spark, layout.storage, SilverBySpark(spark, layout.storage, table), answers, schemas.contract(game))
    writers = _newest_first(answers, {ref.schema_id: writer for ref, writer in decisions.writers.items()})
    everything = Struct((*decisions.columns, *SILVER_ORIGIN))
    held = _rows(session, table).select(*(F.col(quoted(column.name)) for column in everything))
    filled = map_in_arrow(held, to_filled(decisions.columns, writers), spark_struct(Struct((*everything, _CHANGED))))
    changed, left = F.sum(F.col(_CHANGED.name).cast("long")), F.count(_RESCUED)
    counts = filled.agg(changed.alias("changed"), left.alias("left")).first()
    assert counts is not None
    if counts.changed:
        # read again inside the commit, which sees to it that no other came between
        replace_rows(filled.drop(_CHANGED.name), table, replaceWhere=_HELD)
    return BackfillReport(game, counts.changed or 0, counts.left)


def to_filled(columns: Struct, writers: tuple[WriterSchema, ...]) -> ArrowFunction:
    """Return a function that fills rows of a silver table and says which of them changed.

    Args:
        columns: the table's payload columns.
        writers: in the order in which they read what is left over.
    """
    schema = pa.schema(arrow_fields(Struct((*columns, *SILVER_ORIGIN, _CHANGED))))

    def convert(batches: Batches) -> Batches:
        for batch in batches:
            rows = [_filled(row, columns, writers) for row in batch.to_pylist()]
            yield pa.RecordBatch.from_pylist(rows, schema=schema)

    return convert


def _filled(row: Row, columns: Struct, writers: tuple[WriterSchema, ...]) -> Row:
    result, leftover = row, row[_RESCUED]
    for writer in writers:
        if leftover is not None:
            filling = filling_of(writer.descriptor_set, writer.message, SILVER_RESERVED)
            result, leftover = filling.filled(result, leftover, columns)
    return {**result, _RESCUED: leftover, _CHANGED.name: leftover != row[_RESCUED]}


def _schemas_of(
    spark: SparkSession, storage: Storage, table: str, schemas: SchemaStore, game: str
) -> dict[SchemaRef, SchemaLookup]:
    """Return the schemas that rows of the table have, each with the message that the table holds."""
    ids = spark.read.format("delta").load(table).select("_schema_id").where("_schema_id IS NOT NULL").distinct()
    answers = schemas.lookup([SchemaRef(row[0]) for row in ids.collect()], game)
    silver = silver_table(spark, storage, table)
    message = None if silver is None else silver.message
    return {ref: _of_message(answer, message) for ref, answer in answers.items()}


def _of_message(answer: SchemaLookup, message: str | None) -> SchemaLookup:
    # a row does not say any more which message of its schema it was
    if message is None or not isinstance(answer, CompiledSchema) or not has_message(answer.descriptor_set, message):
        return answer
    return replace(answer, message=message)


def _newest_first(
    answers: Mapping[SchemaRef, SchemaLookup], writers: Mapping[int | None, WriterSchema]
) -> tuple[WriterSchema, ...]:
    known = [answer for answer in answers.values() if isinstance(answer, CompiledSchema)]
    newest = sorted(known, key=lambda schema: (schema.version, schema.schema_id), reverse=True)
    return tuple(writers[schema.schema_id] for schema in newest if schema.schema_id in writers)


def _session(spark: SparkSession) -> SparkSession:
    """Return a session with settings of its own, whose times are UTC."""
    session = spark.newSession()
    session.conf.set(_CHECK, "false")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    return session


def _rows(spark: SparkSession, table: str) -> DataFrame:
    """Return the rows that hold something in `_rescued`; none where the table has no such column yet."""
    rows = spark.read.format("delta").load(table)
    return rows.where(_HELD) if _RESCUED in rows.columns else rows.limit(0)
