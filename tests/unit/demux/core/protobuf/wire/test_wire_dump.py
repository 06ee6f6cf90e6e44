"""Payloads taken apart as far as they go: the reference says how far that is."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import DecodeError, Message
from hypothesis import given
from hypothesis import strategies as st

from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.protobuf.wire.wire_dump import Dump, DumpedField, Stop, dump
from demux.core.registry.protocol import RegisteredSchema

TEXT = """
syntax = "proto2"; package g;
enum Color { RED = 0; BLUE = 5; }
message Event {
  optional string name = 1;
  optional int32 score = 2;
  optional sint64 shift = 3;
  optional double share = 4;
  optional float ratio = 5;
  optional fixed32 code = 6;
  optional sfixed64 offset = 7;
  optional bool done = 8;
  optional bytes raw = 9;
  optional Color color = 10;
  repeated int32 marks = 11 [packed = true];
  optional Event inside = 12;
  map<string, int64> counts = 13;
  optional group Place = 14 { optional uint64 x = 1; }
  optional uint64 big = 15;
  repeated float rates = 16 [packed = true];
}
"""


def event(text: str) -> tuple[type[Message], Descriptor]:
    schema = compile_schema(RegisteredSchema(1, "g", 1, text, "g/event.proto"))
    pool = pool_of(FileDescriptorSet.FromString(schema.descriptor_set))
    return message_class(pool, schema.message), pool.FindMessageTypeByName(schema.message)


EVENT, KIND = event(TEXT)
UNKNOWN, _ = event('syntax = "proto3"; message Unknown { bool last = 536870911; }')

WHOLE: dict[str, Any] = {
    "name": "ann\x1b[31m",
    "score": -3,
    "shift": -7,
    "share": 0.1,
    "ratio": 0.5,
    "code": 7,
    "offset": -9,
    "done": True,
    "raw": b"\x00\xff",
    "color": 5,
    "marks": [1, -2, 300],
    "inside": {"name": "bob"},
    "counts": {"a": 1},
    "place": {"x": 4},
    "big": 2**64 - 1,
    "rates": [0.5],
}


def test_a_message_is_shown_whole_with_names_and_with_the_values_of_its_kinds() -> None:
    found = dump(EVENT(**WHOLE).SerializeToString(), KIND)
    assert (found.more, found.stop) == (0, None)
    assert found.parts == (
        DumpedField(1, "name", '"ann\\u001b[31m"'),
        DumpedField(2, "score", "-3"),
        DumpedField(3, "shift", "-7"),
        DumpedField(4, "share", "0.1"),
        DumpedField(5, "ratio", "0.5"),
        DumpedField(6, "code", "7"),
        DumpedField(7, "offset", "-9"),
        DumpedField(8, "done", "true"),
        DumpedField(9, "raw", "0x00ff"),
        DumpedField(10, "color", "BLUE"),
        DumpedField(11, "marks", "[1, -2, 300]"),
        DumpedField(12, "inside", None, (DumpedField(1, "name", '"bob"'),)),
        DumpedField(13, "counts", None, (DumpedField(1, "key", '"a"'), DumpedField(2, "value", "1"))),
        DumpedField(14, "place", None, (DumpedField(1, "x", "4"),)),
        DumpedField(15, "big", "18446744073709551615"),
        DumpedField(16, "rates", "[0.5]"),
    )


def test_without_a_schema_numbers_stay_and_what_may_be_a_message_is_shown_as_one() -> None:
    payload = EVENT(name="ann", score=150, inside={"score": 1}, raw=b"\xfe\xff").SerializeToString()
    assert dump(payload) == Dump(
        (
            DumpedField(1, None, '"ann"'),
            DumpedField(2, None, "150"),
            DumpedField(9, None, "0xfeff"),
            DumpedField(12, None, None, (DumpedField(2, None, "1"),)),
        ),
        0,
        None,
    )


def test_it_ends_at_the_field_that_breaks_with_all_that_came_before() -> None:
    payload = EVENT(name="ann", inside={"name": "bob"}).SerializeToString()
    # the inner name is one byte longer than what is left of the inner message
    broken = payload.replace(b"\x03bob", b"\x04bob")
    assert dump(broken, KIND) == Dump(
        (DumpedField(1, "name", '"ann"'), DumpedField(12, "inside", None, ())),
        0,
        Stop(8, "the field 1 has 4 bytes, and 3 are left"),
    )


@pytest.mark.parametrize(
    ("payload", "stop"),
    [
        (b"\x08", Stop(1, "a number does not end")),
        (b"\x08" + b"\xff" * 10, Stop(1, "a number has more than 10 bytes")),
        (b"\x10\x01\x0a\x05ab", Stop(3, "the field 1 has 5 bytes, and 2 are left")),
        (b"\x0d\x01", Stop(1, "a number of 4 bytes, and 1 are left")),
        (b"\x0e", Stop(0, "the field 1 has the wire type 6, which there is not")),
        (b"\x0c", Stop(0, "a group 1 ends here, and none has begun")),
        (b"\x0b\x10\x01", Stop(3, "the group 1 does not end")),
        (b"\x80" * 4 + b"\x10", Stop(0, "no field has the number 536,870,912")),
        (b"\x0b" * 5000, Stop(17, "messages are nested deeper than 16: not looked at any further")),
    ],
)
def test_each_break_has_its_place_and_its_reason(payload: bytes, stop: Stop) -> None:
    assert dump(payload).stop == stop


def test_a_field_in_another_wire_type_than_the_schemas_has_no_name_as_the_reference_does_not_know_it() -> None:
    assert dump(b"\x08\x05\x12\x01a", KIND).parts == (DumpedField(1, None, "5"), DumpedField(2, None, '"a"'))


def test_text_that_is_none_is_shown_as_bytes_and_said() -> None:
    assert dump(b"\x0a\x02a\xff", KIND).parts == (DumpedField(1, "name", "0x61ff (no UTF-8 text from its byte 1 on)"),)


def test_what_is_shown_is_bounded_and_the_end_is_still_found() -> None:
    many = b"\x08\x01" * 5_000
    assert dump(many, most=3) == Dump((DumpedField(1, None, "1"),) * 3, 4_997, None)
    assert dump(many + b"\x0e", most=3).stop == Stop(10_000, "the field 1 has the wire type 6, which there is not")
    long = dump(EVENT(name="x" * 100_000).SerializeToString(), KIND).parts[0].value
    assert long == f'"{"x" * 200}" … (100,000 bytes)'
    nested = b""
    for _ in range(200):
        nested = EVENT(inside=EVENT.FromString(nested)).SerializeToString() if len(nested) < 100 else nested
    assert size(dump(nested * 500, KIND, 50).parts) <= 50


def size(parts: tuple[DumpedField, ...]) -> int:
    return sum(1 + size(part.parts) for part in parts)


@pytest.mark.parametrize("unit", [b"\x0a\x00", b"\x0a\x02\x0a\x00", b"\x08\x01", b"\x0b\x0c"])
def test_a_megabyte_of_small_fields_is_looked_at_up_to_a_number_of_fields(unit: bytes) -> None:
    many = unit * (2**20 // len(unit))
    for kind in (None, KIND):
        found = dump(many, kind)
        assert found.stop is not None
        assert found.stop.reason == "more than 20,000 fields: not looked at any further"
        # and the messages around the place where it stops
        assert size(found.parts) + found.more <= 20_000 + 16
    # each guess that it is a message looks at the same bytes again
    for _ in range(5):
        length = [len(many) >> shift & 0x7F | (0x80 if shift < 28 else 0) for shift in range(0, 35, 7)]
        many = b"\x0a" + bytes(length) + many
    found = dump(many)
    assert (len(found.parts), found.more) == (1, 0)


BITS = st.sampled_from([0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 15, 16, 0x7F, 0x80, 0xFF])
HOSTILE = st.binary(max_size=60) | st.lists(BITS, max_size=40).map(bytes)


@given(HOSTILE, st.integers(0, 5))
def test_any_bytes_give_an_answer_and_it_is_broken_exactly_where_the_reference_says_so(
    payload: bytes, most: int
) -> None:
    try:
        UNKNOWN.FromString(payload)
        is_whole = True
    except DecodeError:
        is_whole = False
    found = dump(payload, None, most)
    assert (found.stop is None) == is_whole
    assert size(found.parts) <= most + 16
    assert found.stop is None or 0 <= found.stop.offset <= len(payload)


@given(HOSTILE)
def test_with_a_schema_too(payload: bytes) -> None:
    found = dump(payload, KIND)
    try:
        EVENT.FromString(payload)
    except DecodeError:
        # a packed list is looked at by itself
        assert found.stop is not None or "and then" in repr(found.parts)
    else:
        assert found.stop is None


@given(st.binary(max_size=300), st.text(max_size=50), st.integers(-(2**31), 2**31 - 1))
def test_a_valid_message_is_shown_whole_however_its_bytes_are_cut(raw: bytes, name: str, score: int) -> None:
    payload = EVENT(raw=raw, name=name, score=score, inside={"raw": raw}).SerializeToString()
    whole = dump(payload, KIND)
    assert whole.stop is None
    assert [part.number for part in whole.parts] == [1, 2, 9, 12]
    for end in range(0, len(payload), 7):
        cut = dump(payload[:end], KIND)
        assert [part.number for part in cut.parts] == [1, 2, 9, 12][: len(cut.parts)]


@given(HOSTILE)
def test_what_is_shown_has_no_control_characters(payload: bytes) -> None:
    shown = repr([dump(payload), dump(payload, KIND)]).replace("\\\\", "")
    assert "\\x1b" not in shown
    assert "\\n" not in shown
