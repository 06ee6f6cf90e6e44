"""Single values of payloads that may be broken: never another value than the reference has."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from demux.core.columns.types import NO_FIELD, Array, Map, Primitive, Struct
from demux.core.protobuf.decode.decoder import decoder_of
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.protobuf.wire.field_probe import FieldProbe, Numbers, UnreadableValue, glimpse_of
from demux.core.protobuf.wire.wire_fields import chunks_of
from demux.core.registry.protocol import RegisteredSchema
from tests.support.data.messages import payloads
from tests.support.data.protos import CASES, Schema, compiled, message_type

EVENT = """
syntax = "proto2"; package g;
message Event {
  optional string name = 1;
  optional int32 score = 2;
  optional double share = 3;
  repeated string tags = 4;
  map<string, Player> players = 5;
  optional group Place = 6 { optional uint64 x = 1; }
  optional Player player = 7;
}
message Player { optional string name = 1; optional int32 level = 2; }
"""
# of each message, at so many places of each payload
SENT, CUTS = 6, 12


def ways(
    columns: Struct, above: Numbers = (), names: tuple[str, ...] = ()
) -> Iterator[tuple[Numbers, tuple[str, ...]]]:
    """Every column, and every one inside a message, but for lists and maps, which nothing is compared with."""
    for column in columns:
        if column.number == NO_FIELD or isinstance(column.type, Array | Map):
            continue
        numbers, path = (*above, column.number), (*names, column.name)
        yield numbers, path
        if isinstance(column.type, Struct):
            yield from ways(column.type, numbers, path)


def at(row: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        row = None if row is None else row[name]
    return row


def same(one: Any, other: Any) -> bool:
    # NaN is not equal to itself, and zeros are to each other
    return repr(one) == repr(other)


def seen(glimpse: FieldProbe, payload: bytes, numbers: Numbers) -> Any:
    try:
        return glimpse.value(payload, numbers)
    except UnreadableValue:
        return UnreadableValue


@pytest.mark.thorough
@pytest.mark.parametrize(("schema", "message"), CASES)
def test_each_value_is_the_references_one_and_of_a_payload_that_is_cut_off_that_or_none(
    schema: Schema, message: str
) -> None:
    by = decoder_of(compiled(schema), message)
    glimpse = glimpse_of(compiled(schema), message, frozenset())
    assert glimpse is not None
    known = list(ways(by.columns))
    rng = random.Random(message)
    for payload in payloads(message_type(schema, message), 3, SENT):
        row = by._reference.row(payload)
        for numbers, path in rng.sample(known, min(len(known), 40)):
            expected = at(row, path)
            whole = seen(glimpse, payload, numbers)
            # a message set has another form
            assert same(whole, expected) or (whole is UnreadableValue and message == "kinds2.HasBag"), (payload, path)
            for end in rng.sample(range(len(payload)), min(len(payload), CUTS)):
                found = seen(glimpse, payload[:end], numbers)
                # between two fields nobody can see that it was cut off
                _, is_whole = chunks_of(payload[:end])
                assert is_whole or found is UnreadableValue or same(found, expected), (payload[:end], path)


@pytest.fixture(scope="module")
def event() -> FieldProbe:
    schema = compile_schema(RegisteredSchema(1, "g", 1, EVENT, "g/event.proto"))
    return FieldProbe(schema.descriptor_set, schema.message, frozenset())


ANN, BOB = b"\x0a\x03ann", b"\x0a\x03bob"


@pytest.mark.parametrize(
    ("payload", "numbers", "value"),
    [
        (ANN, (1,), "ann"),
        (b"", (1,), None),
        (b"\x10\x05", (1,), None),
        # the last one counts
        (ANN + BOB, (1,), "bob"),
        # broken before it, behind it, and in it
        (b"\x14" + ANN, (1,), UnreadableValue),
        (ANN + b"\x14", (1,), "ann"),
        (ANN[:-1], (1,), UnreadableValue),
        # the same in a message, of which more than its end may be there
        (b"\x3a\x05" + ANN, (7, 1), "ann"),
        (b"\x3a\x09" + ANN + b"\x10\x05", (7, 1), "ann"),
        (b"\x3a\x04" + ANN, (7, 1), UnreadableValue),
        (b"\x3a\x09" + ANN, (7, 2), UnreadableValue),
        (b"\x3a\x09" + ANN, (7,), UnreadableValue),
        # a message that comes twice is one
        (b"\x3a\x05" + ANN + b"\x3a\x02\x10\x05", (7, 1), "ann"),
        (b"\x3a\x02\x10\x05", (7, 1), None),
        # no UTF-8, another wire type
        (b"\x0a\x01\xff", (1,), UnreadableValue),
        (b"\x08\x05", (1,), UnreadableValue),
        (b"\x38\x05", (7, 1), UnreadableValue),
        # something else is wrong, but not here
        (b"\x0a\x01\xff\x10\x05", (2,), 5),
        (b"\x38\x05" + ANN, (1,), "ann"),
        (b"\x33\x08\x07\x34", (6, 1), 7),
        (b"\x33\x08\x07", (6, 1), 7),
        # what the schema has not, or is inside a text, a list or a map
        (ANN, (99,), None),
        (ANN, (1, 1), None),
        (ANN, (4, 1), None),
        (ANN, (5, 1), None),
    ],
)
def test_single_values(event: FieldProbe, payload: bytes, numbers: Numbers, value: object) -> None:
    assert seen(event, payload, numbers) == value


def test_types_are_those_of_the_columns(event: FieldProbe) -> None:
    found = [event.type_of(numbers) for numbers in ((1,), (2,), (3,), (6, 1), (7, 1), (99,), (1, 1), (4, 1))]
    text = Primitive.STRING
    assert found == [text, Primitive.INT, Primitive.DOUBLE, Primitive.DECIMAL_20_0, text, None, None, None]


def test_a_schema_that_cannot_be_used_has_none() -> None:
    schema = compile_schema(RegisteredSchema(1, "g", 1, EVENT, "g/event.proto"))
    assert glimpse_of(schema.descriptor_set, "g.Other", frozenset()) is None
