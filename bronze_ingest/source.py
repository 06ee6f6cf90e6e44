"""The wrapper source: a stream over a Delta table with a BINARY column `value`."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from demux.errors import SourceMissing
from demux.settings import Settings
from demux.spark_types import spark_type
from demux.storage import table_exists
from demux.tables import SOURCE_OPTIONAL


def wrapper_stream(spark: SparkSession, settings: Settings) -> DataFrame:
    """Return a streaming frame: value BINARY, and the columns of `SOURCE_OPTIONAL`, NULL where the table has none.

    Raises:
        SourceMissing: there is no table, or it has no BINARY column `value`.
    """
    path = settings.source_path
    if not table_exists(spark, path):
        raise SourceMissing(
            f"There is no Delta table of wrappers at {path}.",
            "Run `demux produce` to make one, or name yours in `source.path`.",
            path=path,
        )
    reader = spark.readStream.format("delta").option("skipChangeCommits", "true")
    if settings.source.max_files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", settings.source.max_files_per_batch)
    frame = reader.load(path)
    _require_value(frame.schema, path)
    present = {field.name.lower() for field in frame.schema.fields}
    optional = [
        (F.col(column.name) if column.name in present else F.lit(None)).cast(spark_type(column.type)).alias(column.name)
        for column in SOURCE_OPTIONAL
    ]
    return frame.select(F.col("value").cast("binary").alias("value"), *optional)


def _require_value(schema: StructType, path: str) -> None:
    types = {field.name.lower(): field.dataType.simpleString() for field in schema.fields}
    if types.get("value") not in {"binary", "string"}:
        raise SourceMissing(
            f"The table at {path} has no BINARY column `value`; it has {', '.join(types)}.",
            "Put the wrapper's bytes into a column called `value`.",
            path=path,
        )
