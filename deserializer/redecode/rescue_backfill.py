"""What was kept in `_rescued` put into the columns that the table has by now; the rest stays there."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from demux.core.catalog.spark_tables import read_table
from demux.core.columns.arrow import arrow_fields
from demux.core.columns.spark import spark_struct
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.bronze_games import position_id
from demux.core.delta.commit import Replacement
from demux.core.delta.log import file_path
from demux.core.delta.parquet_writer import remove_files
from demux.core.delta.rewrite_rows import open_to_replace, replace_beside, rewritten
from demux.core.delta.scan import file_rows, sizes_of
from demux.core.errors import ConcurrentChange, GameUnknown
from demux.core.extras import deltalake
from demux.core.names import names_of, quote_identifier
from demux.core.protobuf.decode.reference_parser import Row
from demux.core.protobuf.decode.rescue_fill import filling_of
from demux.core.protobuf.schema.message_selection import has_message
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.root.layout import Layout
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.store import SchemaStore
from demux.core.settings.settings import Sink
from demux.core.spark.map_in_arrow import ArrowFunction, Batches, map_in_arrow
from demux.core.storage.files import Storage
from demux.core.storage.table_address import TableAddress
from demux.core.tables import SILVER_ORIGIN, SILVER_RESERVED
from deserializer.decoders.schema_decision import SchemaLookup, WriterSchema
from deserializer.silver.backend import tables_of
from deserializer.silver.file_table import SilverTable
from deserializer.silver.fit import fit
from deserializer.silver.rewrite import MOST_BYTES, replace_rows, replacing_session

_RESCUED = "_rescued"
_HELD = f"{_RESCUED} IS NOT NULL"
# not a column of any table
_CHANGED = Column("_changed", Primitive.BOOLEAN)
_LOOKED_AT = Struct(tuple(one for one in SILVER_ORIGIN if one.name in {"_schema_id", _RESCUED}))


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
        ConcurrentChange: another process rewrote the table meanwhile; nothing was written.
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
    opened = open_to_replace(layout.storage, path) if isinstance(table, SilverTable) else None
    if opened is not None and sum(sizes_of(opened).values()) > MOST_BYTES:
        opened = None
    sizes, schema_ids = (
        _held_by_spark(spark, layout.storage.address(path))
        if opened is None
        else _held_by_files(layout.storage, path, opened)
    )
    if not sizes:
        return BackfillReport(game, 0, 0)
    answers = {
        ref: _of_message(answer, table.message)
        for ref, answer in schemas.lookup([SchemaRef(one) for one in schema_ids], game).items()
    }
    decisions = fit(spark, layout.storage, table, answers, schemas.contract(game))
    columns = decisions.columns
    fill = to_filled(columns, _newest_first(answers, {ref.schema_id: one for ref, one in decisions.writers.items()}))
    if opened is None:
        return BackfillReport(game, *_fill_by_spark(spark, layout.storage.address(path), columns, fill))
    return BackfillReport(game, *_fill_by_files(layout.storage, path, columns, fill))


def _held_by_files(storage: Storage, path: str, table: deltalake.DeltaTable) -> tuple[Mapping[str, int], set[int]]:
    """Return the files that have rows which hold something, with their sizes, and the schema ids of all rows."""
    sizes: dict[str, int] = {}
    schema_ids: set[int] = set()
    for file, size in sizes_of(table).items():
        for batch in file_rows(storage, file_path(path, unquote(file)), size, arrow_fields(_LOOKED_AT)):
            schema_ids.update(one for one in batch.column("_schema_id").unique().to_pylist() if one is not None)
            if batch.column(_RESCUED).null_count < len(batch):
                sizes[file] = size
    return sizes, schema_ids


def _fill_by_files(storage: Storage, path: str, columns: Struct, fill: ArrowFunction) -> tuple[int, int]:
    """Fill the rows in one commit; return how many changed, and how many still hold something."""
    opened = open_to_replace(storage, path)
    sizes = {} if opened is None else _held_by_files(storage, path, opened)[0]
    changed, left = list[int](), list[int]()

    def filled(batch: pa.RecordBatch) -> pa.RecordBatch:
        others = batch.filter(batch.column(_RESCUED).is_null())
        (rows,) = fill(iter([batch.filter(batch.column(_RESCUED).is_valid())]))
        changed.append(pc.sum(rows.column(_CHANGED.name)).as_py() or 0)
        left.append(len(rows) - rows.column(_RESCUED).null_count)
        return pa.concat_batches([others, rows.drop_columns([_CHANGED.name])])

    added = rewritten(storage, path, sizes, Struct((*columns, *SILVER_ORIGIN)), filled)
    if not sum(changed):
        remove_files(storage, path, [file.path for file in added])
    elif opened is None or not replace_beside(storage, opened, path, Replacement("UPDATE", sizes, added)):
        raise ConcurrentChange(f"Another process rewrote {path} meanwhile.", "Run the same command again.")
    return sum(changed), sum(left)


def _held_by_spark(spark: SparkSession, table: TableAddress) -> tuple[Mapping[str, int], set[int]]:
    """Return how many rows hold something, by the table's path; none for none; and the schema ids of all rows."""
    rows = read_table(spark, table)
    found = rows.agg(F.collect_set("_schema_id").alias("ids"), F.count(_RESCUED).alias("held")).first()
    assert found is not None
    return {table.path: found.held} if found.held else {}, set(found.ids)


def _fill_by_spark(spark: SparkSession, table: TableAddress, columns: Struct, fill: ArrowFunction) -> tuple[int, int]:
    """Fill the rows in one commit; return how many changed, and how many still hold something."""
    everything = Struct((*columns, *SILVER_ORIGIN))
    rows = read_table(replacing_session(spark), table).where(_HELD)
    rows = rows.select(*(F.col(quote_identifier(column.name)) for column in everything))
    filled = map_in_arrow(rows, fill, spark_struct(Struct((*everything, _CHANGED))))
    changed, left = F.sum(F.col(_CHANGED.name).cast("long")), F.count(_RESCUED)
    counts = filled.agg(changed.alias("changed"), left.alias("left")).first()
    assert counts is not None
    if counts.changed:
        # read again inside the commit, which sees to it that no other came between
        replace_rows(filled.drop(_CHANGED.name), table, replaceWhere=_HELD)
    return counts.changed or 0, counts.left


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
