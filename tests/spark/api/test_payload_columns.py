"""`demux.decode` and `demux.encode` on Spark: batch and stream, several schemas in a column, bad rows, round trips."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import demux
from demux.core.errors import ArgumentInvalid, RegistryUnavailable, SchemaUnknown
from demux.core.registry.protocol import RegisteredSchema
from tests.support.data.chess import VERSION_1, VERSION_3, compiled, payload
from tests.support.data.messages import payloads
from tests.support.data.protos import PROTO3, message_type
from tests.support.data.protos import compiled as descriptor_set
from tools.memory_registry import MemoryRegistry

V1, V3 = compiled(VERSION_1, 11, 1), compiled(VERSION_3, 13, 3)
ANNA = payload(V1, user_name="anna", moves=3)
BERT = payload(V3, player="bert", board={"blitz": True}, clocks=[1, 2**40])
ANNA_ROW = {"user_name": "anna", "moves": 3, "board": None, "clocks": None}
BERT_ROW = {"user_name": "bert", "moves": 0, "board": {"blitz": True, "opening": ""}, "clocks": [1, 2**40]}


@pytest.fixture
def registry() -> MemoryRegistry:
    return MemoryRegistry(
        RegisteredSchema(at, "chess", at - 10, text, "chess.proto") for at, text in ((11, VERSION_1), (13, VERSION_3))
    )


def frame(schema_id: int) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + b"\0"


def rows(decoded: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in decoded.orderBy("n").collect()]


def kafka_rows(spark: SparkSession) -> DataFrame:
    """Records as a topic has them: key, value, headers and timestamp, some of them bad."""
    values = [frame(11) + ANNA, frame(13) + BERT, None, b"", frame(99) + ANNA, frame(11) + b"\xff"]
    at, headers = datetime(2025, 1, 2, 3, 4, 5, 678_901), [("trace", bytearray(b"\x01"))]
    sent = [(n, f"k{n}", value and bytearray(value), headers, at) for n, value in enumerate(values)]
    kind = "n int, key string, value binary, headers array<struct<key: string, value: binary>>, timestamp timestamp"
    return spark.createDataFrame(sent, kind)


EXPECTED = [(ANNA_ROW, None), (BERT_ROW, None), (None, None)]
CAUSES = [None, None, None, "MALFORMED_FRAME", "UNKNOWN_SCHEMA", "MALFORMED_PAYLOAD"]


def test_a_column_of_framed_payloads_of_several_versions_is_decoded_beside_the_other_columns(
    spark: SparkSession, registry: MemoryRegistry
) -> None:
    sent = kafka_rows(spark)
    decoded = demux.decode(sent, "value", registry=registry, subject="chess", framing="confluent")
    assert decoded.columns == ["n", "key", "headers", "timestamp", "message", "_quarantine"]
    found = rows(decoded)
    assert [(row["message"], row["_quarantine"]) for row in found[:3]] == EXPECTED
    assert [row["_quarantine"] and row["_quarantine"]["cause"] for row in found] == CAUSES
    assert [bytes(row["_quarantine"]["bytes"]) for row in found[3:]] == [b"", frame(99) + ANNA, frame(11) + b"\xff"]
    others = [(row["key"], row["headers"], row["timestamp"]) for row in found]
    assert others == [(row["key"], row["headers"], row["timestamp"]) for row in rows(sent)]
    good = decoded.where("_quarantine IS NULL AND message.moves = 3").select("message.user_name")
    assert [row[0] for row in good.collect()] == ["anna"]


def test_an_empty_frame_and_ids_in_a_column(spark: SparkSession, registry: MemoryRegistry) -> None:
    sent = spark.createDataFrame(
        [(0, 11, ANNA), (1, 13, BERT), (2, None, ANNA), (3, 7, ANNA)], "n int, id int, value binary"
    )
    decoded = demux.decode(sent, "value", registry=registry, schema_id="id", into=None)
    found = rows(decoded)
    assert [row["user_name"] for row in found] == ["anna", "bert", None, None]
    assert [row["_quarantine"] and row["_quarantine"]["cause"] for row in found] == [
        None,
        None,
        *["UNKNOWN_SCHEMA"] * 2,
    ]
    assert rows(demux.decode(sent.limit(0), "value", registry=registry, subject="chess")) == []


def test_a_stream_is_decoded_in_foreach_batch_and_directly(
    spark: SparkSession, registry: MemoryRegistry, tmp_path: Path
) -> None:
    kafka_rows(spark).coalesce(1).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(kafka_rows(spark).schema).parquet(str(tmp_path / "in"))
    batches: list[list[dict[str, Any]]] = []

    def take(batch: DataFrame, number: int) -> None:
        batches.append(rows(demux.decode(batch, "value", registry=registry, subject="chess", framing="confluent")))

    once = stream.writeStream.trigger(availableNow=True)
    once.option("checkpointLocation", str(tmp_path / "one")).foreachBatch(take).start().awaitTermination()
    decoded = demux.decode(stream, "value", registry=registry, subject="chess", framing="confluent")
    again = demux.encode(decoded.where("message IS NOT NULL").drop("_quarantine"), "message", schema=V3_BY_OLD_NAMES)
    writer = again.writeStream.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / "two"))
    writer.format("parquet").option("path", str(tmp_path / "out")).start().awaitTermination()
    (found,) = batches
    assert [(row["message"], row["_quarantine"]) for row in found[:3]] == EXPECTED
    assert [row["_quarantine"] and row["_quarantine"]["cause"] for row in found] == CAUSES
    written = rows(spark.read.parquet(str(tmp_path / "out")))
    assert [row["message"] for row in written] == [ANNA_ROW, BERT_ROW]
    assert [bytes(row["value"]) for row in written] == [ANNA, BERT]


V3_BY_OLD_NAMES = compiled(VERSION_3.replace("player", "user_name"), 13, 3).descriptor_set


@pytest.mark.parametrize("message", ["kinds3.Singular", "kinds3.Nested"])
def test_what_spark_decodes_it_encodes_as_google_protobuf_does(spark: SparkSession, message: str) -> None:
    schema, cls = descriptor_set(PROTO3), message_type(PROTO3, message)
    made = [cls.FromString(data).SerializeToString(deterministic=True) for data in payloads(cls, seed=5, count=30)]
    sent = spark.createDataFrame([(n, bytearray(data)) for n, data in enumerate(made)], "n int, sent binary")
    decoded = demux.decode(sent.withColumn("data", F.col("sent")), "data", schema=schema, message=message)
    again = demux.encode(decoded.drop("_quarantine"), "message", schema=schema, message=message)
    found = [(bytes(row.sent), bytes(row.value)) for row in again.select("sent", "value").collect()]
    assert len(found) == len(made)
    for before, after in found:
        assert cls.FromString(after).SerializeToString(deterministic=True) == before
        assert len(after) == len(before)


def test_rows_that_cannot_be_written_say_why_and_frames_are_read_again(
    spark: SparkSession, registry: MemoryRegistry
) -> None:
    sent = spark.createDataFrame(
        [(0, "anna", 3), (1, "bert", 2**40), (2, None, None)], "n int, player string, moves bigint"
    )
    encoded = demux.encode(sent, ["player", "moves"], registry=registry, subject="chess", framing="confluent")
    found = rows(encoded)
    assert [row["value"] and bytes(row["value"]) for row in found] == [frame(13) + ANNA, None, frame(13)]
    assert [row["_quarantine"] for row in found] == [
        None,
        {"cause": "UNFIT_VALUE", "sentence": "Column moves is 1099511627776, outside of int32."},
        None,
    ]
    read = demux.decode(
        encoded.drop("player", "moves", "_quarantine"), "value", registry=registry, subject="chess", framing="confluent"
    )
    assert [row["message"] and row["message"]["user_name"] for row in rows(read)] == ["anna", None, ""]


def test_what_cannot_be_decoded_is_said_before_a_row_is_read(spark: SparkSession, registry: MemoryRegistry) -> None:
    sent = spark.createDataFrame([(0, 11, ANNA)], "n int, id int, value binary")
    stream = spark.readStream.format("rate").load().selectExpr("CAST('x' AS BINARY) AS value", "1 AS id")
    wrong: list[tuple[DataFrame, dict[str, Any], type[Exception], str]] = [
        (sent, {"column": "valu"}, ArgumentInvalid, "no column 'valu'.*nearest name is 'value'"),
        (sent, {"column": "id"}, ArgumentInvalid, "'id' is INT, not BINARY"),
        (sent, {"registry": None}, ArgumentInvalid, "Nothing says where the schemas are"),
        (sent, {"subject": "ches"}, SchemaUnknown, "the nearest is 'chess'"),
        (sent, {"subject": None}, ArgumentInvalid, "no subject"),
        (sent, {"schema": b""}, ArgumentInvalid, "goes with no registry"),
        (sent, {"schema_id": 11}, ArgumentInvalid, "one id for all rows"),
        (sent, {"schema_id": "id", "framing": "confluent"}, ArgumentInvalid, "Leave one of them out"),
        (sent, {"schema_id": "value"}, ArgumentInvalid, "'value' is BINARY"),
        (sent, {"framing": "avro"}, ArgumentInvalid, "Use 'bare' or 'confluent'"),
        (sent, {"into": "ID"}, ArgumentInvalid, "two columns 'ID'"),
        (sent, {"rescued": "message"}, ArgumentInvalid, "two columns 'message'"),
        (stream, {"subject": None, "schema_id": "id"}, ArgumentInvalid, "not known before it runs"),
        (sent.selectExpr("value", "value"), {}, ArgumentInvalid, "2 columns 'value'"),
    ]
    for given, arguments, error, sentence in wrong:
        with pytest.raises(error, match=sentence):
            demux.decode(given, **{"column": "value", "registry": registry, "subject": "chess", **arguments})
    with pytest.raises(ArgumentInvalid, match=r"no field for the column id.*no field for the column value"):
        demux.encode(sent, ["id", "value"], registry=registry, subject="chess", into="out")
    with pytest.raises(ArgumentInvalid, match="A frame has the id of a registry"):
        demux.encode(sent, [], schema=V3.descriptor_set, framing="confluent", into="out")
    registry.reachable = False
    with pytest.raises(RegistryUnavailable):
        demux.decode(sent, "value", registry=registry, subject="chess")
