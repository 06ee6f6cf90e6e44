from __future__ import annotations

import base64

import pytest
from google.protobuf import any_pb2, descriptor_pb2, timestamp_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from demux.core.errors import SchemaInvalid
from demux.core.protobuf.schema.descriptor_pool import descriptor_of
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.protocol import ImportedFile, RegisteredSchema


def serialized(file: FileDescriptorProto) -> str:
    return base64.b64encode(file.SerializeToString()).decode()


@pytest.mark.parametrize("module", [any_pb2, descriptor_pb2, timestamp_pb2])
def test_the_serialized_form_is_read(module: object) -> None:
    file = FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)  # type: ignore[attr-defined]
    text = serialized(file)
    wrapped = "\n".join(text[at : at + 76] for at in range(0, len(text), 76)) + "\n"
    assert (descriptor_of(text), descriptor_of(wrapped)) == (file, file)


@pytest.mark.parametrize(
    "text", ["", " \n", 'syntax = "proto3";', "message X {}", "message", "abcd", "AAAA", "=", "// a", "Zm9v!", "é"]
)
def test_everything_else_is_text(text: str) -> None:
    assert descriptor_of(text) is None


def test_text_may_import_what_is_serialized_and_the_other_way_round() -> None:
    base = FileDescriptorProto(name="elsewhere.proto", syntax="proto3")
    base.message_type.add(name="Base")
    text = 'syntax = "proto3"; import "b.proto"; message Top { Base base = 1; }'
    compiled = compile_schema(
        RegisteredSchema(1, "s", 1, text, "a.proto", (ImportedFile("b.proto", serialized(base)),))
    )
    assert compiled.message == "Top"
    top = FileDescriptorProto(name="elsewhere.proto", syntax="proto3", dependency=["b.proto"])
    top.message_type.add(name="Top")
    references = (ImportedFile("b.proto", 'syntax = "proto3"; message Base {}'),)
    compiled = compile_schema(RegisteredSchema(1, "s", 1, serialized(top), "a.proto", references))
    assert compiled.message == "Top"


def test_a_descriptor_that_makes_no_sense_is_invalid_and_never_an_option_of_protoc() -> None:
    broken = FileDescriptorProto(name="x", syntax="proto3")
    broken.message_type.add(name="X").field.add(name="a", number=1, type=11, type_name=".Missing", label=1)
    with pytest.raises(SchemaInvalid, match=r"does not compile: .*Missing"):
        compile_schema(RegisteredSchema(1, "s", 1, serialized(broken), "a.proto"))
    with pytest.raises(SchemaInvalid, match="begins like an option of protoc"):
        compile_schema(RegisteredSchema(1, "s", 1, serialized(broken), "--version/a.proto"))
