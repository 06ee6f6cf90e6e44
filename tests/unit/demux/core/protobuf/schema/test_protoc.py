from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from demux.core.errors import SchemaInvalid
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.protocol import ImportedFile, RegisteredSchema

ROOT = Path(__file__).parents[6]


def schema(text: str, *references: ImportedFile, path: str = "a.proto", message: str | None = None) -> RegisteredSchema:
    return RegisteredSchema(5, "chess", 2, text, path, references, message)


def refusal(wanted: RegisteredSchema) -> str:
    with pytest.raises(SchemaInvalid) as failure:
        compile_schema(wanted)
    return str(failure.value.fields["reason"])


def test_the_set_holds_the_file_its_imports_first_and_its_comments() -> None:
    text = """syntax = "proto3"; package games;
        import "shared/b.proto"; import "google/protobuf/timestamp.proto";
        // An event.
        message Event { shared.B b = 1; google.protobuf.Timestamp at = 2; }"""
    reference = ImportedFile("shared/b.proto", 'syntax = "proto3"; package shared; message B {}')
    compiled = compile_schema(schema(text, reference, path="games/a.proto"))
    files = FileDescriptorSet.FromString(compiled.descriptor_set).file
    assert sorted(file.name for file in files[:-1]) == ["google/protobuf/timestamp.proto", "shared/b.proto"]
    assert files[-1].name == "games/a.proto"
    assert " An event.\n" in [location.leading_comments for location in files[-1].source_code_info.location]
    assert (compiled.schema_id, compiled.subject, compiled.version) == (5, "chess", 2)
    assert compiled.message == "games.Event"


@pytest.mark.parametrize("imported", ["google/type/date.proto", "google/rpc/status.proto"])
def test_the_common_google_types_need_no_reference(imported: str) -> None:
    compiled = compile_schema(schema(f'syntax = "proto3"; import "{imported}"; message M {{}}'))
    assert imported in [file.name for file in FileDescriptorSet.FromString(compiled.descriptor_set).file]


def test_the_wrapper_of_this_project_compiles() -> None:
    text = (ROOT / "proto" / "demux" / "wrapper.proto").read_text("utf-8")
    assert compile_schema(schema(text)).message == "demux.Wrapper"


@pytest.mark.parametrize("message", ["g.First", "g.First.Inner", "g.Second", "other.Imported"])
def test_the_message_is_the_one_configured_nested_and_imported_ones_too(message: str) -> None:
    text = """syntax = "proto3"; package g; import "o.proto"; message First { message Inner {} } message Second {}"""
    reference = ImportedFile("o.proto", 'syntax = "proto3"; package other; message Imported {}')
    assert compile_schema(schema(text, reference)).message == "g.First"
    assert compile_schema(schema(text, reference, message=message)).message == message


def test_what_cannot_be_compiled_is_said_in_protocs_first_sentence() -> None:
    head = 'syntax = "proto3";\n'
    assert refusal(schema(head + "message A {")) == (
        "a.proto:2:12: Reached end of input in message definition (missing '}')"
    )
    assert refusal(schema(head + 'import "gone.proto";')) == (
        'a.proto:2:1: Import "gone.proto" was not found or had errors'
    )
    broken = ImportedFile("b.proto", "message {}")
    assert refusal(schema(head + 'import "b.proto";', broken)).startswith("b.proto:1:9: Expected message name")
    unused = 'import "google/protobuf/any.proto";\nmessage A { B b = 1; }'
    assert refusal(schema(head + unused)) == 'a.proto:3:13: "B" is not defined'
    assert refusal(schema(head)) == "a.proto has no message"
    assert refusal(schema(head + "message Event {}", message="Evnt")) == (
        "a.proto has no message 'Evnt'; the nearest name is 'Event'"
    )


def test_the_error_names_the_schema() -> None:
    with pytest.raises(SchemaInvalid, match=r"Schema 5 \('chess' version 2\) does not compile: a\.proto:1:1: "):
        compile_schema(schema("nonsense"))


@pytest.mark.parametrize("path", ["../x.proto", "/tmp/x.proto", "a/../../x.proto", "@args", "grpc_tools/protoc.py"])
def test_no_path_of_a_schema_is_written_outside_of_protocs_folder(path: str) -> None:
    assert repr(path) in refusal(schema('syntax = "proto3"; message A {}', path=path))
    assert repr(path) in refusal(schema('syntax = "proto3"; message A {}', ImportedFile(path, "")))


def test_files_beside_the_schema_are_out_of_reach(tmp_path: Path) -> None:
    (tmp_path / "secret.proto").write_text('syntax = "proto3"; message Secret {}')
    for imported in (tmp_path / "secret.proto", "../secret.proto", "opentelemetry/proto/common/v1/common.proto"):
        text = f'syntax = "proto3"; import "{imported}"; message A {{}}'
        assert refusal(schema(text)) == f'a.proto:1:20: Import "{imported}" was not found or had errors'


def test_a_path_like_an_option_is_a_file() -> None:
    assert compile_schema(schema('syntax = "proto3"; message A {}', path="--version.proto")).message == "A"


def test_a_text_that_utf8_cannot_write_is_refused() -> None:
    assert "half a surrogate pair" in refusal(schema("// \ud800"))


def test_the_same_content_is_compiled_once_whatever_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    run = subprocess.run

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return run(*args, **kwargs)

    monkeypatch.setattr(subprocess, "run", counted)
    first = schema('syntax = "proto3"; message CompiledOnce {}')
    one, two = compile_schema(first), compile_schema(replace(first, schema_id=6, version=3))
    assert (len(calls), one.descriptor_set, two.schema_id) == (1, two.descriptor_set, 6)
