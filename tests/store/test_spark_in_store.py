"""Spark's own client and ours in one bucket, on both lines of Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demux.core.storage.files import Storage


@pytest.mark.both_lanes
def test_what_spark_writes_and_streams_is_read_by_our_client_and_the_other_way_round(
    spark_in_store: SparkSession, in_store: Storage, tmp_path: Path
) -> None:
    spark, folder = spark_in_store, f"s3://demux/{tmp_path.name}/games 100%+ü"
    source, copy = f"{folder}/source", f"{folder}/copy"
    for _ in range(2):
        spark.range(10).write.format("delta").mode("append").save(source)
    assert (in_store.table(source).version(), in_store.table(source).count()) == (1, 20)
    in_store.write_table(source, in_store.table(source).to_pyarrow_table(), "append")
    assert spark.read.format("delta").load(source).count() == 40
    for rows in (40, 50):
        stream = spark.readStream.format("delta").load(source).writeStream.format("delta")
        stream = stream.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
        stream.start(copy).awaitTermination()
        assert in_store.table(copy).count() == rows
        spark.range(10).write.format("delta").mode("append").save(source)
