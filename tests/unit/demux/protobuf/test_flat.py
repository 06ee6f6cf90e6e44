"""What is proven canonical side by side is canonical for the slow test too, and ordinary payloads are proven."""

from __future__ import annotations

import random
import struct
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from hypothesis import given
from hypothesis import strategies as st

from demux.protobuf.canonical import Canonical
from demux.protobuf.flat import FlatCheck
from demux.protobuf.payloads import Payloads
from demux.protobuf.pool import opened, pool_of
from tests.messages import payloads
from tests.mutations import FIXED32, FIXED64, LENGTH, VARINT, Element, delimited, varint, written
from tests.protos import CASES, Schema, compiled, message_type, of_text

TEXT = """
message Inner { int32 x = 1; }
message M { string name = 1; int32 id = 2; bytes body = 3; optional int32 maybe = 4; bool yes = 5; uint64 big = 6;
  sint64 zigzag = 7; double score = 8; fixed32 code = 9; Inner inner = 10; repeated int32 list = 11;
  oneof o { int32 a = 12; string b = 13; } uint32 far = 2000; optional float share = 2001; }
"""
DESCRIPTOR_SET, _, MESSAGE = of_text(TEXT, message="t.M")


def slow_and_flat(descriptor_set: bytes, message: str) -> tuple[Canonical, FlatCheck]:
    files = FileDescriptorSet.FromString(descriptor_set)
    pool = pool_of(opened(files, pool_of(files)))
    slow = Canonical(pool, message)
    slow._flat = None
    return slow, FlatCheck(pool.FindMessageTypeByName(message))


SLOW, FLAT = slow_and_flat(DESCRIPTOR_SET, "t.M")
ELEMENTS = st.builds(
    Element,
    st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 99, 2000, 2001]),
    st.sampled_from([VARINT, LENGTH, FIXED32, FIXED64]),
    st.one_of(
        st.binary(max_size=12),
        st.sampled_from([b"\x00", b"\x01", b"\x03abc", b"\x00" * 8, b"\x00" * 7 + b"\x80", b"\x01\x00\x00\x00"]),
        st.integers(0, 2**64 - 1).map(varint),
        st.binary(max_size=9).map(lambda content: varint(len(content)) + content),
    ),
)


def assert_all_proven_are_canonical(payloads: list[bytes]) -> None:
    canonical = set(SLOW.split(payloads)[0])
    assert set(FLAT.proven(Payloads.of(payloads)).nonzero()[0].tolist()) <= canonical


@given(st.lists(st.lists(ELEMENTS, max_size=6).map(written), max_size=8))
def test_what_is_proven_is_canonical(payloads: list[bytes]) -> None:
    assert_all_proven_are_canonical(payloads)


@given(
    st.lists(
        st.lists(ELEMENTS, max_size=6).map(lambda parts: written(sorted(parts, key=lambda e: e.number))), max_size=8
    )
)
def test_what_is_proven_is_canonical_also_where_fields_are_in_order(payloads: list[bytes]) -> None:
    assert_all_proven_are_canonical(payloads)


@given(st.lists(st.binary(max_size=24), max_size=8))
def test_what_is_proven_of_any_bytes_is_canonical(payloads: list[bytes]) -> None:
    assert_all_proven_are_canonical(payloads)


@pytest.mark.parametrize(("schema", "message"), CASES)
def test_what_is_proven_of_every_kind_of_message_is_canonical(schema: Schema, message: str) -> None:
    slow, flat = slow_and_flat(compiled(schema), message)
    rng = random.Random(7)
    made = payloads(message_type(schema, message), seed=7, count=60)
    spoilt = [bytes(byte ^ (rng.random() < 0.05) for byte in payload) for payload in made]
    canonical = set(slow.split([*made, *spoilt])[0])
    assert set(flat.proven(Payloads.of([*made, *spoilt])).nonzero()[0].tolist()) <= canonical


def message(**fields: Any) -> bytes:
    return bytes(MESSAGE(**fields).SerializeToString())


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        message(name="chess", id=7, body=b"\xff\x00"),
        message(name="x" * 300, id=2**31 - 1, body=bytes(70_000)),
        message(maybe=0, yes=True, big=2**63 - 1, zigzag=-5, score=-1.5, code=1, far=2**32 - 1, share=0.0),
    ],
    ids=["empty", "wrapper", "long", "every kind"],
)
def test_an_ordinary_payload_is_proven_wherever_it_stands_in_the_batch(payload: bytes) -> None:
    assert FLAT.proven(Payloads.of([payload, b"\xff", payload])).tolist() == [True, False, True]


@pytest.mark.parametrize(
    "payload",
    [
        message(inner={"x": 1}),
        message(list=[1]),
        message(a=1),
        message(id=-1),
        message(name="将棋"),
        message(big=2**63),
        written([Element(8, FIXED64, struct.pack("<d", -0.0))]),
    ],
    ids=["message", "list", "oneof", "negative", "not ascii", "ten bytes", "minus zero"],
)
def test_what_needs_a_closer_look_is_left_to_the_slow_test(payload: bytes) -> None:
    assert FLAT.proven(Payloads.of([payload])).tolist() == [False]


@pytest.mark.parametrize(
    "parts",
    [
        [Element(2, VARINT, varint(1, padding=1))],
        [Element(2, VARINT, b"\x00")],
        [Element(5, VARINT, b"\x02")],
        [Element(2, VARINT, b"\x01"), Element(2, VARINT, b"\x02")],
        [Element(2, VARINT, b"\x01"), Element(1, LENGTH, b"\x01a")],
        [delimited(1, b"\xff")],
        [delimited(1, b"")],
        [Element(1, LENGTH, b"\x05abc")],
        [Element(1, LENGTH, b"\x81")],
        [Element(9, FIXED32, b"\x01\x00")],
        [Element(99, VARINT, b"\x01")],
    ],
    ids=lambda parts: written(parts).hex(),
)
def test_a_payload_that_says_it_otherwise_is_not_proven_and_its_neighbour_is(parts: list[Element]) -> None:
    neighbour = message(name="abcdef", id=5)
    assert FLAT.proven(Payloads.of([written(parts), neighbour])).tolist() == [False, True]


def test_no_payload_is_no_row() -> None:
    assert FLAT.proven(Payloads.of([])).tolist() == []


def test_a_slice_of_an_array_and_one_that_was_filled_are_read_as_they_are() -> None:
    whole = pa.array([b"\xff" * 20, message(name="abcdef", id=5), None, b"\x08\x01", message(id=3)], pa.binary())
    assert FLAT.proven(Payloads(whole.slice(1, 4).fill_null(b""))).tolist() == [True, True, False, True]
    assert FLAT.proven(Payloads(whole.slice(4))).tolist() == [True]
