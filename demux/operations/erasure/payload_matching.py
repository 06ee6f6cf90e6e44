"""What a predicate says of payloads that are in no silver table: they are decoded as far as they go. Pure.

Where that is not far enough, their bytes are looked through for the texts that the predicate seeks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pyarrow as pa

from demux.core.causes import Stage
from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.protobuf.wire.field_probe import FieldProbe, UnreadableValue, glimpse_of
from demux.core.schemas.ref import SchemaRef
from demux.core.spark.map_in_arrow import ArrowFunction, Batches
from demux.core.tables import POSITION, QUARANTINE, SILVER_RESERVED
from demux.operations.predicate.ast import OperandType, Path, Predicate, Value
from demux.operations.predicate.binder import sort_of_type
from demux.operations.predicate.evaluate import UNKNOWN, UnknownValue, outcomes

_REF = ("schema_id", "schema_guid", "message_indexes")
# what is looked at; at stage silver bronze has the key and the headers
LOOKED_AT = tuple(
    column for column in QUARANTINE if column.name in {"stage", *_REF, "bytes", "key", "headers", "batch_id"}
) + tuple(POSITION)
_VERDICT = Column("verdict", Primitive.STRING)
# and what comes out; `batch_id` is bronze's at stage bronze
JUDGED = Struct((*POSITION, Column("batch_id", Primitive.BIGINT), _VERDICT))


class MatchVerdict(Enum):
    """What is known of a record.

    Attributes:
        MEANT: the predicate is true of it.
        OTHER: it is not, whatever could not be read.
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
    """What is asked of records.

    Attributes:
        predicate: fitted to the game's table; None where there is none, so that only the bytes tell.
        sought: the texts to look for in bytes.
        writings: the schemas that rows name, as far as they are known.
    """

    predicate: Predicate | None
    sought: tuple[bytes, ...]
    writings: Mapping[SchemaRef, Writing]


def to_verdicts(question: PayloadQuery) -> ArrowFunction:
    """Return a function from rows in the columns `LOOKED_AT` to rows in those of `JUDGED`."""
    schema = pa.schema(arrow_fields(JUDGED))

    def convert(batches: Batches) -> Batches:
        for batch in batches:
            verdicts = [verdict(question, row).value for row in _rows(batch)]
            kept = [batch.column(column.name) for column in JUDGED if column != _VERDICT]
            columns = [*kept, pa.array(verdicts, pa.string())]
            cast = [one.cast(field.type) for one, field in zip(columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(cast, schema=schema)

    return convert


def verdict(question: PayloadQuery, row: Mapping[str, Any]) -> MatchVerdict:
    """Return what is known of a row in the columns `LOOKED_AT`, its `timestamp` in microseconds since 1970."""
    if question.predicate is not None and row["stage"] == Stage.SILVER.value:
        found = outcomes(question.predicate, _RowValues(question, row))
        if True not in found:
            return MatchVerdict.OTHER
        if found == {True}:
            return MatchVerdict.MEANT
    content = tuple(_content(row))
    has = any(text in piece for text in question.sought for piece in content)
    return MatchVerdict.SUSPECT if has else MatchVerdict.UNREADABLE


class _RowValues:
    """The values of a row, as its table would have them."""

    def __init__(self, question: PayloadQuery, row: Mapping[str, Any]) -> None:
        self._row = row
        self._writing = question.writings.get(SchemaRef(*(row[name] for name in _REF)))
        self._known: dict[Path, Value | UnknownValue] = {}

    def __call__(self, path: Path) -> Value | UnknownValue:
        if path not in self._known:
            self._known[path] = self._value(path)
        return self._known[path]

    def _value(self, path: Path) -> Value | UnknownValue:
        if len(path.names) == 1 and path.names[0] in SILVER_RESERVED:
            return self._of_origin(path.names[0])
        writing, payload = self._writing, self._row["bytes"]
        if writing is None or payload is None or 0 in path.numbers:
            return UNKNOWN
        glimpse = glimpse_of(writing.descriptor_set, writing.message, SILVER_RESERVED)
        return UNKNOWN if glimpse is None else _read(glimpse, payload, path)

    def _of_origin(self, name: str) -> Value | UnknownValue:
        if name == "_schema_id":
            # a row may name its schema otherwise
            named = self._row["schema_id"] if self._row["schema_guid"] is None else None
            told = named if self._writing is None else self._writing.schema_id
            return UNKNOWN if told is None else int(told)
        found: Value | UnknownValue = self._row.get(name.removeprefix("_"), UNKNOWN)
        return found


def _read(glimpse: FieldProbe, payload: bytes, path: Path) -> Value | UnknownValue:
    assert path.type is not None
    kind = glimpse.type_of(path.numbers)
    wanted = sort_of_type(path.type)
    try:
        value: Value = glimpse.value(payload, path.numbers)
    except UnreadableValue:
        return UNKNOWN
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
            return UNKNOWN


def _rows(batch: pa.RecordBatch) -> Iterator[Mapping[str, Any]]:
    # a producer may say any year, and Python has not all of them
    at = batch.schema.get_field_index("timestamp")
    return iter(batch.set_column(at, "timestamp", batch.column(at).cast(pa.int64())).to_pylist())


def _content(row: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield all that the record holds; its topic and position are not the sender's words."""
    yield row["bytes"] or b""
    yield row["key"] or b""
    for header in row["headers"] or ():
        yield (header["key"] or "").encode()
        yield header["value"] or b""
