"""What to do with each schema ref of a micro-batch: decode its rows into the table, or refuse them. Pure."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from demux.core.causes import Cause
from demux.core.columns.schema_merge import Alignment, align
from demux.core.columns.types import Struct
from demux.core.errors import ApprovalNeeded, SchemaInvalid, SchemaUnknown
from demux.core.protobuf.decode.decoder import decoder_of
from demux.core.protobuf.schema.comments import without_comments
from demux.core.protobuf.schema.message_selection import has_message
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.subject_choice import ForeignSchema
from demux.core.settings.games import EVOLVE, Contract, Frozen, SchemaChanges
from demux.core.tables import SILVER_RESERVED

# changes of a table that a sentence names
_MAX_TOLD = 5


@dataclass(frozen=True, slots=True)
class WriterSchema:
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
    """Why rows of a schema ref are not decoded.

    Attributes:
        cause: the code that quarantine has.
        sentence: what is wrong.
        may_pass: whether the registry may say otherwise later, without any change of the table.
    """

    cause: Cause
    sentence: str
    may_pass: bool = False


@dataclass(frozen=True, slots=True)
class Decisions:
    """What to do with the rows of a micro-batch.

    Attributes:
        columns: the table's payload columns, after all that is added for this batch.
        added: dotted paths of the columns that the table does not have yet.
        by_ref: what to do with the rows of each schema ref of the batch.
        message: the full name of the message that the table holds; None while it holds none.
        widened: dotted paths of the columns that the table has in a narrower type.
        reserved: lower-case names that none of the columns has.
    """

    columns: Struct
    added: tuple[str, ...]
    by_ref: Mapping[SchemaRef, WriterSchema | Refusal]
    message: str | None = None
    widened: tuple[str, ...] = ()
    reserved: frozenset[str] = SILVER_RESERVED

    def of(self, ref: SchemaRef) -> WriterSchema | Refusal:
        """Return what to do with the rows of this ref.

        Raises:
            UnknownRef: nothing was decided about it.
        """
        if ref not in self.by_ref:
            raise UnknownRef(ref)
        return self.by_ref[ref]

    @property
    def writers(self) -> dict[SchemaRef, WriterSchema]:
        """The refs whose rows are decoded."""
        return {ref: each for ref, each in self.by_ref.items() if isinstance(each, WriterSchema)}

    def schema_ids(self, refs: Iterable[SchemaRef] | None = None) -> tuple[int, ...]:
        """Return the ids that these refs stand for, or all; sorted. An unknown GUID has none."""
        decided = ((ref, self.of(ref)) for ref in (self.by_ref if refs is None else refs))
        ids = {each.schema_id if isinstance(each, WriterSchema) else ref.schema_id for ref, each in decided}
        return tuple(sorted(schema_id for schema_id in ids if schema_id is not None))


# before any row was looked at
UNDECIDED = Decisions(Struct(()), (), {})


SchemaLookup = CompiledSchema | ForeignSchema | SchemaUnknown | SchemaInvalid


def decide(
    table: Struct,
    answers: Mapping[SchemaRef, SchemaLookup],
    message: str | None = None,
    contract: Contract = EVOLVE,
    *,
    rows: Mapping[SchemaRef, int] | None = None,
    reserved: frozenset[str] = SILVER_RESERVED,
) -> Decisions:
    """Return the decisions for a batch, the same whatever the order of its rows.

    The leading schema always fits a table that has no columns yet: of the subject with most rows, the version with most
    rows, and where two tie, the newest version, of that the first message. The other schemas of its subject come first
    where the leading one still fits behind them, older versions before newer ones: their names are the ones that the
    table keeps. The other subjects follow. A table without columns takes its first schema in every mode.

    Args:
        table: the table's payload columns now; none for a new table.
        answers: what each ref that occurs in the batch means for the game.
        message: the full name of the message that the table holds, if that is known.
        contract: what the game's table does with schemas that would change it.
        rows: how many rows of the batch have each ref; None: not counted.
        reserved: lower-case names that no top-level column takes.

    Raises:
        ApprovalNeeded: the table asks before it changes, and some of the schemas are not approved.
    """
    deciding = _TableEvolution(table, message, contract, reserved)
    for ref, answer in answers.items():
        if not isinstance(answer, CompiledSchema):
            deciding.refuse(ref, answer)
    for subject in _by_subject(answers, rows or {}):
        deciding.take_all(subject)
    if deciding.unapproved:
        raise _approval_needed(deciding.unapproved, contract.game)
    return Decisions(
        deciding.columns, tuple(deciding.added), deciding.by_ref, deciding.message, tuple(deciding.widened), reserved
    )


@dataclass(frozen=True, slots=True)
class _SchemaUse:
    """A schema of the batch, and how many rows have it."""

    ref: SchemaRef
    schema: CompiledSchema
    rows: int

    @property
    def age(self) -> tuple[int, int, str, str]:
        """What sorts older versions first."""
        return (self.schema.version, self.schema.schema_id, self.ref.message_indexes or "", self.ref.guid or "")


def _by_subject(answers: Mapping[SchemaRef, SchemaLookup], rows: Mapping[SchemaRef, int]) -> list[list[_SchemaUse]]:
    """Return the schemas of each subject; the subject with most rows first, then the one with the newest version."""
    subjects: defaultdict[str, list[_SchemaUse]] = defaultdict(list)
    for ref, answer in answers.items():
        if isinstance(answer, CompiledSchema):
            subjects[answer.subject].append(_SchemaUse(ref, answer, rows.get(ref, 0)))

    def order(subject: str) -> tuple[int, int, str]:
        mine = subjects[subject]
        return (-sum(one.rows for one in mine), -max(one.schema.version for one in mine), subject)

    return [subjects[subject] for subject in sorted(subjects, key=order)]


class _TableEvolution:
    """The table as it becomes, schema by schema."""

    def __init__(self, table: Struct, message: str | None, contract: Contract, reserved: frozenset[str]) -> None:
        self.columns = table
        self.message = message
        self.added: list[str] = []
        self.widened: list[str] = []
        self.by_ref: dict[SchemaRef, WriterSchema | Refusal] = {}
        self.unapproved: dict[int, tuple[str, ...]] = {}
        self._contract = contract
        self._reserved = reserved

    def refuse(self, ref: SchemaRef, answer: ForeignSchema | SchemaUnknown | SchemaInvalid) -> None:
        """Refuse the rows of a ref that means no schema of the game."""
        match answer:
            case ForeignSchema():
                cause = Cause.SCHEMA_CONFLICT
            case SchemaUnknown():
                cause = Cause.UNKNOWN_SCHEMA
            case SchemaInvalid():
                cause = Cause.INVALID_SCHEMA
        self.by_ref[ref] = Refusal(cause, answer.message, may_pass=True)

    def take_all(self, subject: Sequence[_SchemaUse]) -> None:
        """Decide about the schemas of one subject."""
        rows: Counter[str] = Counter()
        for one in subject:
            rows[one.schema.message] += one.rows
        # of several messages of the subject, the one with most rows leads
        leading = min(subject, key=lambda one: (-rows[one.schema.message], -one.rows, -one.schema.version, one.age))
        in_order = sorted(subject, key=lambda one: one.age)
        older, others = in_order[: in_order.index(leading)], in_order[in_order.index(leading) :]
        after: list[_SchemaUse] = []
        for one in older:
            if self._fits_behind(leading.schema, one.schema):
                self._take(one)
            else:
                after.append(one)
        for one in (*others, *after):
            self._take(one)

    def _take(self, one: _SchemaUse) -> None:
        try:
            self.by_ref[one.ref] = self._fitted(one.schema)
        except SchemaInvalid as invalid:
            self.by_ref[one.ref] = Refusal(Cause.INVALID_SCHEMA, invalid.message, may_pass=True)

    def _fits_behind(self, leading: CompiledSchema, older: CompiledSchema) -> bool:
        """Return whether the leading schema can be taken after the older one."""
        try:
            columns = align(self.columns, self._columns_of(older), self._reserved).columns
            conflicts = align(columns, self._columns_of(leading), self._reserved).conflicts
        except SchemaInvalid:
            return True
        return not conflicts and _other_message(leading, self.message or older.message) is None

    def _fitted(self, schema: CompiledSchema) -> WriterSchema | Refusal:
        # every task would carry the comments along
        writer = WriterSchema(schema.schema_id, without_comments(schema.descriptor_set), schema.message)
        alignment = align(self.columns, self._columns_of(schema), self._reserved)
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

    def _columns_of(self, schema: CompiledSchema) -> Struct:
        """Return the columns of the schema's message; raises SchemaInvalid where no payload could be read."""
        decoder = decoder_of(without_comments(schema.descriptor_set), schema.message, self._reserved)
        decoder.require_readable()
        return decoder.columns


def _frozen(schema: CompiledSchema, alignment: Alignment) -> str:
    return f"The table is frozen, and schema {schema.schema_id} {_changes_text(alignment.changes)}."


def _changes_text(changes: tuple[str, ...]) -> str:
    more = f", and {len(changes) - _MAX_TOLD:,} more" if len(changes) > _MAX_TOLD else ""
    return f"{', '.join(changes[:_MAX_TOLD])}{more}"


def _approval_needed(unapproved: Mapping[int, tuple[str, ...]], game: str) -> ApprovalNeeded:
    changes_text = "; ".join(
        f"schema {schema_id} {_changes_text(changes)}" for schema_id, changes in unapproved.items()
    )
    return ApprovalNeeded(
        f"The game waits until its changed schemas are approved: {changes_text}.",
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
