"""Every decoder of the lane gives the same rows, refuses the same rows, and agrees with the oracle."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from pyspark.sql import SparkSession

from demux.core.columns.types import Struct
from demux.core.delta.batch_commit import REFUSED
from demux.core.errors import SchemaUnknown
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.schemas.ref import SchemaRef
from demux.core.settings.games import Contract, Frozen, SchemaChanges
from demux.core.streaming.session import has_protobuf_functions
from demux.core.tables import SILVER_RESERVED
from deserializer.decoders.schema_decision import Refusal, SchemaLookup, WriterSchema, decide
from deserializer.decoders.select import RowDecoder, unsuited_reason
from tests.support.data.messages import payloads
from tests.support.data.mutations import mutated
from tests.support.data.protos import CASES, Schema, compiled, message_type, of_text
from tests.support.oracle import difference, oracle_row
from tests.support.spark.rows import Ref, Rows, Sent, by_function, by_spark

pytestmark = pytest.mark.usefixtures("compiled_plans")

# what from_protobuf cannot read goes to the arrow decoder, which has its own tests
SUITED = [
    (schema, name) for schema, name in CASES if unsuited_reason([WriterSchema(1, compiled(schema), name)]) is None
]


def test_the_lane_has_the_decoders_that_it_is_tested_with(spark: SparkSession, lane: str) -> None:
    assert has_protobuf_functions(spark) is (lane == "oldest")


@pytest.mark.parametrize(("schema", "name"), SUITED, ids=str)
def test_generated_and_mutated_messages_of_every_kind(
    spark: SparkSession, tmp_path: Path, decoder: RowDecoder, schema: Schema, name: str
) -> None:
    message = message_type(schema, name)
    decisions = decide(Struct(()), {SchemaRef(1): CompiledSchema(1, "game", 1, name, compiled(schema))})
    valid = payloads(message, seed=7, count=150)
    sent: Sent = [(1, payload) for payload in [*valid, *bent(valid, message, 450), b"", None]]

    got = by_spark(spark, tmp_path, decoder, sent, decisions)

    assert differences(by_function(sent, decisions), got, sent) == []
    expected = [oracle_row(message.FromString(payload), _descriptor(message), SILVER_RESERVED) for payload in valid]
    columns = [{column.name: row[column.name] for column in decisions.columns} for row in got]
    assert differences(expected, columns[: len(valid)], sent[: len(valid)]) == []


# by field number: renamed, narrower, another order, more and fewer columns at every level
OLD = """
import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto"; enum Side { LEFT = 0; RIGHT = 1; }
message Event {
  int64 score = 1; double ratio = 2; Inner inner = 3; repeated Inner inners = 4; map<int64, uint64> counts = 5;
  Empty empty = 6; string gone = 7; uint64 big = 8; map<string, Inner> by_name = 9; repeated int64 laps = 10;
  uint64 unsigned = 11; google.protobuf.Int64Value maybe = 12; repeated Empty empties = 13;
  map<int32, Empty> holes = 14;
}
message Inner { string text = 1; int64 number = 2; Side side = 3; google.protobuf.Timestamp at = 4; }
message Empty {}
"""
NEW = """
import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto"; enum Side { LEFT = 0; CENTER = 1; }
message Event {
  map<string, Inner> by_name = 9; int32 points = 1; float ratio = 2; Inner inner = 3; repeated Inner inners = 4;
  map<uint32, uint32> counts = 5; Empty empty = 6; int32 big = 8; repeated sint32 laps = 10; uint32 unsigned = 11;
  google.protobuf.Int32Value maybe = 12; repeated Empty empties = 13; map<int32, Empty> holes = 14;
  oneof choice { Inner chosen = 20; google.protobuf.Timestamp at = 21; bool on = 22; }
}
message Inner { repeated uint32 more = 9; uint32 number = 2; Side side = 3; }
message Empty { int32 full = 1; }
"""
MISFIT = "message Event { string score = 1; }"


def test_two_versions_in_one_table_beside_rows_that_no_schema_reads(
    spark: SparkSession, tmp_path: Path, decoder: RowDecoder
) -> None:
    texts = {11: OLD, 12: NEW, 13: MISFIT}
    made = {schema_id: of_text(text) for schema_id, text in texts.items()}
    known = {
        SchemaRef(schema_id): CompiledSchema(schema_id, "game", schema_id, name, descriptor_set)
        for schema_id, (descriptor_set, name, _) in made.items()
    }
    unknown = SchemaUnknown("The registry has no schema 99.", "Register it.")
    rows = {SchemaRef(11): 2, SchemaRef(12): 2, SchemaRef(13): 1}
    decisions = decide(Struct(()), {**known, SchemaRef(99): unknown, SchemaRef(None): unknown}, rows=rows)
    assert [type(decisions.by_ref[SchemaRef(each)]) for each in (11, 12, 13, 99)] == [
        WriterSchema,
        WriterSchema,
        Refusal,
        Refusal,
    ]
    sent: list[tuple[Ref, bytes | None]] = []
    for schema_id in (11, 12):
        message = made[schema_id][2]
        valid = payloads(message, seed=schema_id, count=200)
        sent += [(schema_id, payload) for payload in [*valid, *bent(valid, message, 300), None]]
    sent += [(13, b""), (99, sent[0][1]), (None, sent[1][1]), (None, None)]
    random.Random(1).shuffle(sent)

    got = by_spark(spark, tmp_path, decoder, sent, decisions)

    assert differences(by_function(sent, decisions), got, sent) == []
    assert {row["_schema_id"] for row in got if not row[REFUSED]} == {11, 12}


def test_what_a_frozen_table_has_no_column_for_is_rescued_alike(
    spark: SparkSession, tmp_path: Path, decoder: RowDecoder
) -> None:
    made = {schema_id: of_text(text) for schema_id, text in ((11, OLD), (12, NEW))}
    answers: dict[SchemaRef, SchemaLookup] = {
        SchemaRef(schema_id): CompiledSchema(schema_id, "game", schema_id, name, descriptor_set)
        for schema_id, (descriptor_set, name, _) in made.items()
    }
    table = decide(Struct(()), {SchemaRef(11): answers[SchemaRef(11)]})
    rescuing = Contract(SchemaChanges.FREEZE, Frozen.RESCUE)
    decisions = decide(table.columns, answers, table.message, rescuing)
    assert (decisions.columns, len(decisions.writers)) == (table.columns, 2)
    newer = payloads(made[12][2], seed=5, count=100)
    # the newer bytes under the older id too
    sent: Sent = [
        (schema_id, payload) for schema_id in (12, 11) for payload in [*newer, *bent(newer, made[12][2], 100)]
    ]

    got = by_spark(spark, tmp_path, decoder, sent, decisions)

    assert differences(by_function(sent, decisions), got, sent) == []
    held = [(row["_schema_id"], row["_rescued"]) for row in got if not row[REFUSED]]
    assert {schema_id for schema_id, left in held if left is not None} == {11, 12}
    assert (12, None) in held


def test_rows_name_their_schema_by_id_or_guid_and_their_message_by_indexes(
    spark: SparkSession, tmp_path: Path, decoder: RowDecoder
) -> None:
    text = "message Both {{ {0} a = 1; }} message Only {{ {0} b = 2; int32 c = 3; }}"
    (old, *_), (new, *_) = of_text(text.format("int32")), of_text(text.format("sint32"))
    first, second = (CompiledSchema(at, "game", at, "t.Both", each) for at, each in ((1, old), (2, new)))
    answers: dict[SchemaRef, SchemaLookup] = {
        SchemaRef(1): first,
        SchemaRef(1, None, "0"): first,
        SchemaRef(1, None, "1"): replace(first, message="t.Only"),
        SchemaRef(None, "0f"): second,
        SchemaRef(9, "0f", "0"): second,
    }
    decisions = decide(Struct(()), answers)
    # the field with value 6, which is 3 as sint32
    sent: list[tuple[Ref, bytes | None]] = [(ref, b"\x08\x06") for ref in answers]
    sent += [(SchemaRef(9, "0f", "0"), b"\x08"), (SchemaRef(1, None, "0"), b"")]

    got = by_spark(spark, tmp_path, decoder, sent, decisions)

    assert differences(by_function(sent, decisions), got, sent) == []
    assert [(row["_schema_id"], row["a"], row[REFUSED]) for row in got] == [
        (1, 6, False),
        (1, 6, False),
        # its field 2 is not the table's
        (1, None, True),
        (2, 3, False),
        (2, 3, False),
        (2, None, True),
        (1, 0, False),
    ]


def test_two_subjects_with_the_same_message_name_are_decoded_each_by_its_own(
    spark: SparkSession, tmp_path: Path, decoder: RowDecoder
) -> None:
    (one, name, _), (two, same, _) = (
        of_text("message Event { int32 a = 1; }"),
        of_text("message Event { string b = 2; }"),
    )
    assert name == same == "t.Event"
    answers = {
        SchemaRef(1): CompiledSchema(1, "x", 1, name, one),
        SchemaRef(2): CompiledSchema(2, "y", 1, name, two),
    }
    decisions = decide(Struct(()), answers)
    sent: Sent = [(1, b"\x08\x05"), (2, b"\x12\x01x"), (1, b"\x12\x01x"), (2, b"\x08\x05")]

    got = by_spark(spark, tmp_path, decoder, sent, decisions)

    assert differences(by_function(sent, decisions), got, sent) == []
    rows = [(row["_schema_id"], row["a"], row["b"]) for row in got]
    assert rows == [(1, 5, None), (2, None, "x"), (1, 0, None), (2, None, "")]


def test_extensions_are_columns_like_any_other(spark: SparkSession, tmp_path: Path, decoder: RowDecoder) -> None:
    text = """
    message Event { optional int32 own = 1; extensions 100 to max; repeated Event2 inside = 2; }
    message Event2 { required int32 id = 1; extensions 5 to 10; }
    extend Event { optional string note = 100; repeated sint64 many = 105; optional Event2 more = 106; }
    extend Event2 { optional bool on = 7; }
    """
    descriptor_set, name, message = of_text(text, "t.Event", syntax="proto2")
    decisions = decide(Struct(()), {SchemaRef(1): CompiledSchema(1, "game", 1, name, descriptor_set)})
    valid = payloads(message, seed=3, count=60)
    sent: Sent = [(1, payload) for payload in [*valid, *bent(valid, message, 200)]]

    got = by_spark(spark, tmp_path, decoder, sent, decisions)

    assert {"own", "t_note", "t_many", "t_more"} < set(got[0])
    assert differences(by_function(sent, decisions), got, sent) == []


def bent(valid: list[bytes], message: type[Message], count: int) -> list[bytes]:
    rng, descriptor = random.Random(8), _descriptor(message)
    return [mutated(rng.choice(valid), descriptor, rng) for _ in range(count)]


def _descriptor(message: type[Message]) -> Descriptor:
    # its stubs name the class of every implementation
    descriptor: Any = message.DESCRIPTOR
    return cast(Descriptor, descriptor)


def differences(expected: list[dict[str, Any]], got: Rows, sent: Sent) -> list[str]:
    pairs = zip(expected, got, sent, strict=True)
    return [f"{payload!r}: {found}" for mine, theirs, payload in pairs if (found := difference(mine, theirs))]
