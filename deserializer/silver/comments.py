"""What a silver table says of itself: its comment, its columns' comments, and which schema version said so. Pure.

The newest version that came with rows says it (docs/decisions/0015): an older row's schema changes no comment, and
what a version says nothing of stays as it is. The version is in the comment of `_schema_id`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from demux.core.columns.types import Array, Column, ColumnType, Map, Struct
from demux.core.names import quote_identifier, sql_string
from demux.core.protobuf.decode.decoder import decoder_of
from demux.core.protobuf.schema.comments import (
    Comments,
    CommentSource,
    comment_source,
    comments_of,
    inside,
    is_marked,
    marked_origin,
    with_inside,
)
from demux.core.protobuf.schema.option_tags import tags_of
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.schemas.ref import SchemaRef
from demux.core.tables import SILVER_RESERVED
from deserializer.decoders.schema_decision import Decisions, SchemaLookup, WriterSchema

# of columns, in one statement; each statement is a commit
_AT_ONCE = 500
# in one batch; the others follow in the next one
_MAX_STATEMENTS = 50


@dataclass(frozen=True, slots=True)
class Description:
    """What a silver table should say of itself.

    Attributes:
        said_by: the version that says it; None where none says anything.
        is_new: whether the table does not say so yet.
        comment: of the table, '' for none.
        columns: the payload columns that the table is to have, with comments.
    """

    comment_source: CommentSource | None
    is_new: bool
    comment: str
    columns: Struct

    @property
    def all_columns(self) -> Struct:
        """The payload columns and the origin's, with the mark of `comment_source`."""
        return Struct((*self.columns, *marked_origin(self.comment_source)))


def description_of(decisions: Decisions, answers: Mapping[SchemaRef, SchemaLookup], table: Struct) -> Description:
    """Return what the table should say after a batch.

    Args:
        decisions: what is done with the batch.
        answers: the schemas that the decisions were made from.
        table: all columns of the table now, the origin's too; none for a new table.
    """
    before = comment_source(table)
    found = sorted(_sources(decisions, answers), key=lambda source: source[0])
    columns = decisions.columns
    for _, comments in found:
        # newer ones have the last word; a column that is added may be an older one's alone
        columns = _overlaid(columns, comments.columns)
    if not found or (before is not None and found[-1][0] <= before):
        return Description(before, False, "", columns)
    return Description(found[-1][0], True, found[-1][1].table, columns)


def statements(table: str, before: Struct, description: Description, at_once: bool) -> list[str]:
    """Return the SQL that lets the table's comments follow the description, in order; at most 50 statements.

    The mark of who said it comes last: what is left over, or lost in a crash, is done with the next batch.

    Args:
        table: what SQL calls the table.
        before: all columns of the table before this batch; those that were added since have their comments already.
        description: what it should say.
        at_once: whether Spark takes several columns in one statement (from 4.0 on).
    """
    if not description.is_new:
        return []
    of_table = [f"COMMENT ON TABLE {table} IS {sql_string(description.comment)}"] if description.comment else []
    changed = list(_changed(before, description.all_columns, ""))
    size = _AT_ONCE if at_once else 1
    parts = [", ".join(changed[at : at + size]) for at in range(0, len(changed), size)]
    return [*of_table, *(f"ALTER TABLE {table} ALTER COLUMN {part}" for part in parts)][:_MAX_STATEMENTS]


def _sources(
    decisions: Decisions, answers: Mapping[SchemaRef, SchemaLookup]
) -> Iterator[tuple[CommentSource, Comments]]:
    """Yield what each schema of the batch says whose rows are decoded, in comments or in tags."""
    for ref, writer in decisions.writers.items():
        answer = answers[ref]
        assert isinstance(answer, CompiledSchema)
        comments = _comments(answer, writer)
        if comments or tags_of(writer.descriptor_set, writer.message):
            yield CommentSource(answer.version, answer.schema_id), comments


def _comments(answer: CompiledSchema, writer: WriterSchema) -> Comments:
    columns = decoder_of(writer.descriptor_set, writer.message, SILVER_RESERVED).columns
    return comments_of(answer.descriptor_set, writer.message, columns)


def _overlaid(table: Struct, writer: Struct) -> Struct:
    """Return the table's columns with the writer's comments, where it has one, by field number."""
    writes = writer.by_number()
    return Struct(tuple(_with_comment(column, writes.get(column.number)) for column in table))


def _with_comment(column: Column, writer: Column | None) -> Column:
    if writer is None:
        return column
    parts = _overlaid(inside(column.type), inside(writer.type))
    return replace(column, comment=writer.comment or column.comment, type=with_inside(column.type, parts))


def _changed(before: Struct, wanted: Struct, above: str) -> Iterator[str]:
    """Yield as `ALTER COLUMN` has it: each column that is in both with another comment, the marked one last."""
    now = {column.name: column for column in wanted}
    for column in sorted(before, key=lambda column: not above and is_marked(column)):
        after = now.get(column.name)
        if after is None:
            continue
        path = f"{above}{quote_identifier(column.name)}"
        yield from _changed(inside(column.type), inside(after.type), f"{path}{_way_inside(column.type)}")
        if after.comment and after.comment != column.comment:
            yield f"{path} COMMENT {sql_string(after.comment)}"


def _way_inside(column_type: ColumnType) -> str:
    """Return how SQL names what is in a column, from the column on."""
    match column_type:
        case Array(part):
            return f".element{_way_inside(part)}"
        case Map(_, part):
            return f".value{_way_inside(part)}"
        case _:
            return "."
