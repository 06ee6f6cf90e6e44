"""Files that the fleet's tasks wrote, as rows that Spark's writer copies into a table.

They lie beside the table's own files and are in no commit: what a process leaves behind that dies is removed by VACUUM.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from demux.core.delta.parquet_writer import TableFile, remove_files
from demux.core.errors import DemuxError
from demux.core.spark.connect import new_session
from demux.core.storage.files import Storage
from demux.core.storage.location import literal_path

# files beside a Delta table are not read as the Parquet files that they are, unless one says so
_FORMAT_CHECK = "spark.databricks.delta.formatCheck.enabled"
# of few rows: Spark takes longer to write code than to do without, above all to read the log for a transaction
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
_FEW_ROWS = 50_000


@contextmanager
def staged_rows(
    spark: SparkSession, storage: Storage, table: str, files: Sequence[TableFile], columns: StructType
) -> Iterator[DataFrame]:
    """Yield the rows of files in a table's folder, in these columns; then the files are removed."""
    session = _copying_session(spark, sum(file.rows for file in files) <= _FEW_ROWS)
    paths = [literal_path(f"{table}/{file.path}") for file in files]
    try:
        yield session.read.schema(columns).parquet(*paths) if paths else session.createDataFrame([], columns)
    finally:
        with suppress(OSError, DemuxError):
            remove_files(storage, table, [file.path for file in files])


@lru_cache(maxsize=4)
def _copying_session(spark: SparkSession, is_small: bool) -> SparkSession:
    """Return a session of this one that reads single files of tables; kept, as making one takes a while."""
    conf = {_FORMAT_CHECK: "false", "spark.sql.session.timeZone": "UTC"}
    return new_session(spark, {**conf, **(_INTERPRETED if is_small else {})})
