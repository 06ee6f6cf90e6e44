"""Frames against Confluent's own serializer, and against bytes that are none."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.schema_registry.serde import SchemaId
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given
from hypothesis import strategies as st

from demux.core.protobuf.wire.framing import Frame, NotFramed, frame_before, frame_bytes, frame_in_header
from demux.core.protobuf.wire.framing_batch import Frames, after_frames, frames_before, frames_in_headers
from tests.support.data.protos import of_text

NESTED = """
    message First { int32 x = 1; }
    message Second {
      message Inner { message Innermost { int32 x = 1; } int32 x = 1; }
      message Other { int32 x = 1; }
      int32 x = 1;
    }
"""
PLACES = {
    "t.First": "0",
    "t.Second": "1",
    "t.Second.Inner": "1,0",
    "t.Second.Inner.Innermost": "1,0,0",
    "t.Second.Other": "1,1",
}
GUID = "f3fb74ca-b1bd-4d35-a7c3-6e8ad3ba9538"

index_lists = st.lists(st.integers(0, 70) | st.integers(0, 2**31 - 1), min_size=1, max_size=9)
ids = st.integers(0, 2**31 - 1)
payloads = st.binary(max_size=12)


def framed(which: int | str, indexes: list[int] | None) -> bytes:
    """The frame as Confluent's library writes it."""
    guid = which if isinstance(which, str) else None
    schema_id = SchemaId("PROTOBUF", which if isinstance(which, int) else None, guid, indexes)
    data: bytes = schema_id.guid_to_bytes() if guid else schema_id.id_to_bytes()
    return data


frames = st.builds(framed, ids | st.uuids().map(str), index_lists)
# what looks like a frame, and mostly is none
broken = st.builds(
    lambda magic, rest: magic + rest,
    st.sampled_from([b"", b"\x00", b"\x01", b"\x02", b"\x00\x00\x00\x00\x01", b"\x00\xff\xff\xff\xff", b"\x01" * 17]),
    st.binary(max_size=20),
)
values = st.none() | st.builds(lambda frame, payload: frame + payload, frames, payloads) | broken


def of_values(*data: bytes | None) -> Frames:
    return frames_before(pa.array(data, pa.binary()))


def rows(found: Frames) -> list[Frame | None]:
    columns = (found.schema_id.to_pylist(), found.guid.to_pylist(), found.indexes.to_pylist(), found.lengths.tolist())
    return [Frame(*row) if row[3] else None for row in zip(*columns, strict=True)]


def one_by_one(data: Sequence[bytes | None], read: Any) -> tuple[list[Frame | None], list[tuple[int, str]]]:
    found: list[Frame | None] = []
    bad = []
    for position, value in enumerate(data):
        try:
            found.append(None if value is None else read(value))
        except NotFramed as reason:
            found.append(None)
            bad.append((position, str(reason)))
    return found, bad


@pytest.mark.parametrize(("message", "indexes"), PLACES.items())
def test_what_confluents_serializer_puts_before_a_message_is_read_back(message: str, indexes: str) -> None:
    _, _, of = of_text(NESTED, message)
    client = SchemaRegistryClient.new_client({"url": "mock://framing"})
    context = SerializationContext("topic", MessageField.VALUE, [])
    data = ProtobufSerializer(of, client, {})(of(x=7), context)
    found = of_values(data)
    (registered,) = client.get_subjects()
    schema_id = client.get_latest_version(registered).schema_id
    assert (found.schema_id.to_pylist(), found.guid.to_pylist(), found.indexes.to_pylist()) == (
        [schema_id],
        [None],
        [indexes],
    )
    assert after_frames(pa.array([data], pa.binary()), found.lengths).to_pylist() == [b"\x08\x07"]


@pytest.mark.parametrize(("message", "indexes"), PLACES.items())
def test_what_confluents_serializer_puts_into_the_header_is_read_back(message: str, indexes: str) -> None:
    _, _, of = of_text(NESTED, message)
    client = SchemaRegistryClient.new_client({"url": "mock://framing"})
    headers: list[Any] = []
    serializer = ProtobufSerializer(of, client, {"schema.id.serializer": header_schema_id_serializer})
    serializer(of(x=7), SerializationContext("topic", MessageField.VALUE, headers))
    ((name, data),) = headers
    found = frames_in_headers(pa.array([data], pa.binary()))
    assert name == "__value_schema_id"
    assert (found.schema_id.to_pylist(), found.indexes.to_pylist(), found.bad) == ([None], [indexes], ())
    (registered,) = client.get_subjects()
    assert found.guid.to_pylist() == [client.get_latest_version(registered).guid]


@given(st.lists(st.tuples(ids | st.uuids().map(str), index_lists, payloads), max_size=12))
def test_a_batch_of_frames_comes_back_with_every_id_index_and_payload(sent: list[tuple[Any, list[int], bytes]]) -> None:
    data = pa.array([framed(which, indexes) + payload for which, indexes, payload in sent], pa.binary())
    found = frames_before(data)
    assert found.schema_id.to_pylist() == [which if isinstance(which, int) else None for which, _, _ in sent]
    assert found.guid.to_pylist() == [which if isinstance(which, str) else None for which, _, _ in sent]
    assert found.indexes.to_pylist() == [",".join(map(str, indexes)) for _, indexes, _ in sent]
    assert after_frames(data, found.lengths).to_pylist() == [payload for _, _, payload in sent]
    assert found.bad == ()


@given(st.lists(values, max_size=12))
def test_a_batch_is_read_as_its_values_one_by_one(data: list[bytes | None]) -> None:
    found = of_values(*data)
    each, bad = one_by_one(data, frame_before)
    assert rows(found) == each
    assert list(found.bad) == bad
    rest = [value and value[frame.length if frame else 0 :] for value, frame in zip(data, each, strict=True)]
    assert after_frames(pa.array(data, pa.binary()), found.lengths).to_pylist() == rest


@given(st.lists(values | frames, max_size=12))
def test_a_batch_of_headers_is_read_as_its_values_one_by_one(data: list[bytes | None]) -> None:
    found = frames_in_headers(pa.array(data, pa.binary()))
    each, bad = one_by_one(data, frame_in_header)
    assert rows(found) == each
    assert list(found.bad) == bad


@given(st.lists(values, min_size=3, max_size=12))
def test_a_slice_of_an_array_is_read_like_an_array_of_its_own(data: list[bytes | None]) -> None:
    part = pa.array(data, pa.binary())[1:-1]
    found = frames_before(part)
    assert rows(found) == one_by_one(data[1:-1], frame_before)[0]
    assert after_frames(part, np.zeros(len(part), np.int64)).to_pylist() == data[1:-1]


@given(st.binary(max_size=40) | broken)
def test_bytes_that_we_read_as_a_frame_are_the_same_frame_to_confluents_library(data: bytes) -> None:
    try:
        ours = frame_before(data)
    except NotFramed:
        return
    theirs, stream = SchemaId("PROTOBUF"), io.BytesIO(data)
    theirs.from_bytes(stream)
    assert (ours.schema_id, ours.guid) == (theirs.id, None if theirs.guid is None else str(theirs.guid))
    assert ours.indexes == ",".join(map(str, theirs.message_indexes or []))
    assert ours.length == stream.tell()


@pytest.mark.parametrize("which", [7, GUID])
@pytest.mark.parametrize("indexes", [[0], [1], [1, 0], [300, 2, 70_000]])
def test_a_frame_cut_off_at_any_byte_is_none(which: int | str, indexes: list[int]) -> None:
    frame = framed(which, indexes)
    cut = [frame[:end] for end in range(len(frame))]
    assert [position for position, _ in of_values(*cut).bad] == list(range(len(frame)))
    assert of_values(frame).bad == ()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty"),
        (b"{}", "it begins with 0x7b, not with 0x00 or 0x01"),
        (b"\x00\x00\x01", "it ends after 3 bytes, within its schema id"),
        (b"\x01" * 9, "it ends after 9 bytes, within its GUID"),
        (b"\x00\x00\x00\x00\x07", "it ends after 5 bytes, within its message indexes"),
        (b"\x00\x00\x00\x00\x07\x04\x02", "it ends after 7 bytes, within its message indexes"),
        (b"\x00\x80\x00\x00\x00\x00", "its schema id 2147483648 is above 2147483647"),
        (b"\x00\x00\x00\x00\x07\x01", "it has -1 message indexes, and may have 0 to 100"),
        (b"\x00\x00\x00\x00\x07\xca\x01", "it has 101 message indexes, and may have 0 to 100"),
        (b"\x00\x00\x00\x00\x07\x02\x01", "it has the message index -1"),
        (b"\x00\x00\x00\x00\x07\x02\xff\xff\xff\xff\xff\x01", "it has a message index of more than 32 bits"),
        (b"\x00\x00\x00\x00\x07\x02\xff\xff\xff\xff\x7f", "it has a message index of more than 32 bits"),
        # the least number of 33 bits
        (b"\x00\x00\x00\x00\x07\x02\x80\x80\x80\x80\x10", "it has a message index of more than 32 bits"),
    ],
)
def test_bytes_without_a_frame_say_why(data: bytes, reason: str) -> None:
    assert of_values(b"\x00\x00\x00\x00\x07\x00", data).bad == ((1, reason),)


def test_a_header_may_name_the_schema_alone_and_must_end_with_its_frame() -> None:
    data = [framed(7, None), framed(GUID, None), framed(7, [1, 0]), framed(7, [0]) + b"more"]
    found = frames_in_headers(pa.array(data, pa.binary()))
    assert rows(found) == [Frame(7, None, None, 5), Frame(None, GUID, None, 17), Frame(7, None, "1,0", 8), None]
    assert found.bad == ((3, "it has 10 bytes, and its frame only 6"),)


def test_an_index_in_more_bytes_than_it_needs_is_the_same_index() -> None:
    assert rows(of_values(b"\x00\x00\x00\x00\x07\x82\x00\x86\x80\x00", b"\x00\x00\x00\x00\x07\x80\x00")) == [
        Frame(7, None, "3", 10),
        Frame(7, None, "0", 7),
    ]


@given(st.integers(0, 2**31 - 1), st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5))
def test_a_frame_that_is_written_is_read_again(schema_id: int, indexes: list[int]) -> None:
    data = frame_bytes(schema_id, tuple(indexes))
    read = frame_before(data + b"rest")
    assert (read.schema_id, read.indexes, read.length) == (schema_id, ",".join(map(str, indexes)), len(data))


def test_the_first_message_of_a_file_is_one_byte() -> None:
    assert frame_bytes(7, (0,)) == b"\0\0\0\0\x07\0"
