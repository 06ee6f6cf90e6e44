"""Bronze again from its source, and with it everything that was made from bronze."""

from __future__ import annotations

from pyspark.sql import SparkSession

from bronze_ingest.run import ingest
from bronze_ingest.source import check_source
from bronze_ingest.unwrap import bronze_columns, wrapper_format
from demux.columns import Struct
from demux.reports import IngestReport
from demux.settings import Settings
from demux.spark_types import spark_struct
from demux.storage import file_names, remove_folder, table_exists
from demux.tables import QUARANTINE, ROUNDS, SILVER_ORIGIN, Layout


def rebuild_bronze(spark: SparkSession, settings: Settings) -> IngestReport:
    """Return what was taken in from the beginning of the source, after all tables below the root were emptied.

    Silver tables are emptied too, and filled again by the next run. Safe to call again after a crash; a run after a
    crash is refused with `CheckpointLost`, or fills the emptied tables.

    Raises:
        SourceMissing: there is no source to build from; nothing was touched.
    """
    layout = Layout(settings.root)
    check_source(spark, settings)
    remove_folder(spark, layout.bronze_checkpoint)
    for key in file_names(spark, f"{layout.root}/silver"):
        remove_folder(spark, layout.silver_checkpoint(key))
        _empty(spark, layout.silver(key), SILVER_ORIGIN)
    _empty(spark, layout.rounds, ROUNDS)
    _empty(spark, layout.quarantine, QUARANTINE)
    _empty(spark, layout.bronze, bronze_columns(wrapper_format(settings)), "game_name")
    return ingest(spark, settings)


def _empty(spark: SparkSession, table: str, columns: Struct, *partition_by: str) -> None:
    if table_exists(spark, table):
        nothing = spark.createDataFrame([], spark_struct(columns)).write.format("delta").partitionBy(*partition_by)
        nothing.mode("overwrite").option("overwriteSchema", "true").save(table)
