"""A message cut into the fields that stand on the wire, up to where it is broken."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from demux.core.protobuf.wire.wire_fields import WireField, WireType, chunks_of, wrap_field
from tests.support.data.messages import payloads
from tests.support.data.mutations import elements, varint
from tests.support.data.protos import CASES, Schema, message_type

NAME = b"\x0a\x03ann"
GROUP = b"\x13\x08\x07\x14"


@pytest.mark.parametrize(
    ("message", "chunks", "is_whole"),
    [
        (b"", [], True),
        (NAME, [WireField(1, WireType.LENGTH, NAME, b"ann")], True),
        (b"\x08\x96\x01", [WireField(1, WireType.VARINT, b"\x08\x96\x01", b"\x96\x01")], True),
        (b"\x0d1234", [WireField(1, WireType.FIXED32, b"\x0d1234", b"1234")], True),
        (b"\x0912345678", [WireField(1, WireType.FIXED64, b"\x0912345678", b"12345678")], True),
        (GROUP, [WireField(2, WireType.GROUP, GROUP, b"\x08\x07")], True),
        # a group in a group, and a text inside that looks like an end
        (
            b"\x13\x1b\x1c\x0a\x01\x14\x14",
            [WireField(2, WireType.GROUP, b"\x13\x1b\x1c\x0a\x01\x14\x14", b"\x1b\x1c\x0a\x01\x14")],
            True,
        ),
        # what is cut off may be of use where it has a length or a tag
        (
            NAME + b"\x12\x05an",
            [WireField(1, WireType.LENGTH, NAME, b"ann"), WireField(2, WireType.LENGTH, b"\x12\x05an", b"an", False)],
            False,
        ),
        (
            NAME + b"\x13\x08\x07",
            [
                WireField(1, WireType.LENGTH, NAME, b"ann"),
                WireField(2, WireType.GROUP, b"\x13\x08\x07", b"\x08\x07", False),
            ],
            False,
        ),
        (NAME + b"\x12", [WireField(1, WireType.LENGTH, NAME, b"ann")], False),
        (NAME + b"\x10\x96", [WireField(1, WireType.LENGTH, NAME, b"ann")], False),
        (NAME + b"\x15123", [WireField(1, WireType.LENGTH, NAME, b"ann")], False),
        # an end without a beginning, a field 0, a wire type that does not exist, a number that is too large
        (NAME + b"\x14", [WireField(1, WireType.LENGTH, NAME, b"ann")], False),
        (b"\x02\x00", [], False),
        (b"\x0e\x00", [], False),
        (varint(2**29 << 3) + b"\x00", [], False),
        (b"\x08" + b"\xff" * 10 + b"\x01", [], False),
        (b"\x13\x08\x07\x1c", [WireField(2, WireType.GROUP, b"\x13\x08\x07\x1c", b"\x08\x07\x1c", False)], False),
    ],
)
def test_fields_are_found_up_to_where_it_is_broken(message: bytes, chunks: list[WireField], is_whole: bool) -> None:
    assert chunks_of(message) == (tuple(chunks), is_whole)


@given(st.binary(max_size=200))
@example(b"\x0b" * 150)
def test_whatever_the_bytes_are_the_chunks_are_their_beginning(message: bytes) -> None:
    chunks, is_whole = chunks_of(message)
    together = b"".join(chunk.raw for chunk in chunks)
    assert message.startswith(together)
    assert not is_whole or together == message
    assert all(chunk.is_whole for chunk in chunks[:-1])
    assert all(chunk.body in chunk.raw for chunk in chunks)


@pytest.mark.parametrize(("schema", "message"), CASES)
def test_real_messages_are_cut_as_others_cut_them(schema: Schema, message: str) -> None:
    for payload in payloads(message_type(schema, message), 1, 10):
        chunks, is_whole = chunks_of(payload)
        assert is_whole
        assert [(one.number, int(one.wire)) for one in chunks] == [
            (one.number, one.wire_type) for one in elements(payload)
        ]
        assert b"".join(chunk.raw for chunk in chunks) == payload


@pytest.mark.parametrize("wire", [WireType.LENGTH, WireType.GROUP])
@given(st.integers(1, 2**29 - 1), st.lists(st.binary(max_size=200), max_size=3))
def test_a_message_that_is_wrapped_again_is_one_field(wire: WireType, number: int, texts: list[bytes]) -> None:
    body = b"".join(b"\x0a" + varint(len(text)) + text for text in texts)
    again = wrap_field(number, wire, body)
    assert chunks_of(again) == ((WireField(number, wire, again, body),), True)
