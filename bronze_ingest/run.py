"""The bronze stage: everything new in the source into bronze or quarantine, each record exactly once."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from bronze_ingest.sink import bronze_rows, examined_rows, positioned
from bronze_ingest.source import wrapper_stream
from bronze_ingest.unwrap import WrapperFormat
from demux.causes import Stage
from demux.checkpoints import require_checkpoint
from demux.commits import Counts, OnRetry, Target, commit
from demux.protobuf.wrapper import default_wrapper
from demux.reports import IngestReport
from demux.settings import Settings
from demux.streams import Batch, run_available
from demux.tables import Layout


def ingest(spark: SparkSession, settings: Settings) -> IngestReport:
    """Return what was taken in; runs until all that is in the source now is in bronze or quarantine.

    A second run takes in only what is new; after a crash it finishes the batch under way.

    Raises:
        SourceMissing: there is no source table.
        CheckpointLost: bronze is there and its checkpoint is not.
    """
    layout = Layout(settings.root)
    compiled = default_wrapper()
    wrapper = WrapperFormat(compiled.descriptor_set, compiled.message, settings.games.max_name_bytes)
    target = Target(layout.bronze, layout.quarantine, OnRetry.DECIDE_AGAIN, partition_by=("game_name",))
    counts: list[Counts] = []

    def one_batch(frame: DataFrame, batch: Batch) -> None:
        records = positioned(frame, batch, "delta")
        rows = bronze_rows(records, wrapper, batch)
        counts.append(commit(spark, batch, target, rows, lambda which: examined_rows(records, wrapper, batch, which)))

    source = wrapper_stream(spark, settings)
    require_checkpoint(
        spark,
        layout.bronze_checkpoint,
        layout.bronze,
        layout.quarantine,
        f"stage = '{Stage.BRONZE.value}'",
        "demux rebuild --bronze",
    )
    run_available(spark, source, layout.bronze_checkpoint, "bronze", one_batch)
    return IngestReport(
        sum(count.rows_in for count in counts),
        sum(count.rows_good for count in counts),
        sum(count.rows_quarantined for count in counts),
    )
