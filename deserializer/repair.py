"""Repairs of one game: decode its quarantined rows again, or make its table again from bronze."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.arrow_map import batches_within_memory, map_in_arrow
from demux.causes import Cause, Stage
from demux.commits import REFUSED, Rows
from demux.errors import GameUnknown
from demux.names import names_of
from demux.reports import GameReport
from demux.schema_store import SchemaStore
from demux.spark_types import spark_struct
from demux.storage import remove_folder, table_exists
from demux.tables import SILVER_ORIGIN, Layout
from deserializer.decisions import Decisions
from deserializer.decode import EXAMINED, INPUT, REF, to_examined
from deserializer.fleet.takeover import release
from deserializer.run import deserialize
from deserializer.sink import fitted, quarantined, silver_rows
from deserializer.source import contents_of


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What a replay did, in rows: tried, and now in silver."""

    game: str
    tried: int
    decoded: int


def games_in_quarantine(spark: SparkSession, layout: Layout, causes: Iterable[Cause]) -> tuple[str, ...]:
    """Return the games that have rows of these causes in quarantine at stage silver, by name."""
    if not table_exists(spark, layout.quarantine):
        return ()
    rows = _quarantined(spark, layout, causes).select("game_name").distinct().collect()
    return tuple(sorted(row.game_name for row in rows))


def replay(
    spark: SparkSession, layout: Layout, schemas: SchemaStore, game: str, causes: tuple[Cause, ...]
) -> ReplayReport:
    """Return what became of the game's quarantined rows: what decodes now moves to silver, exactly once.

    A second call, also after a crash in between, finds in silver what the first one wrote and only takes it out of
    quarantine. Rows that still do not decode stay, with the cause and sentence of today.

    Raises:
        RegistryUnavailable: a schema is not known here and the registry does not answer; nothing was written.
    """
    table = layout.silver(names_of(game).key)
    mine = _quarantined(spark, layout, causes).where(F.col("game_name") == game)
    rows = mine.withColumnRenamed("bytes", "payload").select(*(column.name for column in INPUT))
    contents = contents_of(rows)
    decisions = fitted(spark, table, schemas.lookup(contents.refs, game))
    with batches_within_memory(rows, contents.sizes):
        decoded = silver_rows(rows, decisions).where(~F.col(REFUSED)).drop(REFUSED)
        if table_exists(spark, table):
            written = spark.read.format("delta").load(table).select("_record_id")
            decoded = decoded.join(written, "_record_id", "left_anti").select(*decoded.columns)
        tried = rows.count()
        decoded.write.format("delta").mode("append").save(table)
        left = _settle(spark, layout, rows, decisions, game)
    return ReplayReport(game, tried, tried - left)


def rebuild(spark: SparkSession, layout: Layout, schemas: SchemaStore, game: str) -> GameReport:
    """Return what was decoded into the game's emptied table, from the beginning of bronze.

    Safe to call again after a crash; a run after a crash is refused with `CheckpointLost`, or fills the emptied table.

    Raises:
        GameUnknown: bronze has no row of the game; nothing was touched.
    """
    require_game(spark, layout, game)
    names = names_of(game)
    # before anything is lost: from here on nobody goes on from where the table was
    remove_folder(spark, layout.silver_checkpoint(names.key))
    release(spark, layout, game)
    table = layout.silver(names.key)
    if table_exists(spark, table):
        # emptied, not removed: its history stays, and readers see one change
        nothing = spark.createDataFrame([], spark_struct(SILVER_ORIGIN))
        nothing.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(table)
    if table_exists(spark, layout.quarantine):
        DeltaTable.forPath(spark, layout.quarantine).delete(quarantined(game))
    return deserialize(spark, layout, schemas, game)


def require_game(spark: SparkSession, layout: Layout, game: str) -> None:
    """Check that bronze has rows of the game.

    Raises:
        GameUnknown: it has none.
    """
    if table_exists(spark, layout.bronze):
        rows = spark.read.format("delta").load(layout.bronze).where(F.col("game_name") == game)
        if rows.limit(1).count():
            return
    raise GameUnknown(
        f"Bronze has no rows of a game {shlex.quote(game)}.",
        "See `demux status` for the games; names are exact, upper and lower case included.",
        game=game,
    )


def _quarantined(spark: SparkSession, layout: Layout, causes: Iterable[Cause]) -> DataFrame:
    rows = spark.read.format("delta").load(layout.quarantine).where(F.col("stage") == Stage.SILVER.value)
    return rows.where(F.col("cause").isin([cause.value for cause in causes]))


def _settle(spark: SparkSession, layout: Layout, rows: DataFrame, decisions: Decisions, game: str) -> int:
    """Take the decoded rows out of quarantine, say of the others why they stay, and return how many stay."""
    examined = map_in_arrow(rows, to_examined(decisions, Rows.ALL), spark_struct(EXAMINED))
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
                f"q.record_id = v.record_id AND {same_ref} AND q.bytes <=> v.payload AND {quarantined(game)}",
            )
            .whenMatchedDelete("v.cause IS NULL")
            .whenMatchedUpdate(set={"cause": "v.cause", "sentence": "v.sentence"})
            .execute()
        )
    finally:
        verdicts.unpersist()
    return left
