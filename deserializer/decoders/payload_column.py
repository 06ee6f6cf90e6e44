"""Payloads in a column of any frame to messages, by the `arrow` decoder: each row with its own schema.

The functions here run in Spark's workers. A row that does not decode keeps its bytes, with a cause and a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from demux.core.causes import Cause
from demux.core.columns.arrow import arrow_fields, arrow_type, as_type, spread
from demux.core.columns.types import EMPTY_STRUCT, Column, Primitive, Struct
from demux.core.errors import SchemaInvalid
from demux.core.protobuf.schema.message_selection import messages_at
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.protobuf.wire.framing_batch import after_frames, frames_before
from demux.core.schemas.ref import SchemaRef
from demux.core.settings.source import WrapperFraming
from demux.core.spark.map_in_arrow import ArrowFunction, Batches, merge_small_batches
from deserializer.decoders.arrow import REF, by_ref, decode_part
from deserializer.decoders.schema_decision import Decisions, Refusal, WriterSchema, decide

# why a row has no message, and the bytes that it had
BAD_ROW = Struct(
    (
        Column("cause", Primitive.STRING),
        Column("sentence", Primitive.STRING),
        Column("bytes", Primitive.BINARY),
    )
)
# schema ids that a sentence names
_MAX_NAMED = 5
_Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PayloadColumn:
    """Where a frame has payloads, and which schema each was written with.

    Attributes:
        payload: the place of the payloads' column in the frame.
        framing: whether a frame is before each payload.
        decisions: what to do with rows of each schema id.
        schema_id: the place of the column with each row's schema id; None where there is none.
        shared_id: the schema id of all rows; None where each row says its own.
    """

    payload: int
    framing: WrapperFraming
    decisions: Decisions
    schema_id: int | None = None
    shared_id: int | None = None

    def message_columns(self, into: str | None) -> Struct:
        """Return the columns of the message: one struct of this name, or without a name a column for each field."""
        columns = self.decisions.columns
        return columns if into is None else Struct((Column(into, columns if columns.columns else EMPTY_STRUCT),))


def decide_column(
    schemas: Mapping[int, CompiledSchema | SchemaInvalid], reserved: frozenset[str] = frozenset()
) -> Decisions:
    """Return what to do with rows of these schemas, by id; the columns are those of a new silver table.

    Raises:
        SchemaInvalid: none of the schemas can be used.
    """
    decisions = decide(Struct(()), {SchemaRef(schema_id): one for schema_id, one in schemas.items()}, reserved=reserved)
    if not decisions.writers:
        raise next(one for one in schemas.values() if isinstance(one, SchemaInvalid))
    return decisions


def to_messages(column: PayloadColumn, into: str | None, quarantine: str, rescued: str | None) -> ArrowFunction:
    """Return a function that gives a frame's other columns, and behind them the message and why there is none.

    Args:
        column: where the payloads are.
        into: name of the struct; None for a column for each field.
        quarantine: name of the column of `BAD_ROW`, NULL for good rows.
        rescued: name of a column (BINARY) of what payloads hold beyond the message's columns; None for no such column.
    """
    names = [*(one.name for one in column.message_columns(into)), quarantine, *(() if rescued is None else (rescued,))]

    def convert(batches: Batches) -> Batches:
        for batch in merge_small_batches(batches):
            messages, left = _decode_batch(batch, column)
            bad = left.bad_rows(batch.column(column.payload))
            made = [*_shaped(messages[:-1], column, into, left.good), bad, *(() if rescued is None else messages[-1:])]
            others = [at for at in range(batch.num_columns) if at != column.payload]
            arrays = [*(batch.column(at) for at in others), *made]
            yield pa.RecordBatch.from_arrays(arrays, names=[*(batch.schema.names[at] for at in others), *names])

    return convert


@dataclass(slots=True)
class _RowStates:
    """Which rows of a batch have a message, and why others have none; the first reason counts."""

    good: npt.NDArray[np.bool_]
    reasons: dict[int, tuple[str, str]] = field(default_factory=dict)

    def refuse(self, row: int, cause: str, sentence: str) -> None:
        self.reasons.setdefault(row, (cause, sentence))

    def bad_rows(self, payloads: pa.Array) -> pa.Array:
        """Return the column of `BAD_ROW`."""
        kind = arrow_type(BAD_ROW)
        if not self.reasons:
            return pa.nulls(len(payloads), kind)
        made = pa.array(
            [
                {"cause": cause, "sentence": sentence, "bytes": payloads[row].as_py()}
                for row, (cause, sentence) in self.reasons.items()
            ],
            kind,
        )
        return spread(made, list(self.reasons), len(payloads))


def _decode_batch(batch: pa.RecordBatch, column: PayloadColumn) -> tuple[list[pa.Array], _RowStates]:
    """Return the columns of the message and the rescued bytes, NULL in rows without a message, in the batch's order."""
    states = _RowStates(np.zeros(len(batch), dtype=bool))
    decisions = column.decisions
    pieces: list[list[pa.Array]] = []
    numbers: list[_Rows] = []
    for ref, rows in by_ref(_payload_rows(batch, column, states)):
        part = decode_part(rows, ref, _decision_of(ref, decisions), decisions)
        own = rows.column("row").to_numpy()
        for at, sentence in part.bad:
            states.refuse(int(own[at]), part.cause, sentence)
        if part.good:
            pieces.append([*part.columns, part.rescued])
            numbers.append(own if part.good == range(len(own)) else own[np.array(part.good)])
    return _restore_order(pieces, numbers, states, decisions.columns), states


def _restore_order(
    pieces: list[list[pa.Array]], numbers: list[_Rows], states: _RowStates, table: Struct
) -> list[pa.Array]:
    count = len(states.good)
    if not pieces:
        return [*(pa.nulls(count, one.type) for one in arrow_fields(table)), pa.nulls(count, pa.binary())]
    arrays = [pa.concat_arrays(parts) if len(parts) > 1 else parts[0] for parts in zip(*pieces, strict=True)]
    rows = np.concatenate(numbers)
    states.good[rows] = True
    if np.array_equal(rows, np.arange(count)):
        return arrays
    return [spread(array, rows, count) for array in arrays]


def _payload_rows(batch: pa.RecordBatch, column: PayloadColumn, states: _RowStates) -> pa.RecordBatch:
    """Return the rows that have a payload: the columns of `REF`, `payload` without frame, and `row`, their number."""
    payloads = as_type(batch.column(column.payload), pa.binary())
    ids, indexes, guids = _ids(batch, column), pa.nulls(len(batch), pa.string()), pa.nulls(len(batch), pa.string())
    if column.framing is WrapperFraming.CONFLUENT:
        frames = frames_before(payloads)
        for row, reason in frames.bad:
            states.refuse(row, Cause.MALFORMED_FRAME.value, f"The payload has no frame: {reason}.")
        payloads = after_frames(payloads, frames.lengths)
        if column.shared_id is None:
            ids, guids, indexes = frames.schema_id, frames.guid, frames.indexes
    rows = pa.RecordBatch.from_arrays(
        [ids, guids, indexes, payloads, pa.array(np.arange(len(batch)))],
        names=[*(one.name for one in REF), "payload", "row"],
    )
    kept = payloads.is_valid().to_numpy(zero_copy_only=False).copy()
    kept[list(states.reasons)] = False
    return rows if kept.all() else rows.filter(pa.array(kept))


def _ids(batch: pa.RecordBatch, column: PayloadColumn) -> pa.Array:
    if column.shared_id is not None:
        return pa.array(np.full(len(batch), column.shared_id, dtype=np.int32))
    if column.schema_id is None:
        return pa.nulls(len(batch), pa.int32())
    return as_type(batch.column(column.schema_id), pa.int64())


def _decision_of(ref: SchemaRef, decisions: Decisions) -> WriterSchema | Refusal:
    """Return what to do with rows of a ref; one that the frame's schema was not decided with is refused."""
    if ref.guid is not None:
        return Refusal(Cause.UNKNOWN_SCHEMA, f"The frame names schema {ref.guid} by GUID, and only ids are known here.")
    if ref.schema_id is None:
        return Refusal(Cause.UNKNOWN_SCHEMA, "The row has no schema id.")
    decision = decisions.by_ref.get(SchemaRef(ref.schema_id))
    if decision is None:
        return Refusal(
            Cause.UNKNOWN_SCHEMA,
            f"Schema {ref.schema_id} is none of those that were known when the frame was made: {_known(decisions)}.",
        )
    if isinstance(decision, Refusal) or ref.message_indexes is None:
        return decision
    found = messages_at(decision.descriptor_set, ref.message_indexes)
    if decision.message in found:
        return decision
    what = f"message {' or '.join(found)}" if found else f"no message (its indexes are {ref.message_indexes})"
    return Refusal(
        Cause.SCHEMA_CONFLICT, f"The frame names {what} of schema {ref.schema_id}; the column has {decision.message}."
    )


def _known(decisions: Decisions) -> str:
    ids = sorted(ref.schema_id for ref in decisions.by_ref if ref.schema_id is not None)
    more = f" and {len(ids) - _MAX_NAMED:,} more" if len(ids) > _MAX_NAMED else ""
    return f"{', '.join(map(str, ids[-_MAX_NAMED:]))}{more}"


def _shaped(
    columns: list[pa.Array], column: PayloadColumn, into: str | None, good: npt.NDArray[np.bool_]
) -> list[pa.Array]:
    if into is None:
        return columns
    mask = None if good.all() else pa.array(~good)
    if not columns:
        columns = [pa.array(np.ones(len(good), dtype=bool))]
    fields = arrow_fields(column.decisions.columns if column.decisions.columns.columns else EMPTY_STRUCT)
    return [pa.StructArray.from_arrays(columns, fields=fields, mask=mask)]
