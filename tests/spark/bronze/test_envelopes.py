"""Records in another team's envelope through Spark: the columns of bronze, and of quarantine, with their values."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from bronze_ingest.source import SOURCE
from bronze_ingest.spark_sink import bronze_rows, refused_rows
from bronze_ingest.unwrap import WrapperFormat, bronze_columns
from demux.core.columns.spark import columns_of_spark, spark_struct
from demux.core.delta.app_transactions import Batch
from demux.core.delta.batch_commit import REFUSED
from demux.core.tables import QUARANTINE
from tests.support.data.envelopes import RICH_FIELDS, message_of, wrapper_of

BATCH = Batch("the query", 0, False)
SENT_AT = datetime(2026, 1, 2, tzinfo=timezone.utc)


@pytest.fixture
def rich(tmp_path: Path) -> WrapperFormat:
    return wrapper_of(tmp_path, **RICH_FIELDS)


def records(wrapper: WrapperFormat) -> list[bytes]:
    """A full envelope, one with no more than a game, and one without a game."""
    message = message_of(wrapper)
    full = message(device="d1", account=None, Sent_At=7, score=0.5)
    full.header.title, full.header.region, full.header.registry.schema, full.body.bytes = 1, "eu", 11, b"p"
    full.sent_at.FromDatetime(SENT_AT)
    full.labels["a"].schema = 3
    full.hops.add(title=2, region="us")
    bare = message()
    bare.header.title = 2
    return [full.SerializeToString(), bare.SerializeToString(), message().SerializeToString()]


def source_records(spark: SparkSession, values: list[bytes]) -> Any:
    rows = [
        (bytearray(value), "t", 0, offset, SENT_AT, None, None, "kafka", None, None)
        for offset, value in enumerate(values)
    ]
    return spark.createDataFrame(rows, spark_struct(SOURCE))


def test_bronze_gets_the_columns_of_the_envelope_with_their_values(
    spark: SparkSession, tmp_path: Path, rich: WrapperFormat
) -> None:
    rows = bronze_rows(source_records(spark, records(rich)), rich, BATCH).where(f"not {REFUSED}").drop(REFUSED)
    rows.write.format("delta").partitionBy("game_name").save(str(tmp_path / "bronze"))
    table = spark.read.format("delta").load(str(tmp_path / "bronze"))
    assert columns_of_spark(table.schema) == bronze_columns(rich)
    written = DeltaTable(str(tmp_path / "bronze")).to_pyarrow_table().sort_by("offset").to_pylist()
    extra = [{name: value for name, value in row.items() if name.startswith("wrapper_")} for row in written]
    hop = {"title": "GO", "region": "us", "registry": None, "empty": None, "Region__5": ""}
    assert [(row["game_name"], row["schema_id"], row["payload"]) for row in written] == [
        ("CHESS", 11, b"p"),
        ("GO", None, None),
    ]
    assert extra == [
        {
            "wrapper_header": {"region": "eu", "empty": None, "Region__5": ""},
            "wrapper_sent_at": SENT_AT,
            "wrapper_labels": [("a", {"schema": 3})],
            "wrapper_hops": [hop],
            "wrapper_device": "d1",
            "wrapper_account": None,
            "wrapper_Sent_At__7": 7,
            "wrapper_score": 0.5,
        },
        {
            "wrapper_header": {"region": "", "empty": None, "Region__5": ""},
            "wrapper_sent_at": None,
            "wrapper_labels": [],
            "wrapper_hops": [],
            "wrapper_device": None,
            "wrapper_account": None,
            "wrapper_Sent_At__7": 0,
            "wrapper_score": None,
        },
    ]


def test_quarantine_gets_the_whole_record(spark: SparkSession, rich: WrapperFormat) -> None:
    values = records(rich)
    frame = refused_rows(source_records(spark, values), rich, BATCH)
    assert frame.columns == [column.name for column in QUARANTINE]
    (row,) = frame.collect()
    assert (row["cause"], row["sentence"]) == ("INVALID_GAME_NAME", "The game is TITLE_NONE or absent.")
    assert (bytes(row["bytes"]), row["record_id"]) == (values[2], "t/0/2")
