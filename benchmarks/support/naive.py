"""The naive design: a stream per game with Delta's own sink, no idle check, the newest schema for all rows, FAILFAST.

It runs in the same session, with the same tuned settings and the same parallelism, so that only the design differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from demux.core.columns.arrow import project
from demux.core.columns.spark import spark_struct
from demux.core.names import names_of
from demux.core.protobuf.decode.decoder import decoder_of
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.spark.map_in_arrow import map_in_arrow


def run_all(spark: SparkSession, bronze: str, root: str, schemas: dict[str, CompiledSchema], parallelism: int) -> None:
    """Start every game's stream, whether it has new rows or not, and wait until all are through."""
    with ThreadPoolExecutor(parallelism) as pool:
        list(pool.map(lambda game: run_one(spark, bronze, root, game, schemas[game]), sorted(schemas)))


def run_one(spark: SparkSession, bronze: str, root: str, game: str, schema: CompiledSchema) -> None:
    """Decode the game's new rows by its newest schema; the first bad row stops the stream."""
    key = names_of(game).key
    columns = decoder_of(schema.descriptor_set, schema.message).columns

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = decoder_of(schema.descriptor_set, schema.message)
        for batch in batches:
            decoded = decoder.decode(batch.column("payload").to_pylist())
            if decoded.bad:
                raise ValueError(decoded.bad[0][1])
            arrays = project(decoded.columns, decoder.columns, columns, batch.num_rows)
            yield pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])

    rows = spark.readStream.format("delta").load(bronze).where(F.col("game_name") == game).select("payload")
    query = (
        map_in_arrow(rows, decode, spark_struct(columns))
        .writeStream.format("delta")
        .option("checkpointLocation", f"{root}/checkpoints/{key}")
        .trigger(availableNow=True)
        .start(f"{root}/silver/{key}")
    )
    query.awaitTermination()
