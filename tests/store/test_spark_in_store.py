"""Spark's own client and ours in one bucket, on both lines of Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from demux.core.storage.files import Storage
from tests.support.store.stored import access_at, spark_reaches
from tools.servers.stores.proxy import Request, StoreProxy
from tools.servers.stores.s3 import ObjectStore


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


@pytest.mark.both_lanes
def test_spark_overwrites_a_commit_that_came_between_its_listing_and_its_put(
    spark: SparkSession, object_store: ObjectStore, in_store: Storage
) -> None:
    """Docs/stores.md, "Other writers on S3", says so: where this test fails, Spark commits conditionally by now."""
    (object_store.folder / "raced").mkdir()
    table, proxy, ours = "s3://raced/table", StoreProxy(object_store.url), pa.table({"id": pa.array([100], pa.int64())})

    def commit_first(request: Request) -> None:
        if request.kind == "PUT" and request.path.endswith("/_delta_log/00000000000000000001.json"):
            in_store.write_table(table, ours, "append")

    with spark_reaches(spark, Storage(access_at(proxy.url)), "raced"):
        spark.range(3).write.format("delta").save(table)
        proxy.decide = commit_first
        spark.range(3, 5).write.format("delta").mode("append").save(table)
    proxy.close()
    read = in_store.table(table)
    assert (read.version(), sorted(read.to_pyarrow_table()["id"].to_pylist())) == (1, [0, 1, 2, 3, 4])
