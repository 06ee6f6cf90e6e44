"""Bronze as Spark reads it, file by file."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from demux.core.columns.spark import spark_struct
from demux.core.columns.types import Struct
from demux.core.errors import BronzeRewritten
from demux.core.spark.connect import new_session
from demux.core.storage.location import literal_path

_CHECKS = (
    # in a workspace, files of a Delta table may not be read as the Parquet files that they are, unless one says so
    "spark.databricks.delta.formatCheck.enabled",
    # rows may come for others that do not meet the condition of those
    "spark.databricks.delta.replaceWhere.constraintCheck.enabled",
)


def file_session(spark: SparkSession) -> SparkSession:
    """Return a session with settings of its own, which may read single files of Delta tables, and replace any rows."""
    session = new_session(spark)
    for name in _CHECKS:
        session.conf.set(name, "false")
    session.conf.set("spark.sql.session.timeZone", "UTC")
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
            "VACUUM of bronze remove files that a game has still to read.",
            game=game,
        ) from error
