"""Bronze again from its source, and with it everything that was made from bronze."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bronze_ingest.kafka.lost_offsets import TopicState
from bronze_ingest.run import ingest
from bronze_ingest.source import check_source
from bronze_ingest.unwrap import bronze_columns, wrapper_format
from demux.core.catalog.spark_tables import read_table, save_table
from demux.core.causes import RemovalReason, Stage
from demux.core.columns.spark import spark_struct
from demux.core.columns.types import Struct
from demux.core.delta.app_transactions import Batch, transaction_of
from demux.core.delta.bronze_games import position_id
from demux.core.delta.log import newest_version
from demux.core.errors import ForgottenWouldReturn, OffsetsLost
from demux.core.reports import IngestReport
from demux.core.root.layout import Layout, layout_of
from demux.core.settings.settings import Settings
from demux.core.settings.source import CleanUp, SourceKind
from demux.core.storage.files import Storage
from demux.core.streaming.bronze_offset import BronzeOffset
from demux.core.tables import DROPPED, QUARANTINE, REMOVED, ROUNDS, SILVER_ORIGIN
from demux.core.text import count_text

_MAX_SHOWN = 5


def rebuild_bronze(
    spark: SparkSession, settings: Settings, *, accept_gaps: bool = False, accept_return: bool = False
) -> IngestReport:
    """Return what was ingested from the beginning of the source, after all tables below the root were emptied.

    Silver tables are emptied too, and filled again by the next run: their position is behind all that bronze had.
    Safe to call again after a crash; until then a run is refused with `CheckpointLost`.

    Raises:
        SourceMissing: there is no source to build from; nothing was touched.
        OffsetsLost: bronze has records that the source has no more, and `accept_gaps` is off; nothing was touched.
        ForgottenWouldReturn: records were forgotten on request, and `accept_return` is off; nothing was touched.
    """
    layout = layout_of(settings)
    check_source(spark, settings)
    if not accept_return:
        _require_none_forgotten(spark, layout)
    if not accept_gaps:
        _require_all(spark, settings, layout)
    layout.storage.delete_folder(layout.bronze_checkpoint)
    # a table may be gone whose checkpoint is there, and the other way round
    folders = (f"{layout.root}/silver", f"{layout.root}/checkpoints/silver")
    position = _position(spark, layout)
    for key in sorted({key for folder in folders for key in layout.storage.names(folder)}):
        layout.storage.delete_folder(layout.silver_checkpoint(key))
        _empty(spark, layout.storage, layout.silver(key), SILVER_ORIGIN, position=position)
    _empty(spark, layout.storage, layout.rounds, ROUNDS)
    _empty(spark, layout.storage, layout.quarantine, QUARANTINE)
    # what is bad still comes to quarantine again
    _empty(spark, layout.storage, layout.dropped, DROPPED)
    # and what was old, to bronze; so does what was forgotten, which counts as forgotten no more
    _empty(spark, layout.storage, layout.removed, REMOVED)
    _empty(spark, layout.storage, layout.bronze, bronze_columns(wrapper_format(settings)), "game_name")
    return ingest(spark, settings)


def _require_none_forgotten(spark: SparkSession, layout: Layout) -> None:
    """Check that no record was forgotten: a source may have their records still, some with other ids than before."""
    if not layout.storage.table_exists(layout.removed):
        return
    removed = read_table(spark, layout.storage.address(layout.removed))
    forgotten = removed.where(F.col("reason") == RemovalReason.FORGOTTEN.value).select("record_id").distinct().count()
    if forgotten:
        raise ForgottenWouldReturn(
            f"A rebuild from the source may bring back {count_text(forgotten, 'record')} that were forgotten on "
            "request.",
            "Remove them from the source first; `demux rebuild --bronze --accept-return` then takes in what it has, "
            "and `demux forget` must be given once more for persons who are still there.",
            records=forgotten,
        )


def _require_all(spark: SparkSession, settings: Settings, layout: Layout) -> None:
    """Check that the source still has every record that bronze or its quarantine has, as far as can be known."""
    gone = list(_lost(spark, settings, layout))
    if gone:
        raise OffsetsLost(
            f"A rebuild would lose records that the source does not have any more: {'; '.join(gone[:_MAX_SHOWN])}.",
            "Copy the bronze table first; `demux rebuild --bronze --accept-gaps` then continues without them.",
            gone=tuple(gone),
        )


def _lost(spark: SparkSession, settings: Settings, layout: Layout) -> Iterator[str]:
    now: Mapping[str, TopicState] = {}
    if settings.source.kind is SourceKind.KAFKA:
        from bronze_ingest.kafka.topic_metadata import topics_now

        now = topics_now(settings.kafka)
    again = _made_again(spark, layout)
    for row in _positions(spark, layout):
        if row.origin == SourceKind.FILES.value and settings.archive.clean is not CleanUp.KEEP:
            yield f"{row.rows:,} of archived files that were moved or deleted"
        elif row.origin == SourceKind.KAFKA.value:
            place = f"topic {row.topic}, partition {row.partition}"
            topic = now.get(row.topic)
            if topic is None or row.partition not in topic.earliest:
                yield f"{place}: {row.rows:,} records, and it is not read now"
            elif row.topic in again:
                yield f"{place}: the topic was deleted and made again"
            elif topic.earliest[row.partition] > row.first:
                yield f"{place}: offsets {row.first} to {topic.earliest[row.partition] - 1}"


def _positions(spark: SparkSession, layout: Layout) -> list[Any]:
    """Return where the records came from, by origin, topic and partition, with their number and first offset."""
    places = [
        read_table(spark, layout.storage.address(table))
        .where(condition)
        .select("origin", "topic", "partition", "offset")
        for table, condition in (
            (layout.bronze, "true"),
            (layout.quarantine, f"stage = '{Stage.BRONZE.value}'"),
            (layout.removed, f"reason = '{RemovalReason.RETIRED.value}'"),
        )
        if layout.storage.table_exists(table)
    ]
    if not places:
        return []
    grouped = reduce(DataFrame.unionByName, places).groupBy("origin", "topic", "partition")
    found: list[Any] = (
        grouped.agg(F.count(F.lit(1)).alias("rows"), F.min("offset").alias("first"))
        .orderBy("origin", "topic", "partition")
        .collect()
    )
    return found


def _made_again(spark: SparkSession, layout: Layout) -> set[str]:
    if not layout.storage.table_exists(layout.topics):
        return set()
    made = (
        read_table(spark, layout.storage.address(layout.topics)).groupBy("topic").count().where("count > 1").collect()
    )
    return {row.topic for row in made}


def _position(spark: SparkSession, layout: Layout) -> Batch | None:
    """Return the transaction that says that a game has read all that bronze has now; None where there is no bronze."""
    if not layout.storage.table_exists(layout.bronze):
        return None
    after = BronzeOffset(newest_version(layout.storage, layout.bronze) + 1)
    return Batch(position_id(spark, layout), after.number, retried=False)


def _empty(
    spark: SparkSession,
    storage: Storage,
    table: str,
    columns: Struct,
    *partition_by: str,
    position: Batch | None = None,
) -> None:
    """Take all rows out of a table, if it is there, and the columns besides these."""
    if not storage.table_exists(table):
        return
    writer = spark.createDataFrame([], spark_struct(columns)).write.partitionBy(*partition_by)
    # Spark writes nothing where a transaction's version is not above the one before
    if position is not None and transaction_of(storage, table, position.query_id) != position.batch_id:
        writer = writer.option("txnAppId", position.query_id).option("txnVersion", position.batch_id)
    save_table(spark, writer.mode("overwrite").option("overwriteSchema", "true"), storage.address(table))
