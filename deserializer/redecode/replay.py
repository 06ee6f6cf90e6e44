"""Repairs of one game: decode its quarantined rows again, or make its table again from bronze."""

from __future__ import annotations

import shlex
import uuid
from dataclasses import dataclass, replace

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from demux.core.causes import Stage
from demux.core.columns.map_in_arrow import batches_within_memory, map_in_arrow
from demux.core.columns.spark import spark_struct
from demux.core.delta.batch_commit import REFUSED, RowSelection
from demux.core.errors import GameUnknown
from demux.core.names import names_of
from demux.core.reports import GameReport
from demux.core.root.layout import Layout
from demux.core.schemas.store import SchemaStore
from demux.core.settings.settings import Decoder
from demux.core.storage import table_exists
from demux.operations.quarantine.drop import chosen, finish_drop
from demux.operations.quarantine.filter import QuarantineFilter
from deserializer.decoders.arrow import EXAMINED, INPUT, REF, to_examined
from deserializer.decoders.batch_contents import contents_of
from deserializer.decoders.schema_decision import Decisions
from deserializer.redecode.rebuild import rebuilt
from deserializer.redecode.replace_rows import Redecoder
from deserializer.silver.evolve import silver_rows
from deserializer.silver.fit import fit
from deserializer.silver.spark_table import SilverBySpark


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What a replay did, in rows: tried, and now in silver."""

    game: str
    tried: int
    decoded: int


def games_in_quarantine(spark: SparkSession, layout: Layout, choice: QuarantineFilter) -> tuple[str, ...]:
    """Return the games that have such rows in quarantine at stage silver, by name."""
    if not table_exists(spark, layout.quarantine):
        return ()
    rows = _quarantined(spark, layout, choice).select("game_name").distinct().collect()
    return tuple(sorted(row.game_name for row in rows))


def replay(
    spark: SparkSession, layout: Layout, schemas: SchemaStore, game: str, choice: QuarantineFilter
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

    Raises:
        RegistryUnavailable: a schema is not known here and the registry does not answer; nothing was written.
    """
    mine = replace(choice, game=game)
    finish_drop(spark, layout, mine)
    table = layout.silver(names_of(game).key)
    found = _quarantined(spark, layout, mine)
    rows = found.withColumnRenamed("bytes", "payload").select(*(column.name for column in INPUT))
    contents = contents_of(rows)
    now, answers = SilverBySpark(spark, table), schemas.lookup(contents.refs, game)
    decisions = fit(spark, now, answers, schemas.contract(game), contents.refs)
    with batches_within_memory(rows, contents.sizes):
        decoded = silver_rows(rows, decisions).where(~F.col(REFUSED)).drop(REFUSED)
        if table_exists(spark, table):
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
    accept_loss: bool = False,
) -> GameReport:
    """Return what was decoded again of the game, as `rebuilding.rebuilt`, with an id of this call's own.

    Raises:
        GameUnknown: bronze has no row of the game; nothing was touched.
    """
    require_game(spark, layout, game)
    request = f"demux-rebuild/{uuid.uuid4()}"
    return rebuilt(Redecoder(spark, layout, schemas, decoder), game, request, accept_loss=accept_loss)


def require_game(spark: SparkSession, layout: Layout, game: str) -> None:
    """Check that bronze has rows of the game.

    Raises:
        GameUnknown: it has none.
    """
    if table_exists(spark, layout.bronze):
        rows = spark.read.format("delta").load(layout.bronze).where(F.col("game_name") == game)
        if rows.limit(1).count():
            return
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
    if table_exists(spark, layout.bronze):
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
