"""What to do with each schema ref of a micro-batch: decode its rows into the table, or refuse them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from demux.alignment import align
from demux.causes import Cause
from demux.columns import Struct
from demux.errors import SchemaInvalid, SchemaUnknown
from demux.protobuf.comments import without_comments
from demux.protobuf.compile import CompiledSchema
from demux.protobuf.decoder import decoder_of
from demux.protobuf.message_path import has_message
from demux.schema_ref import SchemaRef
from demux.tables import SILVER_RESERVED


@dataclass(frozen=True, slots=True)
class Writer:
    """The schema that rows were written with.

    Attributes:
        schema_id: its id in the registry, also for rows that name it by GUID.
        descriptor_set: a serialized `FileDescriptorSet`, without comments.
        message: the full name of the message that the rows hold.
    """

    schema_id: int
    descriptor_set: bytes
    message: str


class UnknownRef(Exception):
    """A row has a schema ref that nothing was decided about."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why rows of a schema ref are not decoded."""

    cause: Cause
    sentence: str


@dataclass(frozen=True, slots=True)
class Decisions:
    """What to do with the rows of a micro-batch.

    Attributes:
        columns: the table's payload columns, after all that is added for this batch.
        added: dotted paths of the columns that the table does not have yet.
        by_ref: what to do with the rows of each schema ref of the batch.
        message: the full name of the message that the table holds; None while it holds none.
    """

    columns: Struct
    added: tuple[str, ...]
    by_ref: Mapping[SchemaRef, Writer | Refusal]
    message: str | None = None

    def of(self, ref: SchemaRef) -> Writer | Refusal:
        """Return what to do with the rows of this ref.

        Raises:
            UnknownRef: nothing was decided about it.
        """
        if ref not in self.by_ref:
            raise UnknownRef(ref)
        return self.by_ref[ref]

    @property
    def writers(self) -> dict[SchemaRef, Writer]:
        """The refs whose rows are decoded."""
        return {ref: each for ref, each in self.by_ref.items() if isinstance(each, Writer)}


Answer = CompiledSchema | SchemaUnknown | SchemaInvalid


def decide(table: Struct, answers: Mapping[SchemaRef, Answer], message: str | None = None) -> Decisions:
    """Return the decisions for a batch, the same whatever the order of its rows.

    Args:
        table: the table's payload columns now; none for a new table.
        answers: the registry's answer to each ref that occurs in the batch.
        message: the full name of the message that the table holds, if that is known.
    """
    columns = table
    added: list[str] = []
    by_ref: dict[SchemaRef, Writer | Refusal] = {}
    for ref, answer in sorted(answers.items(), key=_order):
        match answer:
            case SchemaUnknown():
                by_ref[ref] = Refusal(Cause.UNKNOWN_SCHEMA, answer.cause)
            case SchemaInvalid():
                by_ref[ref] = Refusal(Cause.INVALID_SCHEMA, answer.cause)
            case CompiledSchema():
                # every task would carry the comments along
                writer = Writer(answer.schema_id, without_comments(answer.descriptor_set), answer.message)
                try:
                    writes = decoder_of(writer.descriptor_set, writer.message, SILVER_RESERVED).columns
                except SchemaInvalid as invalid:
                    by_ref[ref] = Refusal(Cause.INVALID_SCHEMA, invalid.cause)
                    continue
                alignment = align(columns, writes, SILVER_RESERVED)
                if another := _other_message(answer, message):
                    by_ref[ref] = Refusal(Cause.SCHEMA_CONFLICT, another)
                    continue
                if alignment.conflicts:
                    sentence = "; ".join(alignment.conflicts)
                    by_ref[ref] = Refusal(
                        Cause.SCHEMA_CONFLICT, f"Schema {answer.schema_id} does not fit the table: {sentence}."
                    )
                    continue
                columns, by_ref[ref], message = alignment.columns, writer, message or answer.message
                added += alignment.added
    return Decisions(columns, tuple(added), by_ref, message)


def _other_message(schema: CompiledSchema, message: str | None) -> str | None:
    """Return why rows of this schema are of another message than the table's; None when they are not.

    Fields of two messages with the same numbers have nothing to do with each other. A message that a new version has
    renamed is the same one: then the version has none of the old name.
    """
    if message is None or message == schema.message or not has_message(schema.descriptor_set, message):
        return None
    return f"The table holds {message}, and schema {schema.schema_id} means its message {schema.message} here."


def schema_ids_of(answers: Mapping[SchemaRef, Answer]) -> set[int]:
    """Return the ids that the refs stand for; a GUID that nobody knows has none."""
    ids = (answer.schema_id if isinstance(answer, CompiledSchema) else ref.schema_id for ref, answer in answers.items())
    return {schema_id for schema_id in ids if schema_id is not None}


def _order(asked: tuple[SchemaRef, Answer]) -> tuple[str, int, int, str, str]:
    # older versions first: their names are the ones that the table keeps
    ref, answer = asked
    more = (ref.message_indexes or "", ref.guid or "")
    if isinstance(answer, CompiledSchema):
        return (answer.subject, answer.version, answer.schema_id, *more)
    return ("", 0, ref.schema_id or 0, *more)
