"""Bronze as Spark reads it, file by file; and the id of the table, which the fleet's transactions carry."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from delta import tables as by_spark
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from demux.core.columns.spark import spark_struct
from demux.core.columns.types import Struct
from demux.core.errors import BronzeRewritten, TableUnsuited
from demux.core.root.layout import Layout
from demux.core.storage import literal_path

# in a workspace, files of a Delta table may not be read as the Parquet files that they are, unless one says so
_CHECK = "spark.databricks.delta.formatCheck.enabled"


def file_session(spark: SparkSession) -> SparkSession:
    """Return a session with settings of its own, which may read single files of Delta tables."""
    session = spark.newSession()
    session.conf.set(_CHECK, "false")
    return session


def rows_in(spark: SparkSession, game: str, paths: Sequence[str], columns: Struct) -> DataFrame:
    """Return the rows of these files of a game, in these columns: NULL where a file is older than a column.

    Args:
        spark: a `file_session`.
        game: the exact name.
        paths: of the files.
        columns: of bronze.

    Raises:
        BronzeRewritten: a file is not there any more.
    """
    try:
        return spark.read.schema(spark_struct(columns)).parquet(*map(literal_path, paths))
    except AnalysisException as error:
        if "PATH_NOT_FOUND" not in f"{error.getErrorClass()} {error}":
            raise
        raise BronzeRewritten(
            "A file of bronze was removed before it was read.",
            f"Make the game's table again from bronze: `demux rebuild --game {shlex.quote(game)}`; and let no "
            "VACUUM of bronze reach back to where a game stands.",
            game=game,
        ) from error


def without(rows: DataFrame, record_ids: Iterable[str]) -> DataFrame:
    """Return the rows whose `record_id` is not among these."""
    ids = [(one,) for one in sorted(record_ids)]
    if not ids:
        return rows
    settled = rows.sparkSession.createDataFrame(ids, "record_id STRING")
    return rows.join(settled, "record_id", "left_anti").select(*rows.columns)


def fleet_id(spark: SparkSession, layout: Layout) -> str:
    """Return the id of the transactions that say the offset of the game in bronze.

    Raises:
        TableUnsuited: the names of its columns are not those in its files.
    """
    app_id, takes_fleets = fleet_id_of(spark, layout)
    if not takes_fleets:
        raise TableUnsuited(
            f"The table {layout.bronze} has columns with other names in its files (column mapping).",
            "Set run.engine: stream.",
            table=layout.bronze,
        )
    return app_id


def fleet_id_of(spark: SparkSession, layout: Layout) -> tuple[str, bool]:
    """Return the same id, and whether a fleet can read the table; it costs a Spark job where only Spark can open it."""
    table_id, properties = _metadata(layout) or _detail(spark, layout.bronze)
    return f"demux-fleet/{table_id}", properties.get("delta.columnMapping.mode", "none") == "none"


def _metadata(layout: Layout) -> tuple[str, Mapping[str, str]] | None:
    table = layout.storage.known_table(layout.bronze)
    return None if table is None else (str(table.metadata().id), table.metadata().configuration)


def _detail(spark: SparkSession, table: str) -> tuple[str, Mapping[str, str]]:
    detail = by_spark.DeltaTable.forPath(spark, table).detail().select("id", "properties").first()
    assert detail is not None
    return detail.id, detail.properties
