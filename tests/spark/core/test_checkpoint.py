"""Spark reads a checkpoint that was made from the one before, with ours and without the commits that it stands for."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyspark.sql import SparkSession

from demux.core.delta.log import commit_name
from demux.core.storage.files import Storage
from deserializer.silver.auto_compaction import keep_up


def test_spark_reads_and_writes_a_table_whose_log_begins_at_our_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "silver")
    for number in range(36):
        done = CommitProperties(app_transactions=[Transaction("app", number)])
        write_deltalake(path, pa.table({"number": [number]}), mode="append", commit_properties=done)
        # the first checkpoint is of deltalake, the next two are ours
        if number in (2, 17, 34):
            table = DeltaTable(path)
            newest = keep_up(Storage(), table, path, table.version(), {})
    assert newest == 36
    log = Path(path, "_delta_log")
    assert sorted(one.name[:20] for one in log.glob("*.checkpoint.parquet")) == [f"{at:020}" for at in (2, 18, 36)]
    for version in range(36):
        (log / commit_name(version)).unlink()
    frame = spark.read.format("delta").load(path)
    assert sorted(row["number"] for row in frame.collect()) == list(range(36))
    assert len(frame.inputFiles()) == 2
    # Spark leaves out a batch that the checkpoint says is there
    more = spark.createDataFrame([(99,)], "number bigint").coalesce(1)
    for version in (34, 40):
        options = {"txnAppId": "app", "txnVersion": str(version)}
        more.write.format("delta").mode("append").options(**options).save(path)
    assert [row["number"] for row in spark.read.format("delta").load(path).where("number > 35").collect()] == [99]
    assert spark.sql(f"VACUUM delta.`{path}` DRY RUN").count() == 0
