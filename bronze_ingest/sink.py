"""The Arrow functions that run in Spark's workers, and the two frames they make of a micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bronze_ingest.envelope import extra_columns
from bronze_ingest.unwrap import WrapperFormat, bronze_columns, unwrap
from demux.arrow_map import map_in_arrow
from demux.causes import Stage
from demux.columns import Column, Primitive, Struct
from demux.commits import REFUSED, Rows
from demux.spark_types import spark_struct
from demux.streams import Batch
from demux.tables import BRONZE, POSITION, QUARANTINE

_UNWRAPPED = BRONZE.columns[:5]
_BATCH_COLUMNS = {"ingested_at", "batch_id"}
_CARRIED = tuple(column for column in BRONZE if column not in _UNWRAPPED and column.name not in _BATCH_COLUMNS)
EXAMINED = Struct(
    (
        Column("game_name", Primitive.STRING),
        Column("schema_id", Primitive.INT),
        Column("schema_guid", Primitive.STRING),
        Column("message_indexes", Primitive.STRING),
        *POSITION,
        Column("bytes", Primitive.BINARY),
        Column("cause", Primitive.STRING),
        Column("sentence", Primitive.STRING),
    )
)

Batches = Iterator[pa.RecordBatch]


def positioned(frame: DataFrame, batch: Batch) -> DataFrame:
    """Return the frame with a `record_id` in each row that no other record of the root has."""
    has_position = F.col("topic").isNotNull() & F.col("partition").isNotNull() & F.col("offset").isNotNull()
    own = F.concat_ws("/", "topic", F.col("partition").cast("string"), F.col("offset").cast("string"))
    given = F.concat_ws(
        "/",
        F.col("origin"),
        F.lit(batch.query_id),
        F.lit(str(batch.batch_id)),
        F.monotonically_increasing_id().cast("string"),
    )
    return frame.withColumn("record_id", F.coalesce("record_id", F.when(has_position, own), given))


def with_fields(wrapper: WrapperFormat) -> Struct:
    """Return the columns of bronze but those that Spark adds, and `REFUSED`."""
    return Struct((*_UNWRAPPED, *_CARRIED, *extra_columns(wrapper.envelope), Column(REFUSED, Primitive.BOOLEAN)))


def bronze_rows(frame: DataFrame, wrapper: WrapperFormat, batch: Batch) -> DataFrame:
    """Return every record of a positioned frame in the columns of `bronze_columns`, and `REFUSED`."""
    unwrapped = map_in_arrow(frame, to_fields(wrapper), spark_struct(with_fields(wrapper)))
    stamped = unwrapped.withColumn("ingested_at", F.current_timestamp()).withColumn("batch_id", _batch_id(batch))
    return stamped.select(*(column.name for column in bronze_columns(wrapper)), REFUSED)


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
    """Return a function that takes positioned records apart, into the columns of `with_fields`."""
    names = [column.name for column in with_fields(wrapper)]

    def convert(batches: Batches) -> Batches:
        for records in batches:
            fields = unwrap(
                records.column("value"), records.column("headers"), wrapper, records.column("refused_sentence")
            )
            own = [fields.game_name, fields.schema_id, fields.guid, fields.indexes, fields.payload]
            carried = [records.column(column.name) for column in _CARRIED]
            refused = fields.causes.is_valid()
            yield pa.RecordBatch.from_arrays([*own, *carried, *fields.extra, refused], names=names)

    return convert


def to_examined(wrapper: WrapperFormat, which: Rows) -> Callable[[Batches], Batches]:
    """Return a function that gives positioned records as they came, in the columns of `EXAMINED`."""

    def convert(batches: Batches) -> Batches:
        for records in batches:
            fields = unwrap(
                records.column("value"), records.column("headers"), wrapper, records.column("refused_sentence")
            )
            position = [records.column(column.name) for column in POSITION]
            examined = pa.RecordBatch.from_arrays(
                [
                    fields.game_name,
                    fields.schema_id,
                    fields.guid,
                    fields.indexes,
                    *position,
                    records.column("value"),
                    fields.causes,
                    fields.sentences,
                ],
                names=[column.name for column in EXAMINED],
            )
            yield examined.filter(examined.column("cause").is_valid()) if which is Rows.REFUSED else examined

    return convert
