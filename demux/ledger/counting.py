"""Records counted by where they stand, as Spark does it: frames in, frames out; pure.

One shuffle by record, then sums: memory does not depend on how many records there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from enum import Enum

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from demux.causes import Stage
from demux.ledger.account import Grain, Places, Taken
from demux.removed import Reason

PLACES = tuple(field.name for field in fields(Places))
TAKEN = tuple(field.name for field in fields(Taken))
# sorts of one game's differences that spread over tasks
_SALTS = 64
# a source table with positions may hold one as often as it likes
_POSITION = ("topic", "partition", "offset")
_OF_TABLE = "delta"
_LOG = r"^(.*)/[0-9]+/[0-9]+$"


class Which(Enum):
    """Which of two readings of a table rows belong to; what did not change in between belongs to both."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


def of_bronze(bronze: DataFrame, bounds: DataFrame) -> DataFrame:
    """Return bronze's rows to be counted for `Places`; `bounds` has each game's last batch that it has read whole."""
    rows = bronze.select(
        F.col("game_name").alias("game"), F.col("record_id").alias("id"), F.col("batch_id").alias("batch")
    )
    joined = rows.join(F.broadcast(bounds), "game", "left")
    due = F.coalesce(F.col("batch") <= F.col("bound"), F.lit(False)).cast("long")
    return joined.select("game", "id", "batch", *_measures(PLACES, bronze=F.lit(1), due=due))


def of_silver(silver: DataFrame) -> DataFrame:
    """Return rows of silver (game, id) to be counted for `Places`."""
    return silver.select("game", "id", _no_batch(), *_measures(PLACES, silver=F.lit(1)))


def of_quarantine(quarantine: DataFrame, which: Which) -> DataFrame:
    """Return the rows of a reading of quarantine to be counted for `Places`."""
    rows = quarantine.where(F.col("stage") == Stage.SILVER.value)
    first, second = F.lit(int(which is not Which.SECOND)), F.lit(int(which is not Which.FIRST))
    measures = _measures(PLACES, quarantine=first, quarantine_now=second)
    return rows.select(F.col("game_name").alias("game"), F.col("record_id").alias("id"), _no_batch(), *measures)


def of_dropped(dropped: DataFrame) -> DataFrame:
    """Return the dropped rows to be counted for `Places`."""
    rows = dropped.where(F.col("stage") == Stage.SILVER.value)
    measures = _measures(PLACES, dropped=F.lit(1))
    return rows.select(F.col("game_name").alias("game"), F.col("record_id").alias("id"), _no_batch(), *measures)


def of_retired(retired: DataFrame) -> DataFrame:
    """Return the retired rows that bronze has no more, to be counted for `Places`: their game had read them."""
    measures = _measures(PLACES, bronze=F.lit(1), due=F.lit(1), retired=F.lit(1))
    return retired.select(
        F.col("game_name").alias("game"), F.col("record_id").alias("id"), F.col("batch_id").alias("batch"), *measures
    )


def of_forgotten(removed: DataFrame) -> DataFrame:
    """Return the forgotten rows to be counted for `Places`: as dropped, while bronze still has them."""
    rows = removed.where(F.col("reason") == Reason.FORGOTTEN.value)
    measures = _measures(PLACES, dropped=F.lit(1))
    return rows.select(F.col("game_name").alias("game"), F.col("record_id").alias("id"), _no_batch(), *measures)


def places(rows: DataFrame) -> DataFrame:
    """Return one row for each record of each game: game, id, batch, and the columns of `Places`.

    A record that is nowhere any more, being forgotten, is left out.
    """
    sums = (F.sum(name).alias(name) for name in PLACES)
    is_somewhere = F.col("bronze") + F.col("silver") + F.col("quarantine") + F.col("quarantine_now") > 0
    return rows.groupBy("game", "id").agg(F.min("batch").alias("batch"), *sums).where(is_somewhere)


def taken_in_bronze(bronze: DataFrame) -> DataFrame:
    """Return bronze's rows to be counted for `Taken`."""
    return _taken(bronze, F.col("game_name"), F.col("batch_id"), bronze=F.lit(1))


def taken_in_quarantine(quarantine: DataFrame) -> DataFrame:
    """Return the rows of quarantine at stage bronze to be counted for `Taken`."""
    refused = quarantine.where(F.col("stage") == Stage.BRONZE.value)
    # a name that was refused is not a game
    return _taken(refused, F.lit(None).cast("string"), F.col("batch_id"), quarantine=F.lit(1))


def taken_and_dropped(dropped: DataFrame) -> DataFrame:
    """Return the rows dropped at stage bronze to be counted for `Taken`."""
    refused = dropped.where(F.col("stage") == Stage.BRONZE.value)
    return _taken(refused, F.lit(None).cast("string"), F.lit(None).cast("long"), dropped=F.lit(1))


def taken_and_retired(retired: DataFrame) -> DataFrame:
    """Return the retired rows that bronze has no more, to be counted for `Taken`."""
    return _taken(retired, F.col("game_name"), F.col("batch_id"), bronze=F.lit(1), retired=F.lit(1))


def taken_and_forgotten(removed: DataFrame) -> DataFrame:
    """Return the forgotten rows to be counted for `Taken`."""
    rows = removed.where(F.col("reason") == Reason.FORGOTTEN.value)
    return _taken(rows, F.col("game_name"), F.col("batch_id"), forgotten=F.lit(1))


def of_source(source: DataFrame, which: Which) -> DataFrame:
    """Return the rows with a position of a reading of the source table, to be counted for `Taken`."""
    first, second = F.lit(int(which is not Which.SECOND)), F.lit(int(which is not Which.FIRST))
    measures = _measures(TAKEN, before=first, now=second)
    none = F.lit(None).cast("string")
    return with_ids(source).where("id IS NOT NULL").select(none.alias("game"), "id", _no_batch(), *measures)


def with_ids(source: DataFrame) -> DataFrame:
    """Return the ids that records of a source table have (`bronze_ingest.rows`); NULL for those that get a number."""
    has = {name.lower(): name for name in source.columns}
    if not all(name in has for name in _POSITION):
        return source.select(F.lit(None).cast("string").alias("id"))
    types = {"topic": "string", "partition": "int", "offset": "bigint"}
    topic, partition, offset = (source[has[name]].cast(types[name]).cast("string") for name in _POSITION)
    return source.select(F.concat(topic, F.lit("/"), partition, F.lit("/"), offset).alias("id"))


def takings(rows: DataFrame) -> DataFrame:
    """Return one row for each record of the source: game, id, batch, and the columns of `Taken`."""
    sums = (F.sum(name).alias(name) for name in TAKEN if name != "is_unique")
    unique = F.max("is_unique").alias("is_unique")
    return rows.groupBy("id").agg(F.max("game").alias("game"), F.min("batch").alias("batch"), *sums, unique)


def is_numbered() -> SparkColumn:
    """Return whether a row of bronze or quarantine has a number of ours for an id, its table having no position."""
    return (F.col("origin") == _OF_TABLE) & ~_has_position()


def tallied(records: DataFrame, measures: Sequence[str], grain: Grain) -> DataFrame:
    """Return one row for all records in the same places: game, the measures, records, first_batch, last_batch."""
    keys = ["game", *measures] if grain is Grain.GAME else ["game", *measures, "batch"]
    batch = F.col("batch")
    return records.groupBy(*keys).agg(
        F.count(F.lit(1)).alias("records"), F.min(batch).alias("first_batch"), F.max(batch).alias("last_batch")
    )


def first_examples(records: DataFrame, wrong: DataFrame, measures: Sequence[str], most: int) -> DataFrame:
    """Return the first records of each game that stand in wrong places: kind, game, id, batch.

    Args:
        records: of `places` or `takings`.
        wrong: the wrong places: game, the measures, kind.
        measures: the names of the columns that say where a record stands.
        most: of each game and kind.
    """
    same = [F.col(f"r.{name}").eqNullSafe(F.col(f"w.{name}")) for name in ("game", *measures)]
    found = records.alias("r").join(F.broadcast(wrong.alias("w")), same).select("w.kind", "r.game", "r.id", "r.batch")
    # one game may have all of the differences: its order is found in two steps
    salted = found.withColumn("salt", F.pmod(F.xxhash64("id"), F.lit(_SALTS)))
    return _first(_first(salted, ["kind", "game", "salt"], most).drop("salt"), ["kind", "game"], most)


def kafka_offsets(taken: DataFrame, ends: DataFrame) -> DataFrame:
    """Return the offsets of Kafka's records in bronze or quarantine, before these ends: log, partition, offset."""
    log = F.regexp_extract("record_id", _LOG, 1).alias("log")
    offsets = taken.where(F.col("origin") == "kafka").select(log, "partition", "offset")
    ended = offsets.join(F.broadcast(ends), ["log", "partition"], "left")
    return ended.where(F.col("end").isNull() | (F.col("offset") < F.col("end"))).drop("end")


def seen(offsets: DataFrame) -> DataFrame:
    """Return, by log and partition, the first and last offset, and how many different ones there are."""
    distinct = F.countDistinct("offset").alias("offsets")
    return offsets.groupBy("log", "partition").agg(
        F.min("offset").alias("first"), F.max("offset").alias("last"), distinct
    )


def inner_holes(offsets: DataFrame, most: int) -> DataFrame:
    """Return, by log and partition, the first ranges between offsets that are not there: first, end."""
    part = Window.partitionBy("log", "partition").orderBy("offset")
    gaps = offsets.withColumn("first", F.lag("offset").over(part) + 1).where(F.col("offset") > F.col("first"))
    ranked = gaps.withColumn("rank", F.row_number().over(Window.partitionBy("log", "partition").orderBy("first")))
    return ranked.where(F.col("rank") <= most).select("log", "partition", "first", F.col("offset").alias("end"))


def _taken(rows: DataFrame, game: SparkColumn, batch: SparkColumn, **measures: SparkColumn) -> DataFrame:
    unique = ~((F.col("origin") == _OF_TABLE) & _has_position())
    columns = _measures(TAKEN, is_unique=unique.cast("long"), **measures)
    return rows.select(game.alias("game"), F.col("record_id").alias("id"), batch.alias("batch"), *columns)


def _has_position() -> SparkColumn:
    return F.col("topic").isNotNull() & F.col("partition").isNotNull() & F.col("offset").isNotNull()


def _measures(names: Iterable[str], **given: SparkColumn) -> list[SparkColumn]:
    return [given.get(name, F.lit(0)).cast("long").alias(name) for name in names]


def _no_batch() -> SparkColumn:
    return F.lit(None).cast("long").alias("batch")


def _first(rows: DataFrame, keys: list[str], most: int) -> DataFrame:
    order = Window.partitionBy(*keys).orderBy(F.col("batch").asc_nulls_last(), "id")
    return rows.withColumn("rank", F.row_number().over(order)).where(F.col("rank") <= most).drop("rank")
