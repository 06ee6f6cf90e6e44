"""What is known of records that no silver table has: by what decodes of them, and else by their bytes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import NO_FIELD, Column, Primitive, Struct
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.protocol import RegisteredSchema
from demux.core.schemas.ref import SchemaRef
from demux.core.tables import SILVER_ORIGIN
from demux.operations.erasure.payload_matching import (
    LOOKED_AT,
    MatchVerdict,
    PayloadQuery,
    Writing,
    verdicts_of,
)
from demux.operations.predicate.ast import sought_in
from demux.operations.predicate.binder import fit
from demux.operations.predicate.parser import parse

EVENT = """
syntax = "proto3"; package g;
message Event { string name = 1; int32 score = 2; Player player = 3; double share = 4; string renamed = 5; }
message Player { string name = 1; int32 level = 2; }
"""
PLAYER = Struct((Column("name", Primitive.STRING, 1), Column("level", Primitive.INT, 2)))
COLUMNS = Struct(
    (
        Column("name", Primitive.STRING, 1),
        Column("score", Primitive.DOUBLE, 2),
        Column("player", PLAYER, 3),
        Column("share", Primitive.BIGINT, 4),
        Column("later", Primitive.STRING, 9),
        Column("_rescued", Primitive.STRING, NO_FIELD),
        *SILVER_ORIGIN,
    )
)
KNOWN, GUID = SchemaRef(1), SchemaRef(None, "0-1")
ANN, SCORE, PLAYER_ANN = b"\x0a\x05annie", b"\x10\x05", b"\x1a\x07\x0a\x05annie"


def writing() -> Writing:
    compiled = compile_schema(RegisteredSchema(1, "g", 1, EVENT, "g/event.proto"))
    return Writing(7, compiled.descriptor_set, compiled.message)


def question(where: str, *, with_table: bool = True) -> PayloadQuery:
    parsed = parse(where)
    return PayloadQuery(
        fit(parsed, COLUMNS) if with_table else None, sought_in(parsed), {KNOWN: writing(), GUID: writing()}
    )


def row(payload: bytes | None, **more: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(column.name for column in LOOKED_AT)
    return {**nothing, "schema_id": 1, "bytes": payload, **more}


def batch_of(*rows: dict[str, Any]) -> pa.RecordBatch:
    """The rows, their times in microseconds since 1970."""
    schema = pa.schema(arrow_fields(Struct(LOOKED_AT)))
    times = pa.array([one["timestamp"] for one in rows], pa.int64()).cast(pa.timestamp("us", "UTC"))
    batch = pa.RecordBatch.from_pylist([{**one, "timestamp": None} for one in rows], schema)
    return batch.set_column(schema.get_field_index("timestamp"), schema.field("timestamp"), times)


def verdict(asked: PayloadQuery, one: dict[str, Any]) -> MatchVerdict:
    (found,) = verdicts_of(asked, batch_of(one))
    return found


@pytest.mark.parametrize(
    ("where", "payload", "expected"),
    [
        ("name = 'annie'", ANN + b"\x14", MatchVerdict.MEANT),
        ("name = 'annie'", b"\x0a\x03bob\x14", MatchVerdict.OTHER),
        ("name = 'annie'", ANN[:-1], MatchVerdict.UNREADABLE),
        ("name = 'annie'", b"\x14" + ANN, MatchVerdict.SUSPECT),
        ("player.name = 'annie'", PLAYER_ANN[:-1], MatchVerdict.UNREADABLE),
        ("player.name = 'annie'", b"\x1a\x09\x0a\x05annie", MatchVerdict.MEANT),
        # as its table would have it, and no value is nobody
        ("name = ''", b"", MatchVerdict.MEANT),
        ("name <> 'annie'", b"", MatchVerdict.MEANT),
        ("player.name = 'annie'", SCORE, MatchVerdict.OTHER),
        ("player IS NULL", SCORE, MatchVerdict.MEANT),
        # what is known decides, also where the rest is not
        ("score = 5 AND name = 'annie'", b"\x10\x06\x0a\x05anni", MatchVerdict.OTHER),
        ("score = 5 OR name = 'annie'", b"\x10\x05\x0a\x05anni", MatchVerdict.MEANT),
        ("score = 5 AND name = 'annie'", b"\x10\x05\x0a\x05anni", MatchVerdict.UNREADABLE),
        # a column that the row's schema has not
        ("later IS NULL", ANN, MatchVerdict.MEANT),
        ("later = 'annie'", ANN, MatchVerdict.OTHER),
        # that no field fills, and a field that does not fit its column
        ("_rescued LIKE '%annie%'", ANN, MatchVerdict.UNREADABLE),
        ("_rescued = 'annie'", ANN, MatchVerdict.SUSPECT),
        ("share = 5", b"\x21\0\0\0\0\0\0\x14\x40", MatchVerdict.UNREADABLE),
        ("name = 'annie'", None, MatchVerdict.UNREADABLE),
    ],
)
def test_of_a_payload(where: str, payload: bytes | None, expected: MatchVerdict) -> None:
    assert verdict(question(where), row(payload)) is expected


@pytest.mark.parametrize(
    ("where", "more", "expected"),
    [
        ("_record_id = 't/0/5'", {"record_id": "t/0/5"}, MatchVerdict.MEANT),
        ("_offset > 4", {"offset": 4}, MatchVerdict.OTHER),
        ("_topic = 'annie'", {"topic": None}, MatchVerdict.OTHER),
        ("_timestamp >= '1970-01-01T00:00:01'", {"timestamp": 1_000_000}, MatchVerdict.MEANT),
        # a time that Python has not
        ("_timestamp < '1970-01-01'", {"timestamp": -(2**63)}, MatchVerdict.MEANT),
        ("_schema_id = 7", {}, MatchVerdict.MEANT),
        ("_schema_id = 9", {"schema_id": 9}, MatchVerdict.MEANT),
        ("_schema_id = 7", {"schema_id": None, "schema_guid": "0-1"}, MatchVerdict.MEANT),
        ("_schema_id = 7", {"schema_id": None, "schema_guid": "0-2"}, MatchVerdict.UNREADABLE),
        ("_decoded_at IS NULL", {}, MatchVerdict.UNREADABLE),
        # a schema that nobody knows
        ("name = 'annie'", {"schema_id": 9}, MatchVerdict.SUSPECT),
        ("name = 'bobby'", {"schema_id": 9}, MatchVerdict.UNREADABLE),
    ],
)
def test_of_where_a_record_came_from_and_of_its_schema(
    where: str, more: dict[str, Any], expected: MatchVerdict
) -> None:
    assert verdict(question(where), row(ANN, **more)) is expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"bytes": b"\xff\xffannie\xff"}, MatchVerdict.SUSPECT),
        ({"bytes": b"\xff\xffann"}, MatchVerdict.UNREADABLE),
        ({"bytes": None, "key": b"user annie"}, MatchVerdict.SUSPECT),
        ({"headers": [{"key": "who", "value": b"annie"}]}, MatchVerdict.SUSPECT),
        ({"headers": [{"key": "annie", "value": None}]}, MatchVerdict.SUSPECT),
        (
            {"headers": [{"key": None, "value": None}], "topic": "annie", "record_id": "annie/0/1"},
            MatchVerdict.UNREADABLE,
        ),
    ],
)
def test_without_a_wrapper_or_a_table_only_bytes_tell(more: dict[str, Any], expected: MatchVerdict) -> None:
    assert verdict(question("name = 'annie'", with_table=False), row(b"", **more)) is expected


def test_each_row_of_a_batch_is_judged_by_its_own_bytes() -> None:
    rows = [row(ANN), row(b"\x0a\x03bob"), row(ANN[:-1]), row(b"\x14" + ANN)]
    found = verdicts_of(question("name = 'annie'"), batch_of(*rows))
    assert [one.value for one in found] == ["meant", "other", "unreadable", "suspect"]
