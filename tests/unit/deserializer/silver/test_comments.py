"""Which version's comments a silver table has, and the statements that make it so."""

from __future__ import annotations

from collections.abc import Iterable

from demux.core.columns.types import Column, Struct
from demux.core.protobuf.schema.comments import CommentSource, comment_source, inside, marked_origin
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.schemas.ref import SchemaRef
from demux.core.tables import SILVER_ORIGIN
from deserializer.decoders.schema_decision import SchemaLookup, decide
from deserializer.silver.comments import Description, description_of, statements
from tests.support.data.chess import MISFIT, compiled

FIRST = """syntax = "proto3";
// A move.
message Chess {
  string player = 1; // who moved
  int32 moves = 2; // how many
  Board board = 3;
  message Board {
    bool blitz = 1; // fast
  }
}"""
# another comment, a comment less, a field more, nested too
SECOND = """syntax = "proto3";
// One move.
message Chess {
  string player = 1; // who moves
  int32 moves = 2;
  repeated Board boards = 4; // all of them
  Board board = 3;
  message Board {
    bool blitz = 1; // fast
    string opening = 2; // by its name
  }
}"""
NEW = Struct(())
BARE = "".join(line.split("//")[0] for line in SECOND.splitlines())
V1, V2, SILENT = compiled(FIRST, 11, 1), compiled(SECOND, 12, 2), compiled(BARE, 13, 3)


def described(table: Struct, *schemas: CompiledSchema) -> Description:
    answers: dict[SchemaRef, SchemaLookup] = {SchemaRef(schema.schema_id): schema for schema in schemas}
    payload = Struct(tuple(column for column in table if column not in SILVER_ORIGIN.columns))
    return description_of(decide(payload, answers), answers, table)


def by_path(columns: Iterable[Column], above: str = "") -> dict[str, str]:
    result: dict[str, str] = {}
    for column in columns:
        result |= {above + column.name: column.comment} if column.comment else {}
        result |= by_path(inside(column.type), f"{above}{column.name}.")
    return result


def table_after(*schemas: CompiledSchema) -> Struct:
    return described(NEW, *schemas).all_columns


def test_a_new_table_says_what_its_newest_version_says() -> None:
    found = described(NEW, V2, V1)
    assert (found.comment_source, found.is_new, found.comment) == (CommentSource(2, 12), True, "One move.")
    assert by_path(found.columns) == {
        "player": "who moves",
        # only the older version says something of it
        "moves": "how many",
        "boards": "all of them",
        "boards.blitz": "fast",
        "boards.opening": "by its name",
        "board.blitz": "fast",
        "board.opening": "by its name",
    }


def test_the_mark_is_read_back() -> None:
    assert comment_source(marked_origin(CommentSource(3, 70))) == CommentSource(3, 70)
    assert comment_source(SILVER_ORIGIN) is None
    assert by_path(table_after(V1))["_schema_id"] == (
        "Id of the schema that the row was written with, in its registry. "
        "The comments of this table are those of version 1, schema 11."
    )


def test_a_newer_version_changes_what_it_says_otherwise_and_leaves_the_rest() -> None:
    before = table_after(V1)
    found = described(before, V2)
    assert (found.comment_source, found.is_new, found.comment) == (CommentSource(2, 12), True, "One move.")
    path = "delta.`/it's`"
    assert statements("delta.`/it's`", before, found, at_once=True) == [
        f"COMMENT ON TABLE {path} IS 'One move.'",
        f"ALTER TABLE {path} ALTER COLUMN `player` COMMENT 'who moves', `_schema_id` COMMENT "
        "'Id of the schema that the row was written with, in its registry. "
        "The comments of this table are those of version 2, schema 12.'",
    ]
    one_by_one = statements("delta.`/it's`", before, found, at_once=False)
    assert [statement.split(" COMMENT ")[0] for statement in one_by_one[1:]] == [
        f"ALTER TABLE {path} ALTER COLUMN `player`",
        f"ALTER TABLE {path} ALTER COLUMN `_schema_id`",
    ]


def test_rows_of_an_older_version_change_nothing_back() -> None:
    before = table_after(V2)
    late = described(before, V1)
    assert (late.comment_source, late.is_new, statements("delta.`/t`", before, late, at_once=True)) == (
        CommentSource(2, 12),
        False,
        [],
    )


def test_a_column_that_only_an_older_version_has_gets_its_comment_when_it_is_added() -> None:
    newer = compiled(FIRST.replace("  int32 moves = 2; // how many\n", ""), 12, 2)
    before = table_after(newer)
    late = described(before, V1)
    assert (late.is_new, by_path(late.columns)["moves"]) == (False, "how many")


def test_the_same_version_again_needs_no_statement() -> None:
    before = table_after(V1)
    assert statements("delta.`/t`", before, described(before, V1), at_once=False) == []


def test_a_version_that_says_nothing_is_no_newer_one() -> None:
    assert described(NEW, SILENT).comment_source is None
    before = table_after(V1)
    assert described(before, SILENT).comment_source == CommentSource(1, 11)
    assert described(before, SILENT).is_new is False
    assert described(before, V2, SILENT).comment_source == CommentSource(2, 12)


def test_a_version_with_tags_alone_is_marked() -> None:
    tagged = compiled('syntax = "proto3"; message Chess { string player = 1 [deprecated = true]; }', 14, 4)
    found = described(NEW, tagged)
    assert (found.comment_source, found.comment, by_path(found.columns)) == (CommentSource(4, 14), "", {})


def test_a_schema_whose_rows_are_refused_says_nothing() -> None:
    misfit = compiled(MISFIT.replace("{", "{ // no\n"), 15, 5)
    before = table_after(V1)
    assert described(before, misfit).is_new is False


def test_paths_lead_into_messages_lists_and_maps_and_texts_are_quoted() -> None:
    text = """syntax = "proto3";
    message M {
      Part one = 1;
      repeated Part many = 2;
      map<string, Part> by_name = 3;
      message Part {
        int32 x = 1; // %s
      }
    }"""
    before = table_after(compiled(text % "old", 21, 1))
    found = described(before, compiled(text % "it's `x` ${y} \\\\", 22, 2))
    *changed, mark = statements("delta.`/t`", before, found, at_once=False)
    head, comment = "ALTER TABLE delta.`/t` ALTER COLUMN", "COMMENT 'it\\'s `x` \\u0024{y} \\\\\\\\'"
    assert changed == [f"{head} {path}.`x` {comment}" for path in ("`one`", "`many`.element", "`by_name`.value")]
    assert mark.startswith(f"{head} `_schema_id` COMMENT ")


def test_a_batch_does_not_wait_for_thousands_of_comments() -> None:
    def version(number: int) -> CompiledSchema:
        fields = "\n".join(f"int32 f{n} = {n}; // version {number}" for n in range(1, 1001))
        return compiled(f'syntax = "proto3"; message M {{\n{fields}\n}}', number, number)

    before = table_after(version(1))
    found = described(before, version(2))
    assert len(statements("delta.`/t`", before, found, at_once=True)) == 3
    one_by_one = statements("delta.`/t`", before, found, at_once=False)
    # the mark is not among them: the next batch goes on
    assert (len(one_by_one), any("_schema_id" in one for one in one_by_one)) == (50, False)
