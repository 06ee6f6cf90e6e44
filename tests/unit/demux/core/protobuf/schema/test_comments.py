"""What a table is told by the comments of a `.proto` file, whatever stands in them."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from hypothesis import given
from hypothesis import strategies as st

from demux.core.columns.types import Column, Struct
from demux.core.protobuf.decode.decoder import decoder_of
from demux.core.protobuf.schema.comments import (
    MAX_LENGTH,
    MAX_TOTAL,
    Comments,
    clean_comment,
    comments_of,
    inside,
    only_comments,
    without_comments,
)
from demux.core.protobuf.schema.protoc import CompiledSchema, compile_schema
from demux.core.registry.protocol import ImportedFile, RegisteredSchema

EVENT = """syntax = "proto2"; package g;
import "shared.proto";
// detached, about nothing

// One event
// of a `game`.
message Event { // not this one
  /** Who
   * did it. */
  optional string user = 1;
  optional int32 score = 2; // may be negative
  optional string plain = 3;

  optional shared.Device device = 4;
  repeated Part parts = 5; // all parts
  map<string, Part> by_name = 6;
  message Part {
    optional int32 size = 1; // in bytes
    optional Event inner = 2; // becomes text
  }
  // the rest
  optional group Rest = 7 {
    optional int32 x = 1; // of the rest
  }
  extensions 100 to 200;
}
extend Event {
  optional int32 bonus = 100; // from elsewhere
}
"""
SHARED = """syntax = "proto3"; package shared;
message Device { // A device.
  string model = 1; // its name
}"""


def compiled(text: str, *references: ImportedFile) -> CompiledSchema:
    return compile_schema(RegisteredSchema(1, "s", 1, text, "a.proto", references))


def said(schema: CompiledSchema, message: str | None = None) -> Comments:
    columns = decoder_of(without_comments(schema.descriptor_set), message or schema.message).columns
    return comments_of(only_comments(schema.descriptor_set), message or schema.message, columns)


def by_path(columns: Struct, above: str = "") -> dict[str, str]:
    """The comments of all columns that have one, by dotted path."""
    result: dict[str, str] = {}
    for column in columns:
        path = f"{above}{column.name}"
        result |= {path: column.comment} if column.comment else {}
        result |= by_path(inside(column.type), f"{path}.")
    return result


def test_leading_comments_count_else_trailing_ones_at_every_level() -> None:
    comments = said(compiled(EVENT, ImportedFile("shared.proto", SHARED)))
    assert comments.table == "One event of a `game`."
    assert by_path(comments.columns) == {
        "user": "Who did it.",
        "score": "may be negative",
        "device.model": "its name",
        "parts": "all parts",
        "parts.size": "in bytes",
        "parts.inner": "becomes text",
        "by_name.size": "in bytes",
        "by_name.inner": "becomes text",
        "rest": "the rest",
        "rest.x": "of the rest",
        "g_bonus": "from elsewhere",
    }


def test_a_message_inside_another_one_has_its_own() -> None:
    comments = said(compiled(EVENT, ImportedFile("shared.proto", SHARED)), "g.Event.Part")
    found = by_path(comments.columns)
    assert (comments.table, found["size"], found["inner.user"]) == ("", "in bytes", "Who did it.")
    device = said(compiled(SHARED))
    assert (device.table, by_path(device.columns)) == ("A device.", {"model": "its name"})


def test_a_schema_without_source_info_says_nothing() -> None:
    schema = compiled(EVENT, ImportedFile("shared.proto", SHARED))
    bare = without_comments(schema.descriptor_set)
    columns = decoder_of(bare, "g.Event").columns
    assert comments_of(bare, "g.Event", columns) == Comments("", columns)
    assert not comments_of(bare, "g.Event", columns)


def test_only_the_comments_of_the_source_info_are_kept_and_none_of_them_is_lost() -> None:
    schema = compiled(EVENT, ImportedFile("shared.proto", SHARED))
    kept = only_comments(schema.descriptor_set)
    assert len(kept) < len(schema.descriptor_set) / 2
    locations = [at for file in FileDescriptorSet.FromString(kept).file for at in file.source_code_info.location]
    assert len(locations) == 12
    assert without_comments(kept) == without_comments(schema.descriptor_set)
    assert only_comments(kept) == kept


def test_comments_do_not_make_another_schema() -> None:
    other = EVENT.replace("One event", "Another event").replace("may be negative", "'; DROP TABLE x")
    sets = [compiled(text, ImportedFile("shared.proto", SHARED)).descriptor_set for text in (EVENT, other)]
    assert without_comments(sets[0]) == without_comments(sets[1])
    assert only_comments(sets[0]) != only_comments(sets[1])


@pytest.mark.parametrize(
    ("comment", "text"),
    [
        (" plain\n", "plain"),
        (" two\n lines\n\n  and   more ", "two lines and more"),
        ("* javadoc\n * goes on\n", "javadoc goes on"),
        ("/ three slashes", "three slashes"),
        ("**\n***\n", ""),
        ("a\0b\u202ec\u2028d", "a\\u0000b\\u202ec d"),
        ("'; DROP TABLE `x` ${env:HOME} \\", "'; DROP TABLE `x` ${env:HOME} \\"),
        ("象棋 ♟", "象棋 ♟"),
    ],
)
def test_a_comment_becomes_one_line_of_visible_text(comment: str, text: str) -> None:
    assert clean_comment(comment) == text


@given(st.text(max_size=3000))
def test_whatever_a_comment_holds_it_is_short_and_visible(comment: str) -> None:
    text = clean_comment(comment)
    assert len(text) <= MAX_LENGTH
    assert text.replace(" ", "").isprintable()
    assert text == text.strip()


@pytest.mark.thorough
def test_a_table_has_no_more_comments_than_its_log_can_bear_and_the_outer_ones_come_first() -> None:
    long = "x" * MAX_LENGTH
    parts = "\n".join(f"string p{n} = {n}; // {long}" for n in range(1, 151))
    fields = "\n".join(f"Part f{n} = {n}; // {long}" for n in range(1, 101))
    comments = said(compiled(f'syntax = "proto3"; message A {{\n{fields}\n message Part {{\n{parts}\n}} }}'))
    found = by_path(comments.columns)
    assert sum(map(len, found.values())) == MAX_TOTAL
    assert all(f"f{n}" in found for n in range(1, 101))
    assert len([path for path in found if path.startswith("f1.")]) == 100


def test_a_registered_descriptor_may_point_anywhere() -> None:
    files = FileDescriptorSet.FromString(compiled('syntax = "proto3"; message A { int32 x = 1; }').descriptor_set)
    files.file[0].ClearField("source_code_info")
    for path in (
        [],
        [4],
        [4, 9],
        [4, -1],
        [4, 0, 2],
        [4, 0, 2, 7],
        [99, 0],
        [4, 0, 99, 0],
        [8, 0],
        [4, 0, 7, 0],
        [5, 0],
    ):
        files.file[0].source_code_info.location.add(path=path, leading_comments="nowhere")
    columns = Struct((Column("x", decoder_of(files.SerializeToString(), "A").columns.columns[0].type, 1),))
    comments = comments_of(files.SerializeToString(), "A", columns)
    assert (comments.table, by_path(comments.columns)) == ("", {})
