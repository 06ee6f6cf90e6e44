from __future__ import annotations

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from demux.core.errors import SchemaInvalid
from demux.core.protobuf.schema.descriptor_pool import files_of, has_required, listed, message_class, pool_of
from tests.support.data.messages import payloads, serialized
from tests.support.data.protos import (
    ALL_DELIMITED,
    CASES,
    EDITION_2023,
    PROTO2,
    PROTO3,
    WELL_KNOWN,
    Schema,
    compiled,
    message_type,
)


def files(schema: Schema) -> FileDescriptorSet:
    return FileDescriptorSet.FromString(compiled(schema))


def test_a_pool_knows_every_message_of_the_set_and_no_other() -> None:
    pool = pool_of(files(WELL_KNOWN))
    assert message_class(pool, "known.Payload")(id=5, text="a") == message_class(pool, "known.Payload")(text="a", id=5)
    with pytest.raises(KeyError):
        message_class(pool, "known.Nothing")


def test_a_file_that_the_parser_refuses_is_an_invalid_schema_with_the_files_name() -> None:
    broken = FileDescriptorProto(name="a.proto", syntax="proto3")
    broken.message_type.add(name="M").field.add(
        name="x", number=1, type=FieldDescriptorProto.TYPE_MESSAGE, type_name=".N"
    )
    with pytest.raises(SchemaInvalid, match=r"File 'a\.proto' of the schema cannot be used"):
        pool_of(FileDescriptorSet(file=[broken]))


def test_the_files_of_a_message_are_its_imports_and_its_extensions_imports_first() -> None:
    texts = {
        "base.proto": 'syntax = "proto2"; package b; message Base { extensions 100 to 200; }',
        "unused.proto": 'syntax = "proto3"; package u; message U {}',
        "more.proto": 'syntax = "proto2"; package m; import "base.proto"; import "unused.proto"; '
        "extend b.Base { optional int32 x = 100; }",
    }
    pool = pool_of(_by_hand(texts))
    assert [file.name for file in files_of(pool, "b.Base").file] == ["base.proto", "unused.proto", "more.proto"]
    assert [file.name for file in files_of(pool, "u.U").file] == ["unused.proto"]
    assert listed(pool, "b.Base").FromString(b"\xa0\x06\x05").DESCRIPTOR.full_name == "b.Base"


def _by_hand(texts: dict[str, str]) -> FileDescriptorSet:
    from demux.core.protobuf.schema.protoc import compile_schema
    from demux.core.registry.protocol import ImportedFile, RegisteredSchema

    references = tuple(ImportedFile(path, text) for path, text in texts.items() if path != "more.proto")
    schema = RegisteredSchema(1, "s", 1, texts["more.proto"], "more.proto", references, "b.Base")
    return FileDescriptorSet.FromString(compile_schema(schema).descriptor_set)


@pytest.mark.parametrize(("schema", "message"), CASES)
def test_a_class_with_maps_as_lists_gives_back_every_byte_in_its_place(schema: Schema, message: str) -> None:
    read = listed(pool_of(files(schema)), message)
    made = payloads(message_type(schema, message), seed=3, count=10)
    assert [serialized(read.FromString(payload)) for payload in made] == made


def test_entries_keep_their_zeros_and_are_never_groups() -> None:
    entry = b"\x0a\x06\x0a\x00\x12\x02\x08\x00"
    flag = b"\x12\x04\x08\x00\x10\x00"
    read = listed(pool_of(files(ALL_DELIMITED)), "delimited.Maps")
    # the value's own id has implicit presence: its zero is left out
    assert serialized(read.FromString(entry + flag)) == b"\x0a\x04\x0a\x00\x12\x00" + flag


@pytest.mark.parametrize(
    ("schema", "message", "required"),
    [
        (PROTO3, "kinds3.Nested", False),
        (PROTO2, "kinds2.Packed", False),
        (PROTO2, "kinds2.OneOf", True),
        (PROTO2, "kinds2.HasExtended", True),
        (EDITION_2023, "kinds2023.Mixed", True),
        (EDITION_2023, "kinds2023.Delimited", False),
    ],
)
def test_a_required_field_is_found_however_deep(schema: Schema, message: str, required: bool) -> None:
    assert has_required(pool_of(files(schema)).FindMessageTypeByName(message)) is required
