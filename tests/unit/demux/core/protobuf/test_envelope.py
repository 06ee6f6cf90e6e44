"""The envelope of the settings: compiled, its fields found, and every mistake told at once with the nearest name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from demux.core.columns.types import Column, Primitive
from demux.core.errors import SettingsInvalid
from demux.core.protobuf.envelope import Envelope, envelope_of
from demux.core.settings.source import WrapperSettings

HEADER = """
    syntax = "proto3";
    package acme;
    import "google/protobuf/wrappers.proto";
    message Header {
      int64 schema = 1; uint64 big = 2; google.protobuf.Int32Value boxed = 3; repeated string tags = 4;
      google.protobuf.BytesValue boxed_body = 5; Header inner = 6; string Name = 7; string name = 8;
    }
"""
ENVELOPE = """
    syntax = "proto3";
    package acme;
    import "shared/header.proto";
    import "google/protobuf/timestamp.proto";
    import "google/protobuf/any.proto";
    enum Title { TITLE_NONE = 0; CHESS = 1; }
    message Ping { int32 number = 1; }
    message Envelope {
      message Inner { string title = 1; bytes body = 2; }
      Header header = 1;
      Title title = 2;
      int32 number = 3;
      bytes body = 4;
      repeated bytes bodies = 5;
      map<string, Header> by_name = 6;
      google.protobuf.Timestamp at = 7;
      google.protobuf.Any any = 8;
      double score = 9;
      Inner inner = 10;
    }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "header.proto").write_text(HEADER)
    path = tmp_path / "envelope.proto"
    path.write_text(ENVELOPE)
    return path


def envelope(file: Path, **fields: Any) -> Envelope:
    given = {"message": "acme.Envelope", "game_field": "title", "schema_id_field": "number", "payload_field": "body"}
    return envelope_of(WrapperSettings(proto=str(file), **(given | fields)))


def column_at(found: Envelope, path: tuple[int, ...] | None) -> Column:
    assert path is not None
    columns: Any = found.columns
    for at in path[:-1]:
        columns = columns.columns[at].type
    column: Column = columns.columns[path[-1]]
    return column


def mistakes(file: Path, **fields: Any) -> str:
    with pytest.raises(SettingsInvalid) as refused:
        envelope(file, **fields)
    assert refused.value.fields["mistakes"] == tuple(refused.value.message.split("\n"))
    return refused.value.message


def test_without_settings_the_envelope_is_our_own() -> None:
    found = envelope_of(WrapperSettings())
    assert found.message == "demux.Wrapper"
    assert [column_at(found, path) for path in (found.game, found.schema_id, found.payload)] == [
        Column("game_name", Primitive.STRING, 1),
        Column("schema_id", Primitive.INT, 2),
        Column("payload", Primitive.BINARY, 3),
    ]
    assert found.no_game == ""


@pytest.mark.parametrize(
    ("field", "name", "kind", "no_game"),
    [
        ("title", "title", Primitive.STRING, "TITLE_NONE"),
        ("number", "number", Primitive.INT, "0"),
        ("header.schema", "schema", Primitive.BIGINT, "0"),
        ("header.big", "big", Primitive.DECIMAL_20_0, "0"),
        ("header.boxed", "boxed", Primitive.INT, "0"),
        ("header.Name", "Name", Primitive.STRING, ""),
        ("header.name", "name__8", Primitive.STRING, ""),
        ("inner.title", "title", Primitive.STRING, ""),
    ],
)
def test_a_game_is_a_string_an_integer_or_an_enum_at_any_depth(
    file: Path, field: str, name: str, kind: Primitive, no_game: str
) -> None:
    found = envelope(file, game_field=field)
    column = column_at(found, found.game)
    assert (column.name, column.type, found.no_game) == (name, kind, no_game)


def test_the_first_message_of_the_file_is_the_envelope_where_the_settings_name_none(file: Path) -> None:
    assert mistakes(file, message=None).startswith("wrapper.game_field: acme.Ping has no field 'title'; it has number")


def test_an_envelope_need_not_have_a_schema_id(file: Path) -> None:
    assert envelope(file, schema_id_field=None).schema_id is None


def test_a_payload_may_be_a_nullable_scalar_inside_a_message_of_another_file(file: Path) -> None:
    found = envelope(file, payload_field="header.boxed_body")
    assert column_at(found, found.payload).name == "boxed_body"


@pytest.mark.parametrize(
    ("key", "field", "sentence"),
    [
        ("game_field", "titel", "acme.Envelope has no field 'titel'; the nearest name is 'title'"),
        ("game_field", "header.schem", "acme.Header has no field 'schem'; the nearest name is 'schema'"),
        ("game_field", "inner.q", "acme.Envelope.Inner has no field 'q'; it has title, body"),
        ("game_field", "header..name", "acme.Header has no field ''; it has schema, big, boxed, tags, boxed_body,"),
        ("game_field", "score", "'score' is of type double; expected a string, an integer or an enum"),
        ("game_field", "header", "'header' is of type acme.Header; expected a string, an integer or an enum"),
        ("game_field", "header.tags", "'tags' is a repeated field; one value is needed"),
        ("game_field", "by_name.value", "'by_name' is a map field; one value is needed"),
        ("game_field", "title.name", "'title' is of type enum, which has no columns inside"),
        ("game_field", "at.seconds", "'at' is of type google.protobuf.Timestamp, which has no columns inside"),
        ("game_field", "header.inner.name", "'inner' is of type acme.Header, which has no columns inside"),
        ("schema_id_field", "title", "'title' is of type enum; expected an integer, or null for none"),
        ("payload_field", "bodies", "'bodies' is a repeated field; one value is needed"),
        ("payload_field", "inner.title", "'title' is of type string; expected bytes"),
        ("payload_field", "any.value", "'any' is of type google.protobuf.Any, which has no columns inside"),
    ],
)
def test_a_field_that_cannot_be_used_says_why(file: Path, key: str, field: str, sentence: str) -> None:
    assert mistakes(file, **{key: field}).startswith(f"wrapper.{key}: {sentence}")


def test_all_mistakes_are_told_at_once(file: Path) -> None:
    reasons = mistakes(file, game_field="x", schema_id_field="score", payload_field="title").split("\n")
    assert [line.partition(":")[0] for line in reasons] == [
        "wrapper.game_field",
        "wrapper.schema_id_field",
        "wrapper.payload_field",
    ]


def test_a_message_that_is_not_there_is_told_with_the_nearest_name(file: Path) -> None:
    reasons = mistakes(file, message="acme.Envelop")
    assert reasons == "wrapper: envelope.proto has no message 'acme.Envelop'; the nearest name is 'acme.Envelope'"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("none.proto", None, "wrapper.proto: there is no file "),
        ("envelope.txt", b'syntax = "proto3"; message M {}', "wrapper: the import path 'envelope.txt' does not end in"),
        ("bad.proto", b'syntax = "proto3"; message M { int32 }', "wrapper: bad.proto:1:38: Expected field name"),
        ("empty.proto", b'syntax = "proto3";', "wrapper: empty.proto has no message"),
        (
            "lost.proto",
            b'syntax = "proto3"; import "a/b.proto"; message M {}',
            'wrapper: lost.proto:1:20: Import "a/b.proto" was not found',
        ),
        (
            "out.proto",
            b'syntax = "proto3"; import "../b.proto"; message M {}',
            'wrapper: out.proto:1:20: Import "../b.proto" was not found',
        ),
        ("latin.proto", b'syntax = "proto3"; // \xe9', "wrapper.proto: "),
        ("folder.proto", None, "wrapper.proto: "),
    ],
)
def test_a_file_that_cannot_be_compiled_says_why(
    tmp_path: Path, name: str, content: bytes | None, sentence: str
) -> None:
    (tmp_path / "folder.proto").mkdir()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert mistakes(tmp_path / name, message=None).startswith(sentence)


def test_the_same_path_may_be_wrong_for_one_envelope_and_right_for_the_next(file: Path) -> None:
    mistakes(file, game_field="new_title")
    file.write_text(ENVELOPE.replace("Inner inner = 10;", "Inner inner = 10; string new_title = 11;"))
    assert envelope(file, game_field="new_title").no_game == ""
