"""Evaluates a predicate on payloads that are in no silver table, decoded as far as possible. Pure.

Where that is not far enough, their bytes are looked through for the texts that the predicate seeks. What is found is
kept as a row: where a record is, and what is known of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from demux.core.columns.arrow import arrow_fields, as_type
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.protobuf.wire.field_probe import FieldProbe, UnreadableValue, glimpse_of
from demux.core.schemas.ref import SchemaRef
from demux.core.tables import POSITION, QUARANTINE, SILVER_RESERVED
from demux.operations.predicate.ast import OperandType, Path, Predicate, Value
from demux.operations.predicate.binder import sort_of, sort_of_type
from demux.operations.predicate.evaluate import RowValues, array_of, evaluate, matching

REF = ("schema_id", "schema_guid", "message_indexes")
# what is looked at; at stage silver bronze has the key and the headers
LOOKED_AT = (
    *(column for column in QUARANTINE if column.name in {*REF, "bytes", "key", "headers", "batch_id"}),
    *POSITION,
)
BATCH = Column("batch_id", Primitive.BIGINT)
# what `control/removed` gets of a record; a time is a number, as DuckDB has not all years
FOUND = Struct((*(replace(one, type=Primitive.BIGINT) if one.name == "timestamp" else one for one in POSITION), BATCH))
JUDGED = Struct((*FOUND, Column("verdict", Primitive.STRING), Column("found_in", Primitive.STRING)))
_SCHEMA = pa.schema(arrow_fields(JUDGED))


class MatchVerdict(Enum):
    """The result of a predicate on a record.

    Attributes:
        MEANT: the predicate is true of it.
        UNREADABLE: what could be read decides nothing.
        SUSPECT: the same, and its bytes have one of the texts that are sought.
    """

    MEANT = "meant"
    OTHER = "other"
    UNREADABLE = "unreadable"
    SUSPECT = "suspect"


@dataclass(frozen=True, slots=True)
class Writing:
    """The schema that a payload was written with: a serialized `FileDescriptorSet`, and the message's full name."""

    schema_id: int
    descriptor_set: bytes
    message: str


@dataclass(frozen=True, slots=True)
class PayloadQuery:
    """A predicate, and the texts to look for in bytes.

    Attributes:
        predicate: fitted to the game's table; None where there is none, so that only the bytes tell.
    """

    predicate: Predicate | None
    sought: tuple[bytes, ...]
    writings: Mapping[SchemaRef, Writing]


def verdicts_of(question: PayloadQuery, rows: pa.RecordBatch) -> list[MatchVerdict]:
    """Return the verdict on each row; the rows have the columns `LOOKED_AT`."""
    records = list(_records(rows))
    if question.predicate is None:
        return [_by_bytes(question, record) for record in records]
    payloads = [_Payload(question, record) for record in records]

    def values(path: Path) -> RowValues:
        found = [payload.value(path) for payload in payloads]
        known = [None if isinstance(value, _Unread) else value for value in found]
        unknown = pa.array([isinstance(value, _Unread) for value in found], pa.bool_())
        return RowValues(array_of(known, sort_of(path)), unknown)

    found = evaluate(question.predicate, len(records), values)
    columns = (found.true.to_pylist(), found.false.to_pylist(), found.null.to_pylist())
    return [
        MatchVerdict.OTHER
        if not may_be_true
        else _by_bytes(question, record)
        if may_be_false or may_be_null
        else MatchVerdict.MEANT
        for record, may_be_true, may_be_false, may_be_null in zip(records, *columns, strict=True)
    ]


class _Unread(Enum):
    """The placeholder of a value that could not be read."""

    UNREAD = "unread"


_UNREAD = _Unread.UNREAD


class _Payload:
    """The values of a record, as its table would have them."""

    def __init__(self, question: PayloadQuery, record: Mapping[str, Any]) -> None:
        self._record = record
        self._writing = question.writings.get(SchemaRef(*(record[name] for name in REF)))

    def value(self, path: Path) -> Value | _Unread:
        if len(path.names) == 1 and path.names[0] in SILVER_RESERVED:
            return self._of_origin(path.names[0])
        writing, payload = self._writing, self._record["bytes"]
        if writing is None or payload is None or 0 in path.numbers:
            return _UNREAD
        glimpse = glimpse_of(writing.descriptor_set, writing.message, SILVER_RESERVED)
        return _UNREAD if glimpse is None else _read(glimpse, payload, path)

    def _of_origin(self, name: str) -> Value | _Unread:
        if name == "_schema_id":
            # a row may name its schema otherwise
            named = self._record["schema_id"] if self._record["schema_guid"] is None else None
            known = named if self._writing is None else self._writing.schema_id
            return _UNREAD if known is None else int(known)
        found: Value | _Unread = self._record.get(name.removeprefix("_"), _UNREAD)
        return found


def _read(glimpse: FieldProbe, payload: bytes, path: Path) -> Value | _Unread:
    assert path.type is not None
    kind = glimpse.type_of(path.numbers)
    wanted = sort_of_type(path.type)
    try:
        value: Value = glimpse.value(payload, path.numbers)
    except UnreadableValue:
        return _UNREAD
    if kind is None or value is None:
        return value
    match sort_of_type(kind), wanted:
        case found, _ if found is wanted:
            return value
        case OperandType.NUMBER, OperandType.FLOATING:
            assert isinstance(value, int)
            return float(value)
        case _:
            # a schema that does not fit the table
            return _UNREAD


def _by_bytes(question: PayloadQuery, record: Mapping[str, Any]) -> MatchVerdict:
    content = tuple(_content(record))
    has = any(text in piece for text in question.sought for piece in content)
    return MatchVerdict.SUSPECT if has else MatchVerdict.UNREADABLE


def _records(rows: pa.RecordBatch) -> Iterator[Mapping[str, Any]]:
    # a producer may say any year, and Python has not all of them
    at = rows.schema.get_field_index("timestamp")
    return iter(rows.set_column(at, "timestamp", rows.column(at).cast(pa.int64())).to_pylist())


def _content(record: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield all that the record holds; its topic and position are not the sender's words."""
    yield record["bytes"] or b""
    yield record["key"] or b""
    for header in record["headers"] or ():
        yield (header["key"] or "").encode()
        yield header["value"] or b""


class FoundIn(Enum):
    """Where a record was found; in bronze alone what was dropped from quarantine."""

    SILVER = "silver"
    QUARANTINE = "quarantine"
    BRONZE = "bronze"


def judged_rows(
    question: PayloadQuery,
    place: FoundIn,
    chosen: Callable[[pa.RecordBatch], pa.BooleanArray],
    rows: pa.RecordBatch,
) -> pa.RecordBatch:
    """Return the verdicts on the chosen rows of quarantine, or of bronze, without those that do not match."""
    rows = rows.filter(chosen(rows))
    columns = [
        rows.column("payload" if one.name == "bytes" and place is FoundIn.BRONZE else one.name) for one in LOOKED_AT
    ]
    verdicts = verdicts_of(question, pa.RecordBatch.from_arrays(columns, [one.name for one in LOOKED_AT]))
    found = _located(rows, "", rows.column("batch_id"), [one.value for one in verdicts], place)
    return found.filter(pc.not_equal(found.column("verdict"), MatchVerdict.OTHER.value))


def matching_rows(predicate: Predicate, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of silver that match, in the columns `JUDGED`."""
    found = rows.filter(matching(predicate, rows))
    number = len(found)
    batches = pa.nulls(number, pa.int64())
    return _located(found, "_", batches, [MatchVerdict.MEANT.value] * number, FoundIn.SILVER)


def _located(
    rows: pa.RecordBatch, prefix: str, batches: pa.Array, verdicts: list[str], place: FoundIn
) -> pa.RecordBatch:
    position = [
        as_type(rows.column(f"{prefix}{one.name}"), field.type) for one, field in zip(POSITION, _SCHEMA, strict=False)
    ]
    columns = [*position, batches, pa.array(verdicts, pa.string()), pa.repeat(place.value, len(rows))]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)
