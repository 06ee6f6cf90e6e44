"""Spark's own client and ours in one bucket, on both lines of Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from demux.core.names import names_of, quote_identifier
from demux.core.reports import GameReport
from demux.core.root.layout import Layout
from demux.core.schemas.store import SchemaStore
from demux.core.storage.files import Storage
from deserializer.redecode.redecoder import Redecoder, rebuild
from tests.support.spark.registries import CountingRegistry, every_game
from tests.support.spark.tables import bronze_row, write_bronze
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


def test_rows_that_only_spark_reads_are_decoded_again_and_no_copy_of_them_stays(
    spark_in_store: SparkSession, in_store: Storage, object_store: ObjectStore, tmp_path: Path
) -> None:
    spark, name, registry = spark_in_store, f"{tmp_path.name} 100%+ü", CountingRegistry()
    registry.register("chess", 'syntax = "proto3"; message Event { string name = 1; }', "event.proto", ())
    layout, kept = Layout(f"s3://demux/{name}", in_store), object_store.folder / "demux" / name
    payloads = enumerate((b"\x0a\x03ann", b"\x0a\x03bob", b"\x0a\x03a"))
    write_bronze(str(tmp_path / "bronze"), *(bronze_row("chess", offset, 1, payload) for offset, payload in payloads))
    # Spark wants the server's own version of a file
    for path in (each for each in tmp_path.rglob("bronze/**/*") if each.is_file()):
        assert in_store.create(f"{layout.root}/{path.relative_to(tmp_path)}", path.read_bytes())
    bronze = quote_identifier(layout.bronze)
    spark.sql(f"ALTER TABLE delta.{bronze} SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    spark.sql(f"DELETE FROM delta.{bronze} WHERE record_id = 't/0/1'")
    redecoder = Redecoder(spark, layout, SchemaStore(spark, layout, every_game(registry)))
    for _ in range(2):
        assert rebuild(redecoder, "chess") == GameReport("chess", 2, 1, 1, (1,))
        assert in_store.table(layout.silver(names_of("chess").key)).to_pyarrow_table()["name"].to_pylist() == ["ann"]
        assert in_store.table(layout.quarantine).to_pyarrow_table()["record_id"].to_pylist() == ["t/0/2"]
    assert not list((kept / "bronze").glob("redecode-*"))


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
