"""Our registry client against a real registry, which normalises texts, checks compatibility and guards references."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from demux.core.errors import RegistryRefused, SchemaIncompatible, SchemaInvalid, SchemaUnknown
from demux.core.protobuf.schema.protoc import CompiledSchema, compile_schema
from demux.core.registry.confluent.http_client import Rest
from demux.core.registry.confluent.registry import ConfluentRegistry
from demux.core.registry.protocol import ImportedFile, NewSchema, SubjectVersion
from demux.core.settings.settings import RegistrySettings
from tools.servers.registry import Registry
from tools.servers.tls.security import Secured


def connected(
    registry: Registry, made_by: str | None = None, environ: Mapping[str, str] | None = None, **more: object
) -> ConfluentRegistry:
    settings = RegistrySettings.model_validate({"url": registry.url, "timeout_s": 30, **more})
    return ConfluentRegistry(Rest(settings, environ or {}), made_by)


def proto(text: str) -> str:
    return f'syntax = "proto3";\n{text}\n'


def test_nested_references_are_registered_and_come_back_and_compile(registry: Registry) -> None:
    references = (
        ImportedFile("nested/base.proto", proto("package nested;\nmessage Base {\n  int32 number = 1;\n}")),
        ImportedFile(
            "nested/mid.proto",
            proto('package nested;\nimport "nested/base.proto";\nmessage Mid {\n  Base base = 1;\n}'),
        ),
    )
    text = proto('package nested;\nimport "nested/mid.proto";\nmessage Top {\n  Mid mid = 1;\n}')
    schema_id = connected(registry).register("nested-top", text, "nested/top.proto", references)
    schema = connected(registry).schema(schema_id)
    assert (schema.subject, schema.version, schema.path) == ("nested-top", 1, "schema.proto")
    assert [reference.path for reference in schema.references] == ["nested/base.proto", "nested/mid.proto"]
    compiled = compile_schema(schema)
    assert compiled.message == "nested.Top"
    assert files(compiled) == ["nested/base.proto", "nested/mid.proto", "schema.proto"]
    assert connected(registry).register("nested-top", text, "nested/top.proto", references) == schema_id
    assert {"nested-top", "nested/base.proto", "nested/mid.proto"} <= set(connected(registry).subjects())


def test_versions_come_in_order_each_with_its_id(registry: Registry) -> None:
    texts = [proto(f"message Versions {{\n  int32 field_{number} = 1;\n}}") for number in range(12)]
    client = connected(registry)
    ids = client.register_all([NewSchema("versions", text, "v.proto") for text in texts])
    versions = client.versions("versions")
    assert [(schema.version, schema.schema_id) for schema in versions] == list(enumerate(ids, start=1))
    assert [schema.text for schema in versions] == texts
    assert client.versions("versions-of-nothing") == ()


def test_every_subject_of_one_text_is_named_by_its_id_and_an_import_of_the_same_text_too(registry: Registry) -> None:
    shared = proto("package shared;\nmessage First {\n  int32 a = 1;\n}\nmessage Second {\n  int32 b = 1;\n}")
    client = connected(registry)
    schema_id = client.register("shared-zed-value", shared, "two.proto", ())
    assert client.register("shared-abc-value", shared, "two.proto", ()) == schema_id
    importing = proto('import "shared/two.proto";\nmessage Uses {\n  shared.First f = 1;\n}')
    client.register("shared-uses", importing, "uses.proto", (ImportedFile("shared/two.proto", shared),))
    names = ("shared-abc-value", "shared-zed-value", "shared/two.proto")
    assert client.schema(schema_id).uses == tuple(SubjectVersion(name, 1) for name in names)


def test_an_unknown_id_or_guid_is_unknown(registry: Registry) -> None:
    with pytest.raises(SchemaUnknown, match=r"no schema 987654\."):
        connected(registry).schema(987_654)
    with pytest.raises(SchemaUnknown, match="gives no GUIDs"):
        connected(registry).schema_of_guid("89791762-2336-4186-9674-299b90a802e2")


def test_another_path_of_the_same_host_is_no_registry(registry: Registry) -> None:
    with pytest.raises(Exception, match="does not speak as a schema registry does"):
        connected(registry, url=registry.url.replace("ccompat", "nothing")).schema(1)


@pytest.mark.parametrize("level", ["NONE", "BACKWARD", "FORWARD", "FULL", "FULL_TRANSITIVE"])
def test_the_level_of_a_subject_is_shown(registry: Registry, level: str) -> None:
    subject = f"level-{level}"
    connected(registry).register(subject, proto("message Level {}"), "l.proto", ())
    assert connected(registry).compatibility(subject) == "NONE"
    with SchemaRegistryClient({"url": registry.url}) as client:
        client.set_compatibility(subject, level)
    assert connected(registry).compatibility(subject) == level
    assert connected(registry).compatibility("level-of-nothing") == "NONE"


@pytest.mark.parametrize("imported", [False, True])
def test_an_incompatible_version_is_refused_with_the_registrys_reason(registry: Registry, imported: bool) -> None:
    # with imports this registry has no answer when asked before, and refuses when it is registered
    references = (ImportedFile("strict/base.proto", proto("message Base {\n  int32 a = 1;\n}")),) if imported else ()
    head = 'import "strict/base.proto";\n' if imported else ""
    subject = f"strict-{imported}"
    client = connected(registry, made_by="strict-maker")
    first = client.register(subject, proto(head + "message Strict {\n  int32 number = 1;\n}"), "s.proto", references)
    with SchemaRegistryClient({"url": registry.url}) as other:
        other.set_compatibility(subject, "BACKWARD")
    changed = proto(head + "message Strict {\n  string number = 1;\n}")
    with pytest.raises(SchemaIncompatible, match=rf"'{subject}' as incompatible: .*Field type changed"):
        client.register(subject, changed, "s.proto", references)
    assert [schema.schema_id for schema in client.versions(subject)] == [first]
    wider = proto(head + "message Strict {\n  int32 number = 1;\n  string more = 2;\n}")
    second = client.register(subject, wider, "s.proto", references)
    assert [schema.schema_id for schema in client.versions(subject)] == [first, second]
    assert {first, second} <= set(client.remove(made_by="strict-maker"))


def test_an_avro_schema_is_invalid(registry: Registry) -> None:
    with SchemaRegistryClient({"url": registry.url}) as client:
        schema_id = client.register_schema("orders", Schema('{"type": "string"}', "AVRO"))
    with pytest.raises(SchemaInvalid, match=r"\('orders' version 1\) .* is of type AVRO, not PROTOBUF\."):
        connected(registry).schema(schema_id)


def test_a_syntax_error_is_refused_when_registered(registry: Registry) -> None:
    with pytest.raises(SchemaInvalid, match=r"refuses the schema of 'broken': "):
        connected(registry).register("broken", 'syntax = "proto3"; messag X {', "x.proto", ())


def test_a_missing_reference_is_invalid(registry: Registry) -> None:
    text = proto('import "lost/base.proto";\nmessage Lost {\n  Base base = 1;\n}')
    with SchemaRegistryClient({"url": registry.url}) as client:
        schema_id = client.register_schema("lost", Schema(text, "PROTOBUF"))
    with pytest.raises(SchemaInvalid, match=r"does not compile: .*lost/base\.proto"):
        compile_schema(connected(registry).schema(schema_id))


def test_subjects_with_the_same_message_name_are_kept_apart(registry: Registry) -> None:
    client = connected(registry)
    texts = {name: proto(f"package same;\nmessage Event {{\n  int32 {name} = 1;\n}}") for name in ("chess", "go")}
    ids = {name: client.register(f"same-{name}", text, "event.proto", ()) for name, text in texts.items()}
    for name, schema_id in ids.items():
        compiled = compile_schema(connected(registry).schema(schema_id))
        assert (compiled.subject, compiled.message) == (f"same-{name}", "same.Event")
        assert [field.name for field in own_message(compiled).field] == [name]


def test_serialized_schemas_compile(registry: Registry) -> None:
    base = FileDescriptorProto(name="any name.proto", package="packed", syntax="proto3")
    base.message_type.add(name="Base")
    top = FileDescriptorProto(name="top.proto", package="packed", syntax="proto3", dependency=["packed/base.proto"])
    top.message_type.add(name="Top").field.add(
        name="base",
        number=1,
        type=FieldDescriptorProto.TYPE_MESSAGE,
        type_name=".packed.Base",
        label=FieldDescriptorProto.LABEL_OPTIONAL,
    )
    with SchemaRegistryClient({"url": registry.url}) as client:
        client.register_schema("packed/base.proto", Schema(_serialized(base), "PROTOBUF"))
        reference = SchemaReference("packed/base.proto", "packed/base.proto", 1)
        schema_id = client.register_schema("packed-top", Schema(_serialized(top), "PROTOBUF", [reference]))
    compiled = compile_schema(connected(registry).schema(schema_id))
    assert (compiled.message, files(compiled)) == ("packed.Top", ["packed/base.proto", "schema.proto"])


def test_a_message_of_5000_fields_goes_in_and_out(registry: Registry) -> None:
    fields = "\n".join(f"  int64 field_{number} = {number};" for number in range(1, 5001))
    schema_id = connected(registry).register("wide", proto(f"message Wide {{\n{fields}\n}}"), "wide.proto", ())
    compiled = compile_schema(connected(registry).schema(schema_id))
    assert [field.number for field in own_message(compiled).field] == list(range(1, 5001))


def test_removing_takes_what_was_registered_with_the_mark_and_nothing_else(registry: Registry) -> None:
    base = ImportedFile("mine/base.proto", proto("message MineBase {}"))
    shared = ImportedFile("mine/shared.proto", proto("message MineShared {}"))
    one, two = proto("message Mine {\n  int32 a = 1;\n}"), proto("message Mine {\n  int32 b = 1;\n}")
    top = proto('import "mine/base.proto";\nimport "mine/shared.proto";\nmessage Top {\n  MineBase b = 1;\n}')
    theirs = connected(registry).register("mine-both", one, "m.proto", ())
    mine = connected(registry, made_by="mine")
    assert mine.register("mine-both", one, "m.proto", ()) == theirs
    second = mine.register("mine-both", two, "m.proto", ())
    third = mine.register("mine-top", top, "t.proto", (base, shared))
    using = proto('import "mine/shared.proto";\nmessage Using {\n  MineShared s = 1;\n}')
    connected(registry).register("mine-using", using, "u.proto", (shared,))

    gone = connected(registry).remove(made_by="mine")
    assert {second, third} < set(gone)
    assert theirs not in gone
    left = [subject for subject in connected(registry).subjects() if subject.startswith("mine")]
    assert left == ["mine-both", "mine-using", "mine/shared.proto"]
    assert [schema.text for schema in connected(registry).versions("mine-both")] == [one]
    assert connected(registry).remove(made_by="mine") == ()
    again = connected(registry, made_by="mine")
    again.register("mine-top", top, "t.proto", (base, shared))
    assert len(again.versions("mine-top")) == 1
    assert len(connected(registry).remove(made_by="mine")) == 2


def test_an_account_gets_in_over_tls_by_password_and_by_token(secure_registry: Registry, security: Secured) -> None:
    ca_file = str(security.authority.trust.pem)
    environ = {"PASSWORD": "alice-secret", "WRONG": "wrong", "TOKEN": security.identity.token("alice", 60)}
    by_password = {"username": "alice", "password": "secret:env/PASSWORD"}
    for account in (by_password, {"token": "secret:env/TOKEN"}):
        assert isinstance(connected(secure_registry, environ=environ, ca_file=ca_file, **account).subjects(), tuple)
    for account, sentence in (
        ({**by_password, "password": "secret:env/WRONG"}, "does not accept the user 'alice'"),
        ({}, "wants an account"),
    ):
        with pytest.raises(RegistryRefused, match=sentence):
            connected(secure_registry, environ=environ, ca_file=ca_file, **account).subjects()
    stranger = str(security.stranger.trust.pem)
    with pytest.raises(RegistryRefused, match=r"do not trust the certificate .* Set registry\.ca_file"):
        connected(secure_registry, environ=environ, ca_file=stranger, **by_password).subjects()


def _serialized(file: FileDescriptorProto) -> str:
    return base64.b64encode(file.SerializeToString()).decode()


def files(compiled: CompiledSchema) -> list[str]:
    return [file.name for file in FileDescriptorSet.FromString(compiled.descriptor_set).file]


def own_message(compiled: CompiledSchema) -> DescriptorProto:
    return FileDescriptorSet.FromString(compiled.descriptor_set).file[-1].message_type[0]
