"""The Arrow functions that run in Spark's workers, and the two frames they make of a micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bronze_ingest.unwrap import WrapperFormat, unwrap
from demux.arrow_map import map_in_arrow
from demux.causes import Stage
from demux.columns import Column, Primitive, Struct
from demux.commits import REFUSED, Rows
from demux.spark_types import spark_struct
from demux.streams import Batch
from demux.tables import BRONZE, POSITION, QUARANTINE

_WRAPPER_FIELDS = BRONZE.columns[:3]
_BATCH_COLUMNS = {"ingested_at", "batch_id"}
_CARRIED = tuple(column for column in BRONZE if column not in _WRAPPER_FIELDS and column.name not in _BATCH_COLUMNS)
WITH_FIELDS = Struct((*_WRAPPER_FIELDS, *_CARRIED, Column(REFUSED, Primitive.BOOLEAN)))
EXAMINED = Struct(
    (
        Column("game_name", Primitive.STRING),
        Column("schema_id", Primitive.INT),
        *POSITION,
        Column("bytes", Primitive.BINARY),
        Column("cause", Primitive.STRING),
        Column("sentence", Primitive.STRING),
    )
)

Batches = Iterator[pa.RecordBatch]


def positioned(frame: DataFrame, batch: Batch, origin: str) -> DataFrame:
    """Return the frame with `origin` and a `record_id` that no other record of the root has."""
    has_position = F.col("topic").isNotNull() & F.col("partition").isNotNull() & F.col("offset").isNotNull()
    own = F.concat_ws("/", "topic", F.col("partition").cast("string"), F.col("offset").cast("string"))
    given = F.concat_ws(
        "/",
        F.lit(origin),
        F.lit(batch.query_id),
        F.lit(str(batch.batch_id)),
        F.monotonically_increasing_id().cast("string"),
    )
    return frame.withColumn("origin", F.lit(origin)).withColumn("record_id", F.when(has_position, own).otherwise(given))


def bronze_rows(frame: DataFrame, wrapper: WrapperFormat, batch: Batch) -> DataFrame:
    """Return every record of a positioned frame in the columns of `BRONZE`, and `REFUSED`."""
    unwrapped = map_in_arrow(frame, to_fields(wrapper), spark_struct(WITH_FIELDS))
    stamped = unwrapped.withColumn("ingested_at", F.current_timestamp()).withColumn("batch_id", _batch_id(batch))
    return stamped.select(*(column.name for column in BRONZE), REFUSED)


def examined_rows(frame: DataFrame, wrapper: WrapperFormat, batch: Batch, which: Rows) -> DataFrame:
    """Return records of a positioned frame in the columns of `QUARANTINE`; a good one has a NULL cause."""
    examined = map_in_arrow(frame, to_examined(wrapper, which), spark_struct(EXAMINED))
    stamped = (
        examined.withColumn("stage", F.lit(Stage.BRONZE.value))
        .withColumn("query_id", F.lit(batch.query_id))
        .withColumn("batch_id", _batch_id(batch))
        .withColumn("quarantined_at", F.current_timestamp())
    )
    return stamped.select(*(column.name for column in QUARANTINE))


def _batch_id(batch: Batch) -> SparkColumn:
    return F.lit(batch.batch_id).cast("long")


def to_fields(wrapper: WrapperFormat) -> Callable[[Batches], Batches]:
    """Return a function that takes positioned records apart, into the columns of `WITH_FIELDS`."""

    def convert(batches: Batches) -> Batches:
        for records in batches:
            fields = unwrap(records.column("value"), wrapper)
            refused = pa.array([cause is not None for cause in fields.causes], pa.bool_())
            carried = [records.column(column.name) for column in _CARRIED]
            yield pa.RecordBatch.from_arrays(
                [fields.game_name, fields.schema_id, fields.payload, *carried, refused],
                names=[column.name for column in WITH_FIELDS],
            )

    return convert


def to_examined(wrapper: WrapperFormat, which: Rows) -> Callable[[Batches], Batches]:
    """Return a function that gives positioned records as they came, in the columns of `EXAMINED`."""

    def convert(batches: Batches) -> Batches:
        for records in batches:
            fields = unwrap(records.column("value"), wrapper)
            position = [records.column(column.name) for column in POSITION]
            examined = pa.RecordBatch.from_arrays(
                [
                    fields.game_name,
                    fields.schema_id,
                    *position,
                    records.column("value"),
                    pa.array(fields.causes, pa.string()),
                    pa.array(fields.sentences, pa.string()),
                ],
                names=[column.name for column in EXAMINED],
            )
            yield examined.filter(examined.column("cause").is_valid()) if which is Rows.REFUSED else examined

    return convert
