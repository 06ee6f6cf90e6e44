"""The bronze stage: everything new in the source into bronze or quarantine, each record exactly once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bronze_ingest import file_sink, spark_sink
from bronze_ingest.archive.batches import with_files
from bronze_ingest.envelope import column_conflicts
from bronze_ingest.kafka.checkpoint_offsets import records_in
from bronze_ingest.source import check_source, wrapper_stream
from bronze_ingest.unwrap import WrapperFormat, bronze_columns, wrapper_format
from demux.core.catalog.root_tables import make_root_tables
from demux.core.catalog.spark_tables import read_table
from demux.core.causes import Stage
from demux.core.columns.spark import columns_in_json, columns_of_spark
from demux.core.columns.types import Struct
from demux.core.delta.app_transactions import Batch
from demux.core.delta.batch_commit import BatchCounts
from demux.core.delta.log import newest_transaction
from demux.core.delta.parquet_writer import schema_json
from demux.core.errors import CheckpointLost, DemuxError, SettingsInvalid, TableLost
from demux.core.reports import IngestReport, total
from demux.core.root.layout import Layout, layout_of
from demux.core.root.lock import TableLock, no_lock
from demux.core.settings.settings import Settings, Sink
from demux.core.settings.source import SourceKind
from demux.core.storage.files import Storage
from demux.core.storage.open_tables import OpenTables
from demux.core.streaming.checkpoints import read_checkpoint
from demux.core.streaming.query import TAKE_ALL, Trigger, run_query

# a fifth of a second of a core
_ROWS_PER_TASK = 50_000


def ingest(
    spark: SparkSession,
    settings: Settings,
    trigger: Trigger = TAKE_ALL,
    lock: TableLock = no_lock,
    *,
    accept_gaps: bool = False,
    on_batch: Callable[[IngestReport], None] = lambda _: None,
) -> IngestReport:
    """Return what was ingested; runs until its trigger is through.

    A second run ingests only what is new; after a crash it finishes the batch under way.

    Args:
        lock: keeps others away while the quarantine table is written.
        accept_gaps: whether to continue where the broker has lost unread records, and to record the gap.
        on_batch: called with the report of each batch.

    Raises:
        SettingsInvalid, SourceMissing, KafkaUnavailable, KafkaRefused, TopicMissing, OffsetsLost: as for
            `wrapper_stream`.
        CheckpointLost, TableLost: as for `require_checkpoint`.
        CatalogConflict, CatalogRefused: as for `make_root_tables`; no record was read.
    """
    layout = layout_of(settings)
    wrapper = wrapper_format(settings)
    tables = OpenTables(layout.storage)
    write_batch = _writer(tables, layout, settings.run.sink)
    done: list[IngestReport] = []
    # elsewhere a record may have an id by its place in a task, which must be the same when the batch comes again
    has_positions = settings.source.kind is SourceKind.KAFKA and settings.archive.path is None
    may_join = has_positions and settings.kafka.min_partitions is None

    def one_batch(frame: DataFrame, batch: Batch) -> None:
        # the first batch of a query may be a long history
        if done and may_join:
            frame = frame.coalesce(tasks_for(records_in(layout.storage, layout.bronze_checkpoint, batch.batch_id)))
        counts = write_batch(layout, frame, wrapper, batch, lock)
        done.append(IngestReport(counts.rows_in, counts.rows_good, counts.rows_quarantined))
        on_batch(done[-1])

    require_checkpoint(spark, layout)
    _require_columns(spark, tables, layout, wrapper)
    source = wrapper_stream(spark, settings, accept_gaps)
    make_root_tables(spark, layout, bronze_columns(wrapper))
    watched = with_files(layout.storage, layout.bronze_checkpoint, one_batch)
    try:
        run_query(layout.storage, source, layout.bronze_checkpoint, "bronze", watched, trigger)
    except DemuxError:
        # the source may say more than the query that it broke
        check_source(spark, settings)
        raise
    return total(done)


def tasks_for(rows: int) -> int:
    """Return how many tasks a batch of so many rows needs.

    Each task writes a file for each game that it meets, which costs two milliseconds of a core however few rows it has,
    and as much again when it is decoded.
    """
    return max(1, ceil(rows / _ROWS_PER_TASK))


def require_checkpoint(spark: SparkSession, layout: Layout) -> None:
    """Check that bronze still has the checkpoint of the query that wrote it, and not an older copy of it.

    Without it the query would restart and write everything a second time; with an older one Delta would take new
    batches for old ones and skip them without a word.

    Raises:
        CheckpointLost: the checkpoint is gone, has lost its offsets, or is older than the table.
        TableLost: the checkpoint is there, and the table is gone: what that held would not come back.
    """
    storage, table, checkpoint = layout.storage, layout.bronze, layout.bronze_checkpoint
    stream_state = read_checkpoint(storage, checkpoint)
    if not storage.table_exists(table):
        # every batch that is done has made the table
        if stream_state.done >= 0:
            raise TableLost(
                f"The table {table} is gone, and the query that wrote it has its checkpoint {checkpoint}.",
                "Run `demux rebuild --bronze` to make the table again from its source, or put the table back.",
                table=table,
                checkpoint=checkpoint,
            )
        return
    if stream_state.query_id is not None and stream_state.begun >= 0:
        written = newest_transaction(storage, table, stream_state.query_id)
        if written is None or written <= stream_state.begun:
            return
        state = f"is older than the table: it knows batch {stream_state.begun}, the table has batch {written}"
    elif _has_rows(spark, storage, table) or _has_rows(spark, storage, layout.quarantine, Stage.BRONZE):
        state = "is gone"
    else:
        return
    raise CheckpointLost(
        f"The table {table} was written by a query whose checkpoint {checkpoint} {state}.",
        "Run `demux rebuild --bronze` to make the table again from its source, or put the checkpoint back.",
        table=table,
        checkpoint=checkpoint,
    )


def _has_rows(spark: SparkSession, storage: Storage, table: str, stage: Stage | None = None) -> bool:
    if not storage.table_exists(table):
        return False
    rows = read_table(spark, storage.address(table))
    return bool((rows if stage is None else rows.where(F.col("stage") == stage.value)).limit(1).count())


def _writer(tables: OpenTables, layout: Layout, sink: Sink) -> Callable[..., BatchCounts]:
    """Return the `write_batch` of the sink that the settings name, or that fits the tables."""
    if sink is Sink.SPARK:
        return spark_sink.write_batch
    if file_sink.can_write(tables, layout):
        return partial(file_sink.write_batch, tables)
    if sink is Sink.FILES:
        raise SettingsInvalid(
            f"The tables under {layout.root} cannot be written as files: they are on a mount, or in a store that "
            "`deltalake` does not open, or they have features that only Spark's own writer gives.",
            "Set `run.sink` to auto or spark.",
        )
    return spark_sink.write_batch


def _require_columns(spark: SparkSession, tables: OpenTables, layout: Layout, wrapper: WrapperFormat) -> None:
    now = _columns(spark, tables, layout)
    if conflicts := column_conflicts(now, bronze_columns(wrapper)):
        raise SettingsInvalid(
            f"The envelope does not fit the bronze table: {' '.join(conflicts)}",
            "Correct `wrapper.proto`, take another root, or fill bronze again with `demux rebuild --bronze`.",
            conflicts=conflicts,
        )


def _columns(spark: SparkSession, tables: OpenTables, layout: Layout) -> Struct:
    """Return the columns of bronze; none where it is not there."""
    table = tables.opened.get(layout.bronze) or layout.storage.known_table(layout.bronze)
    if table is not None:
        return columns_in_json(schema_json(table))
    if not layout.storage.table_exists(layout.bronze):
        return Struct(())
    return columns_of_spark(read_table(spark, layout.storage.address(layout.bronze)).schema)
