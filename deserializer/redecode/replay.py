"""Repairs of one game: decode its quarantined rows again, or make its table again from bronze."""

from __future__ import annotations

import shlex
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from demux.core.causes import Stage
from demux.core.columns.arrow import arrow_fields
from demux.core.columns.spark import columns_in_json, spark_struct
from demux.core.columns.types import Struct
from demux.core.delta.batch_commit import REFUSED, RowSelection
from demux.core.delta.bronze_games import games_in_bronze
from demux.core.delta.commit import Replacement
from demux.core.delta.log import file_path
from demux.core.delta.parquet_writer import TableFile, TableWriter, schema_json
from demux.core.delta.rewrite_rows import open_to_replace, replace_beside
from demux.core.delta.scan import file_rows, sizes_of
from demux.core.errors import GameUnknown, TableUnsuited, TaskInterrupted
from demux.core.extras import deltalake
from demux.core.names import names_of
from demux.core.reports import GameReport
from demux.core.root.layout import Layout
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.store import SchemaStore
from demux.core.settings.settings import Decoder, Sink
from demux.core.spark.map_in_arrow import batches_within_memory, map_in_arrow
from demux.core.storage.files import Storage
from demux.core.tables import QUARANTINE, SILVER_ORIGIN
from demux.operations.quarantine.drop import chosen, droppable, finish_drop
from demux.operations.quarantine.filter import QuarantineFilter
from deserializer.decoders.arrow import EXAMINED, INPUT, REF, SchemaBatch, by_ref, parts_of, to_examined
from deserializer.decoders.batch_contents import contents_of
from deserializer.decoders.schema_decision import Decisions
from deserializer.fleet.worker import good_rows
from deserializer.redecode.rebuild import rebuilt
from deserializer.redecode.replace_rows import Redecoder
from deserializer.silver.backend import tables_of
from deserializer.silver.evolve import silver_rows
from deserializer.silver.file_table import SilverTable
from deserializer.silver.fit import fit
from deserializer.silver.spark_table import SilverBySpark

# of quarantine, which one process decodes
_MOST_BYTES = 256 * 2**20
# the application whose transactions number the replays of a table
_REPLAYS = "demux/replay"
_CHOICE = {"stage", "cause", "game_name", "record_id", "quarantined_at"}
_CHOSEN_BY = Struct(tuple(c for c in QUARANTINE if c.name in _CHOICE | {column.name for column in REF}))


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What a replay did, in rows: tried, and now in silver."""

    game: str
    tried: int
    decoded: int


def games_in_quarantine(spark: SparkSession, layout: Layout, choice: QuarantineFilter) -> tuple[str, ...]:
    """Return the games that have such rows in quarantine at stage silver, by name."""
    found = droppable(spark, layout, replace(choice, stage=Stage.SILVER))
    return tuple(sorted({one.game for one in found if one.game is not None}))


def replay(
    spark: SparkSession,
    layout: Layout,
    schemas: SchemaStore,
    game: str,
    choice: QuarantineFilter,
    sink: Sink = Sink.AUTO,
) -> ReplayReport:
    """Return what became of the game's quarantined rows: what decodes now moves to silver, exactly once.

    A second call, also after a crash in between, finds in silver what the first one wrote and only takes it out of
    quarantine. Rows that still do not decode stay, with the cause and sentence of today.

    Args:
        spark: the session.
        layout: where the tables are.
        schemas: the schemas in use.
        game: the exact game name.
        choice: which of its rows.
        sink: who is to write silver.

    Raises:
        RegistryUnavailable: a schema is not known here and the registry does not answer; nothing was written.
    """
    mine = replace(choice, game=game, stage=Stage.SILVER)
    finish_drop(spark, layout, mine)
    report = _replay_by_files(spark, layout, schemas, game, mine, sink)
    return _replay_by_spark(spark, layout, schemas, game, mine) if report is None else report


def _replay_by_files(
    spark: SparkSession, layout: Layout, schemas: SchemaStore, game: str, mine: QuarantineFilter, sink: Sink
) -> ReplayReport | None:
    """Return what became of the rows; None where they are left to Spark.

    It does what does not fit into one process, tables that only it writes, and records of which silver has some: a
    replay before this one died, or their source holds them twice.
    """
    storage, path = layout.storage, layout.quarantine
    table = open_to_replace(storage, path)
    if table is None or not tables_of(spark, layout, "", sink).takes_files:
        return None
    sizes: dict[str, int] = {}
    ids: list[pa.Array] = []
    refs: Counter[SchemaRef] = Counter()
    for file, size in sizes_of(table).items():
        for rows in file_rows(storage, file_path(path, unquote(file)), size, arrow_fields(_CHOSEN_BY)):
            chosen = rows.filter(mine.among(rows))
            if len(chosen):
                sizes[file] = size
                ids.append(chosen.column("record_id"))
                refs.update({ref: len(rows) for ref, rows in by_ref(chosen)})
    if not refs:
        return ReplayReport(game, 0, 0)
    silver = SilverTable.at(storage, layout.silver(names_of(game).key))
    try:
        silver.require_suited()
    except TableUnsuited:
        return None
    if sum(sizes.values()) > _MOST_BYTES or silver.ids_among(pa.chunked_array(ids, pa.string())):
        return None
    decisions = fit(spark, storage, silver, schemas.lookup(refs, game), schemas.contract(game), refs)
    good, left = _decoded(storage, sizes, table, path, silver.path, decisions, mine)
    decoded = sum(file.rows for file in good)
    if good:
        silver.append(good, _REPLAYS, (silver.transaction(_REPLAYS) or 0) + 1)
    if not replace_beside(storage, table, path, Replacement("UPDATE", sizes, left)):
        raise TaskInterrupted(f"Another process wrote files of {path} again meanwhile.", "Run the same command again.")
    return ReplayReport(game, sum(refs.values()), decoded)


def _decoded(
    storage: Storage,
    sizes: Mapping[str, int],
    table: deltalake.DeltaTable,
    path: str,
    silver: str,
    decisions: Decisions,
    mine: QuarantineFilter,
) -> tuple[list[TableFile], list[TableFile]]:
    """Return files for silver, with what decodes, and for quarantine: the other rows of these files of it."""
    now = datetime.now(timezone.utc)
    columns, everything = Struct((*decisions.columns, *SILVER_ORIGIN)), columns_in_json(schema_json(table))
    with TableWriter(storage, silver, columns) as good, TableWriter(storage, path, everything) as left:
        for file, size in sizes.items():
            for rows in file_rows(storage, file_path(path, unquote(file)), size, arrow_fields(everything)):
                is_mine = mine.among(rows)
                left.add(rows.filter(pc.invert(is_mine)))
                for _, chosen in by_ref(rows.filter(is_mine)):
                    for part in parts_of(iter([_input(chosen)]), decisions):
                        if part.good:
                            good.add(good_rows(part, columns, now))
                        left.add(_still_bad(chosen, part))
        return good.close(), left.close()


def _input(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of quarantine in the columns of `INPUT`."""
    names = [column.name for column in INPUT]
    return pa.RecordBatch.from_arrays([rows.column("bytes" if n == "payload" else n) for n in names], names=names)


def _still_bad(rows: pa.RecordBatch, part: SchemaBatch) -> pa.RecordBatch:
    """Return those of the rows of quarantine that do not decode, with the cause and sentence of today."""
    bad = rows.take(pa.array([row for row, _ in part.bad], pa.int64()))
    sentences = pa.array([sentence for _, sentence in part.bad], pa.string())
    for name, values in (("cause", pa.array([part.cause] * len(bad), pa.string())), ("sentence", sentences)):
        bad = bad.set_column(bad.schema.get_field_index(name), name, values)
    return bad


def _replay_by_spark(
    spark: SparkSession, layout: Layout, schemas: SchemaStore, game: str, mine: QuarantineFilter
) -> ReplayReport:
    table = layout.silver(names_of(game).key)
    found = _quarantined(spark, layout, mine)
    rows = found.withColumnRenamed("bytes", "payload").select(*(column.name for column in INPUT))
    contents = contents_of(rows)
    now, answers = SilverBySpark(spark, layout.storage, table), schemas.lookup(contents.refs, game)
    decisions = fit(spark, layout.storage, now, answers, schemas.contract(game), contents.refs)
    with batches_within_memory(rows, contents.sizes):
        decoded = silver_rows(rows, decisions).where(~F.col(REFUSED)).drop(REFUSED)
        if layout.storage.table_exists(table):
            decoded = _not_written(spark, layout, game, decoded, rows, table)
        tried = rows.count()
        decoded.write.format("delta").mode("append").save(table)
        left = _settle(spark, layout, rows, decisions, mine)
    return ReplayReport(game, tried, tried - left)


def rebuild(
    spark: SparkSession,
    layout: Layout,
    schemas: SchemaStore,
    game: str,
    *,
    decoder: Decoder = Decoder.AUTO,
    sink: Sink = Sink.AUTO,
    accept_loss: bool = False,
) -> GameReport:
    """Return what was decoded again of the game, as `rebuilding.rebuilt`, with an id of this call's own.

    Raises:
        GameUnknown: bronze has no row of the game; nothing was touched.
    """
    require_game(spark, layout, game)
    request = f"demux-rebuild/{uuid.uuid4()}"
    return rebuilt(Redecoder(spark, layout, schemas, decoder), game, request, sink=sink, accept_loss=accept_loss)


def require_game(spark: SparkSession | None, layout: Layout, game: str) -> None:
    """Check that bronze has rows of the game.

    Raises:
        GameUnknown: it has none.
    """
    if game not in games_in_bronze(spark, layout, {game}):
        raise no_rows_of(game)


def no_rows_of(game: str) -> GameUnknown:
    """Return the error of a game that bronze has no rows of."""
    return GameUnknown(
        f"Bronze has no rows of a game {shlex.quote(game)}.",
        "See `demux status` for the games; names are exact, upper and lower case included.",
        game=game,
    )


def _quarantined(spark: SparkSession, layout: Layout, choice: QuarantineFilter) -> DataFrame:
    return chosen(spark, layout, replace(choice, stage=Stage.SILVER))


def _not_written(
    spark: SparkSession, layout: Layout, game: str, decoded: DataFrame, rows: DataFrame, table: str
) -> DataFrame:
    """Return the decoded rows that a replay before this one did not write, should it have died after that.

    A source may hold a record twice, and one of the two may be in silver since long: so many rows of a record are
    still to be written as bronze has more of it than silver. Bronze's older rows may have been deleted for good.
    """
    limits = _copies(rows, "record_id", "_here")
    ids = limits.select("_record_id")
    silver = spark.read.format("delta").load(table).join(ids, "_record_id", "left_semi")
    limits = limits.join(_copies(silver, "_record_id", "_written"), "_record_id", "left").fillna(0, "_written")
    room = F.col("_here")
    if layout.storage.table_exists(layout.bronze):
        bronze = spark.read.format("delta").load(layout.bronze).where(F.col("game_name") == game)
        bronze = bronze.withColumnRenamed("record_id", "_record_id").join(ids, "_record_id", "left_semi")
        limits = limits.join(_copies(bronze, "_record_id", "_came"), "_record_id", "left").fillna(0, "_came")
        room = F.greatest("_here", "_came")
    limits = limits.select("_record_id", (room - F.col("_written")).alias("_room"))
    copies = Window.partitionBy("_record_id").orderBy("_schema_id")
    ranked = decoded.join(limits, "_record_id").withColumn("_copy", F.row_number().over(copies))
    return ranked.where(F.col("_copy") <= F.col("_room")).select(*decoded.columns)


def _copies(rows: DataFrame, record_id: str, name: str) -> DataFrame:
    """Return how often each record is there: _record_id, and the number by this name."""
    return rows.groupBy(F.col(record_id).alias("_record_id")).agg(F.count(F.lit(1)).alias(name))


def _settle(spark: SparkSession, layout: Layout, rows: DataFrame, decisions: Decisions, mine: QuarantineFilter) -> int:
    """Take the decoded rows out of quarantine, say of the others why they stay, and return how many stay."""
    examined = map_in_arrow(rows, to_examined(decisions, RowSelection.ALL), spark_struct(EXAMINED))
    row = ["record_id", *(column.name for column in REF), "payload"]
    verdicts = examined.select(*row, "cause", "sentence").cache()
    same_ref = " AND ".join(f"q.{column.name} <=> v.{column.name}" for column in REF)
    try:
        left = verdicts.where(F.col("cause").isNotNull()).count()
        (
            DeltaTable.forPath(spark, layout.quarantine)
            .alias("q")
            .merge(
                # a source may hold a record twice: the same row has the same verdict
                verdicts.dropDuplicates(row).alias("v"),
                f"q.record_id = v.record_id AND {same_ref} AND q.bytes <=> v.payload AND {mine.sql('q.')}",
            )
            .whenMatchedDelete("v.cause IS NULL")
            .whenMatchedUpdate(set={"cause": "v.cause", "sentence": "v.sentence"})
            .execute()
        )
    finally:
        verdicts.unpersist()
    return left
