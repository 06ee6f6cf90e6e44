"""What to do with each schema ref of a micro-batch: decode its rows into the table, or refuse them. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from demux.alignment import Alignment, align
from demux.causes import Cause
from demux.columns import Struct
from demux.contract import EVOLVE, Contract, Frozen, SchemaChanges
from demux.errors import ApprovalNeeded, SchemaInvalid, SchemaUnknown
from demux.protobuf.comments import without_comments
from demux.protobuf.compile import CompiledSchema
from demux.protobuf.decoder import decoder_of
from demux.protobuf.message_path import has_message
from demux.schema_ref import SchemaRef
from demux.tables import SILVER_RESERVED

# changes of a table that a sentence names
_MAX_TOLD = 5


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
        widened: dotted paths of the columns that the table has in a narrower type.
    """

    columns: Struct
    added: tuple[str, ...]
    by_ref: Mapping[SchemaRef, Writer | Refusal]
    message: str | None = None
    widened: tuple[str, ...] = ()

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


# before any row was looked at
UNDECIDED = Decisions(Struct(()), (), {})


Answer = CompiledSchema | SchemaUnknown | SchemaInvalid


def decide(
    table: Struct, answers: Mapping[SchemaRef, Answer], message: str | None = None, contract: Contract = EVOLVE
) -> Decisions:
    """Return the decisions for a batch, the same whatever the order of its rows.

    A table without columns takes its first schema in every mode.

    Args:
        table: the table's payload columns now; none for a new table.
        answers: the registry's answer to each ref that occurs in the batch.
        message: the full name of the message that the table holds, if that is known.
        contract: what the game's table does with schemas that would change it.

    Raises:
        ApprovalNeeded: the table asks before it changes, and nobody has approved some of the schemas.
    """
    deciding = _Deciding(table, message, contract)
    for ref, answer in sorted(answers.items(), key=_order):
        deciding.take(ref, answer)
    if deciding.unapproved:
        raise _approval_needed(deciding.unapproved, contract.game)
    return Decisions(
        deciding.columns, tuple(deciding.added), deciding.by_ref, deciding.message, tuple(deciding.widened)
    )


class _Deciding:
    """The table as it becomes, schema by schema."""

    def __init__(self, table: Struct, message: str | None, contract: Contract) -> None:
        self.columns = table
        self.message = message
        self.added: list[str] = []
        self.widened: list[str] = []
        self.by_ref: dict[SchemaRef, Writer | Refusal] = {}
        self.unapproved: dict[int, tuple[str, ...]] = {}
        self._contract = contract

    def take(self, ref: SchemaRef, answer: Answer) -> None:
        """Decide about the rows of one ref."""
        match answer:
            case SchemaUnknown():
                self.by_ref[ref] = Refusal(Cause.UNKNOWN_SCHEMA, answer.cause)
            case SchemaInvalid():
                self.by_ref[ref] = Refusal(Cause.INVALID_SCHEMA, answer.cause)
            case CompiledSchema():
                try:
                    self.by_ref[ref] = self._fitted(answer)
                except SchemaInvalid as invalid:
                    self.by_ref[ref] = Refusal(Cause.INVALID_SCHEMA, invalid.cause)

    def _fitted(self, schema: CompiledSchema) -> Writer | Refusal:
        # every task would carry the comments along
        writer = Writer(schema.schema_id, without_comments(schema.descriptor_set), schema.message)
        decoder = decoder_of(writer.descriptor_set, writer.message, SILVER_RESERVED)
        decoder.require_readable()
        alignment = align(self.columns, decoder.columns, SILVER_RESERVED)
        if another := _other_message(schema, self.message):
            return Refusal(Cause.SCHEMA_CONFLICT, another)
        if alignment.conflicts:
            sentence = "; ".join(alignment.conflicts)
            return Refusal(Cause.SCHEMA_CONFLICT, f"Schema {schema.schema_id} does not fit the table: {sentence}.")
        if self.columns.columns and alignment.changes:
            match self._contract.mode:
                case SchemaChanges.FREEZE if alignment.widened or self._contract.frozen is Frozen.QUARANTINE:
                    return Refusal(Cause.SCHEMA_FROZEN, _frozen(schema, alignment))
                case SchemaChanges.FREEZE:
                    # what has no column is rescued
                    return writer
                case SchemaChanges.ASK if schema.schema_id not in self._contract.approved:
                    self.unapproved[schema.schema_id] = alignment.changes
                    return writer
                case _:
                    pass
        self.columns, self.message = alignment.columns, self.message or schema.message
        self.added += alignment.added
        self.widened += alignment.widened
        return writer


def _frozen(schema: CompiledSchema, alignment: Alignment) -> str:
    return f"The table is frozen, and schema {schema.schema_id} {_told(alignment.changes)}."


def _told(changes: tuple[str, ...]) -> str:
    more = f", and {len(changes) - _MAX_TOLD:,} more" if len(changes) > _MAX_TOLD else ""
    return f"{', '.join(changes[:_MAX_TOLD])}{more}"


def _approval_needed(unapproved: Mapping[int, tuple[str, ...]], game: str) -> ApprovalNeeded:
    told = "; ".join(f"schema {schema_id} {_told(changes)}" for schema_id, changes in unapproved.items())
    return ApprovalNeeded(
        f"The game waits until somebody approves its changed schemas: {told}.",
        f"Approve them with `demux schemas approve --game {shlex.quote(game)}`, or set games.schema_changes_of for the "
        "game to another mode; its rows wait in bronze.",
        game=game,
        schema_ids=tuple(unapproved),
    )


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
