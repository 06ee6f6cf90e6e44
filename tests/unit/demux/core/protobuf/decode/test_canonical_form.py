from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from demux.core.protobuf.decode.canonical_batch import Payloads, parser, quick_check, read_all
from demux.core.protobuf.decode.canonical_form import Canonical
from demux.core.protobuf.decode.lowered_descriptor import lower_message
from demux.core.protobuf.schema.column_mapping import shape_of
from demux.core.protobuf.schema.descriptor_pool import Readable, pool_of
from tests.support.data.messages import payloads
from tests.support.data.mutations import (
    FIXED32,
    LENGTH,
    VARINT,
    Element,
    delimited,
    elements,
    shuffled,
    unknown,
    varint,
    written,
)
from tests.support.data.protos import CASES, PROTO2, PROTO3, WELL_KNOWN, Schema, compiled, message_type, of_text
from tests.support.oracle import fields_of

# a negative int32 in five bytes is written again in ten
MINUS_ONE = b"\xff\xff\xff\xff\x0f"
TEXT = """
message Inner { int32 x = 1; }
message M { int32 i = 1; uint32 u = 2; oneof o { int32 a = 3; int32 b = 4; } repeated int32 p = 5;
  map<string, int32> m = 6; Inner inner = 7; bool t = 8; repeated sint32 e = 9 [packed = false]; string s = 10;
  map<int32, Inner> by_id = 11; }
"""


def canonical_of(descriptor_set: bytes, message: str) -> Canonical:
    files = FileDescriptorSet.FromString(descriptor_set)
    readable = Readable(files, pool_of(files), message)
    return Canonical(readable, quick_check(readable.declared, shape_of(readable.declared)))


@pytest.fixture(scope="module")
def canonical() -> Canonical:
    descriptor_set, _, _ = of_text(TEXT, message="t.M")
    return canonical_of(descriptor_set, "t.M")


@pytest.mark.parametrize(("schema", "message"), CASES)
def test_what_a_parser_wrote_itself_is_canonical(schema: Schema, message: str) -> None:
    made = payloads(message_type(schema, message), seed=4, count=20)
    assert canonical_of(compiled(schema), message).split(made) == (range(20), [])


@pytest.mark.parametrize(
    ("schema", "message"),
    [(PROTO3, "kinds3.Nested"), (PROTO3, "kinds3.OneOf"), (PROTO2, "kinds2.Required"), (WELL_KNOWN, "known.Json")],
)
def test_the_order_of_fields_does_not_matter(schema: Schema, message: str) -> None:
    rng = random.Random(4)
    made = payloads(message_type(schema, message), seed=4, count=20)
    mixed = [written(shuffled(elements(payload), {}, rng)) for payload in made]
    assert mixed != made
    assert canonical_of(compiled(schema), message).split(mixed) == (range(20), [])


@pytest.mark.parametrize(("schema", "message"), CASES)
def test_an_unknown_field_is_never_canonical(schema: Schema, message: str) -> None:
    cls, rng = message_type(schema, message), random.Random(4)
    descriptor: Any = cls.DESCRIPTOR
    fields = {field.number: field for field in fields_of(descriptor)}
    made = [written(unknown(elements(payload), fields, rng)) for payload in payloads(cls, seed=4, count=20)]
    assert canonical_of(compiled(schema), message).split(made) == ([], list(range(20)))


@pytest.mark.parametrize(
    "parts",
    [
        [Element(1, VARINT, varint(1, padding=1))],
        [Element(1, VARINT, b"\x00")],
        [Element(1, VARINT, b"\x01"), Element(1, VARINT, b"\x02")],
        [Element(1, FIXED32, b"\x01\x00\x00\x00")],
        [Element(2, VARINT, varint(2**33))],
        [Element(3, VARINT, b"\x01"), Element(4, VARINT, b"\x01")],
        [Element(5, VARINT, b"\x01")],
        [delimited(7, b"\x08\x01"), delimited(7, b"")],
        [delimited(10, b"\xff")],
        [Element(7, LENGTH, b"\x80\x00")],
        [delimited(6, b"\x0a\x01a\x0a\x01a")],
    ],
    ids=lambda parts: written(parts).hex(),
)
def test_every_other_way_to_say_it_is_not_canonical(canonical: Canonical, parts: list[Element]) -> None:
    assert canonical.split([written(parts)]) == ([], [0])


@pytest.mark.parametrize(
    ("shorter", "longer"),
    [
        ([Element(3, VARINT, b"\x81\x82\x83\x01"), Element(4, VARINT, b"\x01")], [Element(1, VARINT, MINUS_ONE)]),
        ([Element(2, FIXED32, b"\x01\x00\x00\x00")], [Element(1, VARINT, MINUS_ONE)]),
        ([Element(2, VARINT, varint(1, padding=1))], [Element(5, VARINT, b"\x01")]),
        ([Element(2, VARINT, varint(1, padding=2))], [delimited(6, b"\x0a\x01k")]),
        ([delimited(7, b""), delimited(7, b"\x08\x01")], [delimited(6, b"\x10\x01")]),
        (
            [Element(1, VARINT, b"\x00"), Element(2, VARINT, varint(1, padding=2))],
            [delimited(9, b"\x02\x04\x06\x08\x0a\x0c")],
        ),
    ],
    ids=["both members", "wrong wire type", "unpacked", "entry without value", "merged", "packed"],
)
def test_what_is_lost_in_one_place_cannot_be_made_up_for_in_another(
    canonical: Canonical, shorter: list[Element], longer: list[Element]
) -> None:
    _, _, message = of_text(TEXT, message="t.M")
    for payload in (written([*shorter, *longer]), written([*longer, *shorter])):
        again = message.FromString(payload)
        again.DiscardUnknownFields()
        assert again.ByteSize() == len(payload)
        assert canonical.split([payload]) == ([], [0])


def test_a_number_without_a_name_is_unknown_however_long_the_rest_is_written_again() -> None:
    descriptor_set, _, message = of_text(
        "message M { optional int32 i = 1; optional C c = 2; } enum C { ONE = 1; }", "t.M", syntax="proto2"
    )
    lost, longer = Element(2, VARINT, varint(2**27)), Element(1, VARINT, MINUS_ONE)
    for payload in (written([lost, longer]), written([longer, lost])):
        again = message.FromString(payload)
        again.DiscardUnknownFields()
        assert again.ByteSize() == len(payload)
        assert canonical_of(descriptor_set, "t.M").split([payload]) == ([], [0])


def test_negative_numbers_in_five_bytes_and_other_truths_are_canonical_because_every_parser_reads_them(
    canonical: Canonical,
) -> None:
    out_of_order = written([Element(2, VARINT, b"\x05"), Element(1, VARINT, varint(2**64 - 1))])
    assert canonical.split([out_of_order, b""]) == (range(2), [])


def test_a_missing_required_field_is_not_canonical() -> None:
    canonical = canonical_of(compiled(PROTO2), "kinds2.Maps")
    # an entry of f_inner, whose value lacks its required id
    assert canonical.split([bytes.fromhex("8a01050a01611200"), b""]) == ([1], [0])


def test_bytes_that_do_not_parse_are_not_canonical(canonical: Canonical) -> None:
    assert canonical.split([b"\x0a", b"\xff\xff", b"\x0c", b"\x08"]) == ([], [0, 1, 2, 3])


def read(text: str, payloads: list[bytes]) -> pa.RecordBatch | None:
    descriptor: Any = of_text(text, message="t.M")[2].DESCRIPTOR
    return read_all(parser(lower_message(shape_of(descriptor), "proto3")), Payloads.of(payloads))


def test_messages_that_the_quick_look_does_not_know_are_told_apart_all_the_same() -> None:
    text = "message M { string a = 1; repeated string b = 2; }"
    descriptor_set, _, _ = of_text(text, message="t.M")
    canonical, fresh = canonical_of(descriptor_set, "t.M"), canonical_of(descriptor_set, "t.M")
    mixed, doubled, plain = b"\x12\x01b\x0a\x01a", b"\x0a\x01a\x0a\x01a", b"\x0a\x01a"
    payloads = [*[mixed] * 1000, doubled, plain]
    for _ in range(2):
        assert canonical.split(payloads, read(text, payloads)) == ([*range(1000), 1001], [1000])
    # the quick look is left out from now on, and nobody notices
    assert canonical._quick is None
    assert canonical.split([doubled, plain]) == fresh.split([doubled, plain]) == ([1], [0])


def test_what_is_not_canonical_says_nothing_about_the_quick_look() -> None:
    text = "message M { string a = 1; }"
    descriptor_set, _, _ = of_text(text, message="t.M")
    canonical = canonical_of(descriptor_set, "t.M")
    unreadable, doubled, plain = b"\x0a\x05a", b"\x0a\x01a\x0a\x01a", b"\x0a\x01a"
    mostly_doubled = [doubled] * 1000 + [plain]
    assert canonical.split(mostly_doubled, read(text, mostly_doubled)) == ([1000], list(range(1000)))
    # nor does one that cannot be read say anything about its neighbours
    payloads = [plain] * 1000 + [unreadable]
    assert read(text, payloads) is None
    assert canonical.split(payloads, None) == (list(range(1000)), [1000])
    assert canonical._quick is not None
