"""What was kept in `_rescued` put into the columns that the table has by now; the rest stays there."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.spark import spark_struct
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.bronze_games import position_id
from demux.core.delta.commit import Replacement
from demux.core.delta.log import file_path
from demux.core.delta.rewrite_rows import chosen_rows, open_to_replace, replace_beside, rewritten
from demux.core.delta.scan import file_rows, sizes_of
from demux.core.errors import GameUnknown, TaskInterrupted
from demux.core.extras import deltalake
from demux.core.names import names_of, quoted
from demux.core.protobuf.decode.reference_parser import Row
from demux.core.protobuf.decode.rescue_fill import filling_of
from demux.core.protobuf.schema.message_selection import has_message
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.root.layout import Layout
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.store import SchemaStore
from demux.core.settings.settings import Sink
from demux.core.spark.connect import new_session
from demux.core.spark.map_in_arrow import ArrowFunction, Batches, map_in_arrow
from demux.core.storage.files import Storage
from demux.core.tables import SILVER_ORIGIN, SILVER_RESERVED
from deserializer.decoders.schema_decision import SchemaLookup, WriterSchema
from deserializer.silver.backend import GameTable, tables_of
from deserializer.silver.file_table import SilverTable
from deserializer.silver.fit import fit
from deserializer.silver.rewrite import MOST_BYTES, SAME_ROWS, replace_rows

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


def backfill_rescued(
    spark: SparkSession, layout: Layout, schemas: SchemaStore, game: str, sink: Sink = Sink.AUTO
) -> BackfillReport:
    """Return what became of the game's rows that hold something in `_rescued`, in one commit of the table.

    Read by all schemas that rows of the table have, the newest first; before that, the table gets the columns of these
    as its mode allows. A second call changes nothing; after a crash the table is as it was, or filled. By files where
    the table allows it, else by Spark.

    Raises:
        GameUnknown: the game has no table.
        ApprovalNeeded: the table asks before it gets a column.
        RegistryUnavailable: a schema is not known here and the registry does not answer; nothing was written.
        TaskInterrupted: another process rewrote the table meanwhile; nothing was written.
    """
    path = layout.silver(names_of(game).key)
    if not layout.storage.table_exists(path):
        raise GameUnknown(
            f"The game {shlex.quote(game)} has no table.",
            "See `demux status` for the games; names are exact, upper and lower case included.",
            game=game,
        )
    table = tables_of(spark, layout, position_id(spark, layout), sink).silver(names_of(game).key)
    if _RESCUED not in {column.name for column in table.everything}:
        return BackfillReport(game, 0, 0)
    rows: _RescuedRows = _RescuedBySpark(spark, layout.storage, table)
    opened = open_to_replace(layout.storage, path) if isinstance(table, SilverTable) else None
    if opened is not None and sum(sizes_of(opened).values()) <= MOST_BYTES:
        rows = _RescuedByFiles(layout.storage, table, opened)
    if not rows.any_held():
        return BackfillReport(game, 0, 0)
    answers = {
        ref: _of_message(answer, table.message)
        for ref, answer in schemas.lookup([SchemaRef(one) for one in rows.schema_ids()], game).items()
    }
    decisions = fit(spark, layout.storage, table, answers, schemas.contract(game))
    writers = _newest_first(answers, {ref.schema_id: writer for ref, writer in decisions.writers.items()})
    return BackfillReport(game, *rows.fill(decisions.columns, writers))


class _RescuedRows(Protocol):
    """The rows of one silver table."""

    def any_held(self) -> bool:
        """Return whether a row holds something in `_rescued`."""

    def schema_ids(self) -> list[int]:
        """Return the ids that rows of the table have."""

    def fill(self, columns: Struct, writers: tuple[WriterSchema, ...]) -> tuple[int, int]:
        """Fill the rows of `to_filled`; return how many changed, and how many still hold something."""


@dataclass(frozen=True, slots=True)
class _RescuedByFiles:
    """Those of a table that may be rewritten without Spark; `opened` is it as it was before it got columns."""

    storage: Storage
    table: GameTable
    opened: deltalake.DeltaTable

    def any_held(self) -> bool:
        return any(len(batch) for batch in self._chosen(_RESCUED))

    def schema_ids(self) -> list[int]:
        return sorted({one for batch in self._chosen("_schema_id") for one in batch.column(0).unique().to_pylist()})

    def fill(self, columns: Struct, writers: tuple[WriterSchema, ...]) -> tuple[int, int]:
        everything, path = Struct((*columns, *SILVER_ORIGIN)), self.table.path
        to_fill, fields = to_filled(columns, writers), arrow_fields(everything)
        opened = open_to_replace(self.storage, path)
        if opened is None:
            raise self._interrupted()
        removed, changed, left = {}, 0, 0
        for file, size in sizes_of(opened).items():
            held = (_held(batch) for batch in file_rows(self.storage, file_path(path, unquote(file)), size, fields))
            before = changed
            for batch in to_fill(held):
                changed += pc.sum(batch.column(_CHANGED.name)).as_py() or 0
                left += len(batch) - batch.column(_RESCUED).null_count
            if changed > before:
                removed[file] = size
        if not removed:
            return changed, left

        def filled(batch: pa.RecordBatch) -> pa.RecordBatch:
            others = batch.filter(batch.column(_RESCUED).is_null())
            return pa.concat_batches(
                [others, *(rows.drop_columns([_CHANGED.name]) for rows in to_fill(iter([_held(batch)])))]
            )

        added = rewritten(self.storage, path, removed, everything, filled)
        if not replace_beside(self.storage, opened, path, Replacement("UPDATE", removed, added, mark=SAME_ROWS)):
            raise self._interrupted()
        return changed, left

    def _chosen(self, name: str) -> Iterator[pa.RecordBatch]:
        """Yield a column of the rows that are not NULL in it."""
        column = Struct(tuple(one for one in SILVER_ORIGIN if one.name == name))
        return chosen_rows(self.storage, self.opened, self.table.path, column, lambda batch: batch.column(0).is_valid())

    def _interrupted(self) -> TaskInterrupted:
        return TaskInterrupted(f"Another process rewrote {self.table.path} meanwhile.", "Run the same command again.")


@dataclass(frozen=True, slots=True)
class _RescuedBySpark:
    """Those of a table that Spark rewrites."""

    spark: SparkSession
    storage: Storage
    table: GameTable

    def any_held(self) -> bool:
        return bool(self._held().limit(1).count())

    def schema_ids(self) -> list[int]:
        ids = self._rows().select("_schema_id").where("_schema_id IS NOT NULL").distinct()
        return [row[0] for row in ids.collect()]

    def fill(self, columns: Struct, writers: tuple[WriterSchema, ...]) -> tuple[int, int]:
        everything = Struct((*columns, *SILVER_ORIGIN))
        held = self._held().select(*(F.col(quoted(column.name)) for column in everything))
        filled = map_in_arrow(held, to_filled(columns, writers), spark_struct(Struct((*everything, _CHANGED))))
        changed, left = F.sum(F.col(_CHANGED.name).cast("long")), F.count(_RESCUED)
        counts = filled.agg(changed.alias("changed"), left.alias("left")).first()
        assert counts is not None
        if counts.changed:
            # read again inside the commit, which sees to it that no other came between
            replace_rows(filled.drop(_CHANGED.name), self.table.path, replaceWhere=_HELD)
        return counts.changed or 0, counts.left

    def _held(self) -> DataFrame:
        return self._rows().where(_HELD)

    def _rows(self) -> DataFrame:
        session = new_session(self.spark)
        session.conf.set(_CHECK, "false")
        session.conf.set("spark.sql.session.timeZone", "UTC")
        return session.read.format("delta").load(self.table.path)


def _held(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.filter(batch.column(_RESCUED).is_valid())


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
