"""Options of a schema as tags: what fits the catalog's limits, and a sentence for what does not."""

from __future__ import annotations

from demux.core.protobuf.schema.option_tags import MAX_TAGS, Tags, tags_of
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.protocol import ImportedFile, RegisteredSchema

OPTIONS = """syntax = "proto3"; package acme; import "google/protobuf/descriptor.proto";
enum Level { LOW = 0; HIGH = 1; }
message Owner { string team = 1; repeated int32 floors = 2; map<string, string> more = 3; }
extend google.protobuf.MessageOptions { string team = 50001; Owner owner = 50002; float weight = 50003; }
extend google.protobuf.FieldOptions {
  optional bool pii = 50001; Level level = 50002; repeated string labels = 50003; bytes salt = 50004;
  repeated Owner owners = 50005; int64 big = 50006;
}
"""
OTHER = """syntax = "proto3"; package other; import "google/protobuf/descriptor.proto";
extend google.protobuf.FieldOptions { string pii = 60001; }
"""


def tags(body: str, options: str = OPTIONS) -> Tags:
    text = f'syntax = "proto3"; package g; import "acme.proto"; import "other.proto"; message Event {{ {body} }}'
    references = (ImportedFile("acme.proto", options), ImportedFile("other.proto", OTHER))
    schema = compile_schema(RegisteredSchema(1, "s", 1, text, "a.proto", references))
    return tags_of(schema.descriptor_set, schema.message)


def test_options_of_the_message_are_tags_of_the_table() -> None:
    found = tags(
        'option deprecated = true; option (acme.team) = "a team\'s"; option (acme.weight) = 1.5;'
        'option (acme.owner) = { team: "x" floors: [1, 2] more: { key: "k" value: "象棋" } };'
    )
    assert found.table == {
        "deprecated": "true",
        "team": "a team's",
        "weight": "1.5",
        "owner": '{"floors":[1,2],"more":{"k":"象棋"},"team":"x"}',
    }
    assert (dict(found.columns), found.left_out) == ({}, ())


def test_options_of_a_field_are_tags_of_its_column_by_number() -> None:
    found = tags(
        'string name = 3 [(acme.pii) = true, (acme.level) = HIGH, (acme.labels) = "a", (acme.labels) = "b c",'
        ' (acme.salt) = "\\001", (acme.owners) = { team: "x" }, (acme.big) = 9007199254740993];'
        "int32 old = 7 [deprecated = true]; int32 kept = 8 [deprecated = false]; int32 none = 9 [jstype = JS_NORMAL];"
    )
    assert found.columns == {
        3: {
            "pii": "true",
            "level": "HIGH",
            "labels": '["a","b c"]',
            "salt": "AQ==",
            "owners": '[{"team":"x"}]',
            "big": "9007199254740993",
        },
        7: {"deprecated": "true"},
        8: {"deprecated": "false"},
    }


def test_columns_inside_others_have_none() -> None:
    found = tags("Part part = 1; message Part { option deprecated = true; int32 x = 1 [deprecated = true]; }")
    assert not found


def test_options_of_one_short_name_are_told_apart_by_their_full_names() -> None:
    found = tags('string name = 1 [(acme.pii) = true, (other.pii) = "yes"];')
    assert found.columns == {1: {"acme_pii": "true", "other_pii": "yes"}}


def test_what_a_tag_cannot_hold_is_left_out_and_told() -> None:
    found = tags(
        f'string name = 1 [(other.pii) = "{"x" * 1001}", (acme.labels) = "kept"];'
        'string more = 2 [(other.pii) = " spaces "]; string hidden = 3 [(other.pii) = "a\\u202eb"];'
    )
    assert found.columns == {1: {"labels": '["kept"]'}}
    assert found.left_out == (
        "Option other.pii of g.Event.name makes no tag: its value has 1001 characters, more than 1000.",
        "Option other.pii of g.Event.more makes no tag: its value has characters that a tag cannot have.",
        "Option other.pii of g.Event.hidden makes no tag: its value has characters that a tag cannot have.",
    )


def test_a_table_has_as_many_tags_as_the_catalog_takes() -> None:
    declared = "\n".join(f"int32 o{n:02} = {50001 + n};" for n in range(60))
    options = (
        'syntax = "proto3"; package acme; import "google/protobuf/descriptor.proto";'
        f"extend google.protobuf.MessageOptions {{ {declared} }}"
    )
    found = tags(" ".join(f"option (acme.o{n:02}) = {n};" for n in range(60)), options)
    assert len(found.table) == MAX_TAGS
    assert found.left_out[0] == "Option acme.o50 of g.Event makes no tag: there are 50 already."


def test_a_schema_without_options_has_no_tags() -> None:
    schema = compile_schema(RegisteredSchema(1, "s", 1, 'syntax = "proto3"; message A { int32 x = 1; }', "a.proto"))
    assert tags_of(schema.descriptor_set, "A") == Tags({}, {}, ())
