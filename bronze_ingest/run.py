"""The bronze stage: everything new in the source into bronze or quarantine, each record exactly once."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from bronze_ingest import file_sink, spark_sink
from bronze_ingest.archive.batches import with_files
from bronze_ingest.envelope import column_conflicts
from bronze_ingest.source import check_source, wrapper_stream
from bronze_ingest.unwrap import WrapperFormat, bronze_columns, wrapper_format
from demux.causes import Stage
from demux.checkpoints import require_checkpoint
from demux.columns import Struct
from demux.commits import Counts
from demux.errors import DemuxError, SettingsInvalid
from demux.reports import IngestReport
from demux.roots import layout_of
from demux.settings import Settings, Sink
from demux.spark_types import columns_in_json, columns_of_spark
from demux.storage import table_exists
from demux.streams import TAKE_ALL, Batch, Trigger, run_query
from demux.table_files import schema_json
from demux.tables import Layout


def ingest(
    spark: SparkSession,
    settings: Settings,
    trigger: Trigger = TAKE_ALL,
    *,
    accept_gaps: bool = False,
    on_batch: Callable[[IngestReport], None] = lambda _: None,
) -> IngestReport:
    """Return what was taken in; runs until its trigger is through.

    A second run takes in only what is new; after a crash it finishes the batch under way.

    Args:
        spark: the session.
        settings: all settings.
        trigger: when batches begin, and when to end.
        accept_gaps: whether to go on where the broker has lost records that were not read yet, and write that down.
        on_batch: told of each batch.

    Raises:
        SettingsInvalid, SourceMissing, KafkaUnavailable, KafkaRefused, TopicMissing, OffsetsLost: as for
            `wrapper_stream`.
        CheckpointLost: bronze is there and its checkpoint is not.
    """
    layout = layout_of(settings)
    wrapper = wrapper_format(settings)
    write_batch = _writer(layout, settings.run.sink)
    counts: list[Counts] = []

    def one_batch(frame: DataFrame, batch: Batch) -> None:
        counts.append(write_batch(layout, frame, wrapper, batch))
        on_batch(_report(counts[-1:]))

    require_checkpoint(
        spark,
        layout.bronze_checkpoint,
        layout.bronze,
        layout.quarantine,
        f"stage = '{Stage.BRONZE.value}'",
        "demux rebuild --bronze",
    )
    _require_columns(spark, layout, wrapper)
    source = wrapper_stream(spark, settings, accept_gaps)
    watched = with_files(spark, layout.bronze_checkpoint, one_batch)
    try:
        run_query(spark, source, layout.bronze_checkpoint, "bronze", watched, trigger)
    except DemuxError:
        # the source may say more than the query that it broke
        check_source(spark, settings)
        raise
    return _report(counts)


def _writer(layout: Layout, sink: Sink) -> Callable[..., Counts]:
    """Return the `write_batch` of the sink that the settings name, or that fits the tables."""
    if sink is Sink.SPARK:
        return spark_sink.write_batch
    if file_sink.can_write(layout):
        return file_sink.write_batch
    if sink is Sink.FILES:
        raise SettingsInvalid(
            f"The tables under {layout.root} cannot be written as files: only Spark reaches them, or "
            "they have features that only Spark's own writer gives.",
            "Set `run.sink` to auto or spark.",
        )
    return spark_sink.write_batch


def _require_columns(spark: SparkSession, layout: Layout, wrapper: WrapperFormat) -> None:
    if not table_exists(spark, layout.bronze):
        return
    now = _columns(spark, layout)
    if conflicts := column_conflicts(now, bronze_columns(wrapper)):
        raise SettingsInvalid(
            f"The envelope does not fit the bronze table: {' '.join(conflicts)}",
            "Correct `wrapper.proto`, take another root, or fill bronze anew with `demux rebuild --bronze`.",
            conflicts=conflicts,
        )


def _columns(spark: SparkSession, layout: Layout) -> Struct:
    table = layout.storage.known_table(layout.bronze)
    if table is None:
        return columns_of_spark(spark.read.format("delta").load(layout.bronze).schema)
    return columns_in_json(schema_json(table))


def _report(counts: list[Counts]) -> IngestReport:
    return IngestReport(
        sum(count.rows_in for count in counts),
        sum(count.rows_good for count in counts),
        sum(count.rows_quarantined for count in counts),
    )
