from __future__ import annotations

import json
import math
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import DecodeError

from demux.core.protobuf.decode.reference_parser import MalformedRow, ReferenceParser, json_text, microseconds
from demux.core.protobuf.schema.column_mapping import shape_of
from demux.core.protobuf.schema.descriptor_pool import Readable, message_class, pool_of
from tests.support.data.messages import payloads, serialized
from tests.support.data.mutations import FIXED32, FIXED64, START, VARINT, Element, delimited, varint, written
from tests.support.data.protos import CASES, PROTO2, PROTO3, WELL_KNOWN, Schema, compiled, message_type, of_text
from tests.support.oracle import oracle_row

MIN_MICROS, MAX_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999


def reference_of(descriptor_set: bytes, message: str) -> ReferenceParser:
    files = FileDescriptorSet.FromString(descriptor_set)
    pool = pool_of(files)
    shape = shape_of(pool.FindMessageTypeByName(message))
    return ReferenceParser(Readable(files, pool, message).message, shape, pool)


def of_schema(schema: Schema, message: str) -> ReferenceParser:
    return reference_of(compiled(schema), message)


def inline(text: str, syntax: str = "proto3") -> ReferenceParser:
    descriptor_set, message, _ = of_text(text, syntax=syntax)
    return reference_of(descriptor_set, message)


def refusal(reference: ReferenceParser, payload: bytes) -> str:
    with pytest.raises(MalformedRow) as refused:
        reference.row(payload)
    return str(refused.value)


def as_list(value: Any) -> Any:
    """The reference's row as the oracle says it: maps as dicts."""
    match value:
        case [(_, _), *_] if all(isinstance(pair, tuple) for pair in value):
            return {key: as_list(inside) for key, inside in value}
        case list():
            return [as_list(inside) for inside in value]
        case dict():
            return {name: as_list(inside) for name, inside in value.items()}
    return value


@pytest.mark.parametrize(("schema", "message"), CASES)
def test_a_row_has_every_column_in_order(schema: Schema, message: str) -> None:
    reference, cls = of_schema(schema, message), message_type(schema, message)
    for payload in payloads(cls, seed=8, count=5):
        descriptor: Any = cls.DESCRIPTOR
        assert list(reference.row(payload)) == list(oracle_row(cls.FromString(payload), descriptor))


def test_an_empty_payload_is_a_message_of_defaults() -> None:
    row = of_schema(PROTO3, "kinds3.Singular").row(b"")
    assert row == {
        **dict.fromkeys([f"f_{name}" for name in ("int32", "int64", "uint32", "uint64", "sint32", "sint64")], 0),
        **dict.fromkeys([f"f_{name}" for name in ("fixed32", "fixed64", "sfixed32", "sfixed64", "float", "double")], 0),
        "f_bool": False,
        "f_string": "",
        "f_bytes": b"",
        "f_mood": "CALM",
        "f_inner": None,
    }
    assert set(of_schema(PROTO3, "kinds3.Optional").row(b"").values()) == {None}
    assert set(of_schema(PROTO2, "kinds2.Defaults").row(b"").values()) == {None}
    assert of_schema(PROTO3, "kinds3.Empty").row(b"") == {}


@pytest.mark.parametrize("payload", [b"\x08", b"\x0a\x05ab", b"\xff", b"\x0b", b"\x0c", b"\x00\x01", b"\x80" * 11])
def test_bytes_that_do_not_parse_are_refused_with_the_parsers_sentence(payload: bytes) -> None:
    assert refusal(of_schema(PROTO3, "kinds3.Optional"), payload).startswith("Error parsing message")


def test_a_proto3_string_that_is_not_utf8_is_refused() -> None:
    message = inline("message M { string s = 1; }")
    with pytest.raises(DecodeError) as said:
        message.message.FromString(b"\x0a\x01\xff")
    assert refusal(message, b"\x0a\x01\xff") == " ".join(str(said.value).split())


@pytest.mark.parametrize(
    ("field", "payload"),
    [
        ("optional string s = 1;", "0a01ff"),
        ("repeated string s = 1;", "0a01610a01ff"),
        ("map<string, int32> s = 1;", "0a050a01ff1001"),
        ("map<int32, string> s = 1;", "0a0508011201ff"),
        ("optional M inside = 2; optional string s = 1;", "12030a01ff"),
        ("optional M inside = 2; repeated string s = 1;", "12060a01610a01ff"),
        ("optional M inside = 2; map<string, string> s = 1;", "12080a060a016b1201ff"),
        ("optional M inside = 2; map<string, string> s = 1;", "12080a060a01ff120161"),
        ("optional group G = 1 { optional string s = 1; }", "0b0a01ff0c"),
    ],
)
def test_a_proto2_string_that_is_not_utf8_is_refused_wherever_it_stands(field: str, payload: str) -> None:
    sentence = refusal(inline(f"message M {{ {field} }}", "proto2"), bytes.fromhex(payload))
    assert "UTF-8" in sentence or "no JSON form" in sentence


@pytest.mark.parametrize(
    ("text", "parts", "sentence"),
    [
        (
            "message M { int32 x = 1; }",
            [delimited(1, b"a")],
            "Field 1 (x) of 't.M' has the wrong wire type: length-delimited",
        ),
        (
            "message M { string x = 1; }",
            [Element(1, VARINT, b"\x01")],
            "Field 1 (x) of 't.M' has the wrong wire type: varint",
        ),
        (
            "message M { N n = 2; } message N { fixed64 x = 1; }",
            [delimited(2, written([Element(1, FIXED32, bytes(4))]))],
            "Field 1 (x) of 't.N' has the wrong wire type: 32-bit",
        ),
        (
            "message M { repeated N n = 2; } message N { bool x = 1; }",
            [delimited(2, b""), delimited(2, written([Element(1, FIXED64, bytes(8))]))],
            "Field 1 (x) of 't.N' has the wrong wire type: 64-bit",
        ),
        (
            "message M { map<int32, N> n = 2; } message N { N x = 1; }",
            [delimited(2, written([delimited(2, written([Element(1, START, varint(1 << 3 | 4))]))]))],
            "Field 1 (x) of 't.N' has the wrong wire type: start group",
        ),
        (
            "message M { map<string, int32> n = 2; }",
            [delimited(2, written([delimited(1, b"k"), Element(2, FIXED32, bytes(4))]))],
            "Field 2 (value) of 't.M.NEntry' has the wrong wire type: 32-bit",
        ),
    ],
)
def test_a_wrong_wire_type_is_refused_because_a_parser_would_drop_the_value(
    text: str, parts: list[Element], sentence: str
) -> None:
    assert refusal(inline(text), written(parts)) == sentence


def test_a_wrong_wire_type_of_an_extension_is_refused() -> None:
    payload = written([delimited(100, b"x")])
    expected = "Field 100 (note) of 'kinds2.Extended' has the wrong wire type: length-delimited"
    assert refusal(of_schema(PROTO2, "kinds2.Extended"), payload) == expected
    inside = written([delimited(1, payload)])
    assert refusal(of_schema(PROTO2, "kinds2.HasExtended"), inside) == expected


def test_unknown_fields_are_left_out() -> None:
    unknown = [Element(99, VARINT, b"\x01"), delimited(98, b"x"), Element(97, START, b"\x08\x01" + varint(97 << 3 | 4))]
    assert inline("message M { int32 x = 1; }").row(written([Element(1, VARINT, b"\x05"), *unknown])) == {"x": 5}


@pytest.mark.parametrize(
    ("message", "payload", "missing"),
    [
        ("Groups", "0b1b1c0c", "single.deep.on"),
        ("Groups", "2a00", "last.id"),
        ("Lists", "8a01008a01020801", "f_inner[0].id"),
        ("Maps", "8a01050a01611200", "f_inner['a'].id"),
        ("HasExtended", "0a03ba0600", "one.inner.id"),
    ],
)
def test_a_missing_required_field_is_named_by_its_path(message: str, payload: str, missing: str) -> None:
    sentence = refusal(of_schema(PROTO2, f"kinds2.{message}"), bytes.fromhex(payload))
    assert sentence == f"Message 'kinds2.{message}' is missing required fields: {missing}"


def test_many_missing_fields_make_a_short_sentence() -> None:
    sentence = refusal(of_schema(PROTO2, "kinds2.Required"), b"")
    assert sentence.endswith("fields: f_int32, f_int64, f_uint32, f_uint64, f_sint32")


def test_a_missing_field_beside_a_map_of_scalars_is_named_and_nothing_else() -> None:
    # the parser's own FindInitializationErrors says many[<an address>].id here, or ends the process
    many = Element(2, START, delimited(2, b"\x08\x01\x12\x01a").written() + varint(2 << 3 | 4))
    for _ in range(50):
        assert refusal(of_schema(PROTO2, "kinds2.Groups"), written([many, many, delimited(5, b"")])).endswith(
            "is missing required fields: last.id"
        )


@pytest.mark.parametrize(
    ("seconds", "nanos", "micros"),
    [
        (0, 0, 0),
        (1, 999, 1_000_000),
        (-1, 999_999_999, -1),
        (-62_135_596_800, 0, MIN_MICROS),
        (253_402_300_799, 999_999_999, MAX_MICROS),
    ],
)
def test_a_timestamp_is_microseconds_truncated_towards_the_past(seconds: int, nanos: int, micros: int) -> None:
    assert microseconds(seconds, nanos) == micros


@pytest.mark.parametrize(
    ("seconds", "nanos"),
    [(-62_135_596_801, 0), (253_402_300_800, 0), (0, -1), (0, 1_000_000_000), (2**63 - 1, 0), (-(2**63), 2**31 - 1)],
)
def test_a_timestamp_outside_years_1_to_9999_is_refused(seconds: int, nanos: int) -> None:
    payload = written(
        [
            delimited(
                1, written([Element(1, VARINT, varint(seconds % 2**64)), Element(2, VARINT, varint(nanos % 2**64))])
            )
        ]
    )
    sentence = refusal(of_schema(WELL_KNOWN, "known.Times"), payload)
    assert sentence == f"Timestamp is out of range: {seconds} seconds, {nanos} nanos"


def test_a_duration_is_kept_whatever_it_is() -> None:
    payload = written(
        [delimited(4, written([Element(1, VARINT, varint(2**63 - 1)), Element(2, VARINT, varint(2**64 - 7))]))]
    )
    assert of_schema(WELL_KNOWN, "known.Times").row(payload)["took"] == {"seconds": 2**63 - 1, "nanos": -7}


def test_an_enum_is_its_first_name_and_an_unknown_number_its_digits() -> None:
    reference = of_schema(PROTO3, "kinds3.Singular")
    moods = [reference.row(written([Element(16, VARINT, varint(n % 2**64))]))["f_mood"] for n in (0, -1, 2, 77, -77)]
    assert moods == ["CALM", "ANGRY", "GLAD", "77", "-77"]


def test_a_default_of_the_schema_is_not_a_value() -> None:
    row = of_schema(PROTO2, "kinds2.Defaults").row(written([delimited(9, b"\x08\x05")]))
    assert row["m"] == {"id": 5, "text": None, "closed": None}
    assert (row["i"], row["e"]) == (None, None)


def test_a_doubled_field_counts_last_and_a_doubled_message_is_merged() -> None:
    reference = inline(
        "message M { int32 x = 1; N n = 2; map<string, int32> m = 3; } message N { int32 a = 1; int32 b = 2; }"
    )
    parts = [
        Element(1, VARINT, b"\x01"),
        Element(1, VARINT, b"\x02"),
        delimited(2, b"\x08\x01"),
        delimited(2, b"\x10\x02"),
    ]
    entries = [delimited(3, b"\x0a\x01k\x10" + bytes([value])) for value in (1, 2)]
    assert reference.row(written([*parts, *entries])) == {"x": 2, "n": {"a": 1, "b": 2}, "m": [("k", 2)]}


def test_minus_zero_and_nan_are_kept() -> None:
    row = of_schema(PROTO2, "kinds2.Packed").row(
        written([delimited(13, b"\x00" * 7 + b"\x80" + b"\x00" * 6 + b"\xf8\x7f")])
    )
    assert math.copysign(1, row["f_double"][0]) == -1
    assert math.isnan(row["f_double"][1])


HIDING = """message M { optional int32 ByteSize = 1; optional int32 ParseFromString = 2; optional int32 ListFields = 3;
  optional int32 IsInitialized = 4; optional int32 DESCRIPTOR = 5; optional int32 DiscardUnknownFields = 6;
  optional int32 SerializePartialToString = 7; optional int32 ByteSize_ = 8; optional N n = 9;
  enum E { ByteSize__ = 0; } }
  message N { optional int32 SerializeToString = 1; optional M m = 2; }"""


def test_fields_named_like_methods_hide_nothing() -> None:
    row = inline(HIDING, "proto2").row(written([Element(number, VARINT, bytes([number])) for number in range(1, 9)]))
    assert row == {
        "ByteSize": 1,
        "ParseFromString": 2,
        "ListFields": 3,
        "IsInitialized": 4,
        "DESCRIPTOR": 5,
        "DiscardUnknownFields": 6,
        "SerializePartialToString": 7,
        "ByteSize_": 8,
        "n": None,
    }


def test_a_field_gets_no_name_that_is_another_ones_in_json() -> None:
    reference = inline('message M { int32 ByteSize = 1; int32 size = 2 [json_name = "ByteSize_"]; }')
    assert reference.row(b"\x08\x01\x10\x02") == {"ByteSize": 1, "size": 2}


def test_json_of_a_message_whose_fields_hide_methods_is_refused_and_does_not_end_the_batch() -> None:
    assert refusal(inline(HIDING, "proto2"), written([delimited(9, written([delimited(2, b"\x28\x01")]))])).startswith(
        "t.M has no JSON form"
    )


JSON_POOL = pool_of(FileDescriptorSet.FromString(compiled(WELL_KNOWN)))


def text_of(message: Any) -> str:
    return json_text(JSON_POOL, message.DESCRIPTOR.full_name, serialized(message))


def known(name: str) -> Any:
    return message_class(JSON_POOL, f"google.protobuf.{name}")()


def test_json_is_one_line_with_sorted_keys_and_readable_letters() -> None:
    struct = known("Struct")
    struct.update({"b": [0.5, None, True, {"é": "日"}], "a": 1.5})
    assert text_of(struct) == '{"a": 1.5, "b": [0.5, null, true, {"é": "日"}]}'


def test_an_any_of_a_known_type_is_written_out_and_of_an_unknown_one_kept_in_base64() -> None:
    payload = message_class(JSON_POOL, "known.Payload")(id=5, text="x")
    packed = known("Any")
    packed.Pack(payload)
    assert json.loads(text_of(packed)) == {"@type": "type.googleapis.com/known.Payload", "id": 5, "text": "x"}
    unknown = known("Any")
    unknown.type_url, unknown.value = "type.example/nobody.Knows", b"\x00\xff"
    assert json.loads(text_of(unknown)) == {"@type": "type.example/nobody.Knows", "value": "AP8="}
    assert text_of(known("Any")) == "{}"


def test_an_any_whose_proto2_string_is_not_utf8_is_refused() -> None:
    descriptor_set, _, _ = of_text(
        'import "google/protobuf/any.proto"; message M { optional google.protobuf.Any a = 1; optional string s = 2; }',
        syntax="proto2",
    )
    packed = delimited(1, b"type.googleapis.com/t.M"), delimited(2, written([delimited(2, b"\xff")]))
    sentence = refusal(reference_of(descriptor_set, "t.M"), written([delimited(1, written(packed))]))
    assert sentence == "google.protobuf.Any has no JSON form: string field s had bad UTF-8"


def test_fields_with_the_same_json_name_are_both_read() -> None:
    text = "message M { optional int32 a_b = 1; optional int32 aB = 2; optional M inside = 3; }"
    row = inline(text, "proto2").row(bytes.fromhex("08011002" + "1a0408031004"))
    assert row == {"a_b": 1, "aB": 2, "inside": '{"aB": 3, "aB__2": 4}'}


def test_an_any_of_a_known_type_with_broken_bytes_is_refused() -> None:
    broken = known("Any")
    broken.type_url, broken.value = "type.googleapis.com/known.Payload", b"\x08"
    with pytest.raises(MalformedRow, match=r"^google\.protobuf\.Any has no JSON form: "):
        text_of(broken)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_value_that_json_cannot_say_is_refused(number: float) -> None:
    value = known("Value")
    value.number_value = number
    with pytest.raises(MalformedRow, match=r"^google\.protobuf\.Value has no JSON form: "):
        text_of(value)


def test_json_that_is_nested_too_deeply_is_refused_and_does_not_end_the_batch() -> None:
    inside = b""
    for _ in range(45):
        inside = written([delimited(6, written([delimited(1, inside)]))])
    row = of_schema(WELL_KNOWN, "known.Json").row(
        written([delimited(6, written([delimited(6, written([delimited(1, inside)]))]))])
    )
    assert row["value"].count("[") == 46
