"""The silver table: its columns now, columns added to it, and the frames that are written to it and to quarantine."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from demux.arrow_map import map_in_arrow
from demux.causes import Stage
from demux.columns import Struct
from demux.commits import Rows
from demux.names import quoted, sql_string
from demux.spark_types import columns_of_spark, spark_struct
from demux.streams import Batch, table_exists
from demux.tables import QUARANTINE, SILVER_ORIGIN, SILVER_RESERVED
from deserializer.decisions import Decisions
from deserializer.decode import EXAMINED, silver_columns, to_examined, to_silver


def payload_columns(spark: SparkSession, table: str) -> Struct | None:
    """Return the table's columns but the origin's; None when there is no table."""
    if not table_exists(spark, table):
        return None
    schema = spark.read.format("delta").load(table).schema
    return columns_of_spark(StructType([field for field in schema.fields if field.name not in SILVER_RESERVED]))


def add_columns(spark: SparkSession, table: str, before: Struct, after: Struct) -> None:
    """Add the columns that `after` has more than `before`, nested ones too; a second call adds nothing.

    New top-level columns come after the payload's last one, before the origin's.
    """
    everything = spark_struct(Struct((*after, *SILVER_ORIGIN)))
    nothing = spark.createDataFrame([], everything)
    nothing.write.format("delta").mode("append").option("mergeSchema", "true").save(table)
    known = {column.name for column in before}
    last: str | None = before.columns[-1].name if before.columns else None
    for column in after:
        if column.name in known:
            continue
        place = "FIRST" if last is None else f"AFTER {quoted(last)}"
        spark.sql(f"ALTER TABLE delta.{quoted(table)} ALTER COLUMN {quoted(column.name)} {place}")
        last = column.name


def quarantined(game: str) -> str:
    """Return the SQL condition of the game's own rows in quarantine."""
    return f"stage = {sql_string(Stage.SILVER.value)} AND game_name = {sql_string(game)}"


def silver_rows(frame: DataFrame, decisions: Decisions) -> DataFrame:
    """Return every row of a batch in the table's columns, and `REFUSED`."""
    columns = silver_columns(decisions.columns)
    decoded = map_in_arrow(frame, to_silver(decisions), spark_struct(columns))
    return decoded.withColumn("_decoded_at", F.current_timestamp())


def examined_rows(frame: DataFrame, decisions: Decisions, game: str, batch: Batch, which: Rows) -> DataFrame:
    """Return rows of a batch in the columns of `QUARANTINE`; a good one has a NULL cause."""
    examined = map_in_arrow(frame, to_examined(decisions, which), spark_struct(EXAMINED))
    stamped = (
        examined.withColumnRenamed("payload", "bytes")
        .withColumn("stage", F.lit(Stage.SILVER.value))
        .withColumn("game_name", F.lit(game))
        .withColumn("query_id", F.lit(batch.query_id))
        .withColumn("batch_id", F.lit(batch.batch_id).cast("long"))
        .withColumn("quarantined_at", F.current_timestamp())
    )
    return stamped.select(*(column.name for column in QUARANTINE))
