from __future__ import annotations

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet

from demux.core.protobuf.decode.lowered_descriptor import ROOT, can_lower, lower_message
from demux.core.protobuf.schema.column_mapping import Message, shape_of
from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of
from tests.support.data.messages import payloads, serialized
from tests.support.data.protos import (
    CASES,
    EDITION_2023,
    NAMES,
    PROTO2,
    PROTO3,
    RECURSIVE,
    WELL_KNOWN,
    Schema,
    compiled,
    message_type,
)

UNREADABLE = {
    "kinds2.Groups",
    "kinds2.Extended",
    "kinds2.HasExtended",
    "kinds2.HasBag",
    "kinds2023.Delimited",
    "delimited.Root",
}
READABLE = [(schema, message) for schema, message in CASES if message not in UNREADABLE]


def shape(schema: Schema, message: str) -> Message:
    pool = pool_of(FileDescriptorSet.FromString(compiled(schema)))
    return shape_of(pool.FindMessageTypeByName(message))


def fields(schema: Schema, message: str, syntax: str = "proto3") -> dict[str, FieldDescriptorProto]:
    (file,) = lower_message(shape(schema, message), syntax).file
    return {field.name: field for field in file.message_type[0].field}


@pytest.mark.parametrize(("schema", "message"), CASES)
def test_only_groups_keep_a_message_from_being_lowered(schema: Schema, message: str) -> None:
    assert can_lower(shape(schema, message)) is (message not in UNREADABLE)


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
@pytest.mark.parametrize(("schema", "message"), READABLE)
def test_the_lowered_message_reads_every_byte_and_writes_the_same(schema: Schema, message: str, syntax: str) -> None:
    plain = message_class(pool_of(lower_message(shape(schema, message), syntax)), ROOT)
    for payload in payloads(message_type(schema, message), seed=2, count=12):
        read = plain.FromString(payload)
        read.DiscardUnknownFields()
        # a map has no order, inside messages neither: the same bytes, each as often
        assert sorted(serialized(read)) == sorted(payload)


def test_fields_are_named_by_number_so_that_no_name_can_harm() -> None:
    assert list(fields(NAMES, "names.Keywords")) == [f"f{number}" for number in range(1, 16)]


def test_an_enum_is_a_plain_number_and_json_text_is_plain_bytes() -> None:
    assert fields(PROTO3, "kinds3.Singular")["f16"].type == FieldDescriptorProto.TYPE_INT32
    assert fields(PROTO3, "kinds3.Nested")["f3"].type == FieldDescriptorProto.TYPE_BYTES
    json = fields(WELL_KNOWN, "known.Json")
    assert {json[name].type for name in ("f1", "f2", "f4", "f6", "f9")} == {FieldDescriptorProto.TYPE_BYTES}
    assert fields(RECURSIVE, "recursive.Tree")["f2"].type == FieldDescriptorProto.TYPE_BYTES


def test_presence_and_packing_are_kept() -> None:
    assert {field.proto3_optional for field in fields(PROTO3, "kinds3.Optional").values()} == {True, False}
    assert not any(field.proto3_optional for field in fields(EDITION_2023, "kinds2023.Implicit").values())
    assert not any(field.proto3_optional for field in fields(PROTO2, "kinds2.Defaults", "proto2").values())
    packed = {field.options.packed for field in fields(PROTO2, "kinds2.Packed").values()}
    expanded = {field.options.packed for field in fields(PROTO3, "kinds3.Expanded").values()}
    assert (packed, expanded) == ({True}, {False})


def test_equal_messages_are_lowered_once() -> None:
    (file,) = lower_message(shape(WELL_KNOWN, "known.Inside"), "proto3").file
    # Inside, Times, Timestamp, Duration
    assert [message.name for message in file.message_type] == ["M0", "M1", "M2", "M3"]
