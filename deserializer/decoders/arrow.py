"""Bronze rows to silver rows by the `arrow` decoder: each row with the schema and the message of its own schema ref.

The functions here run in Spark's workers, on Arrow batches with the columns of a ref, `payload` and the position.
`decode_part` gives bad rows their cause; their sentence is that of `demux/core/protobuf/decode/reference_parser.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from demux.core.causes import Cause, Stage
from demux.core.columns.arrow import arrow_fields, arrow_type, project
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.batch_commit import REFUSED
from demux.core.delta.parquet_writer import add_constants
from demux.core.protobuf.decode.decoder import decoder_of
from demux.core.schemas.ref import SchemaRef
from demux.core.spark.map_in_arrow import ArrowFunction, Batches, merge_small_batches
from demux.core.tables import POSITION, QUARANTINE, SILVER_ORIGIN
from deserializer.decoders.schema_decision import Decisions, Refusal, WriterSchema

# the columns of a `SchemaRef`, in its order
REF = Struct(
    (
        Column("schema_id", Primitive.INT),
        Column("schema_guid", Primitive.STRING),
        Column("message_indexes", Primitive.STRING),
    )
)
INPUT = Struct((*REF, Column("payload", Primitive.BINARY), *POSITION))
# all of silver's last columns but the time of decoding, which Spark adds
ORIGIN = Struct(SILVER_ORIGIN.columns[:-1])


@dataclass(frozen=True, slots=True)
class SchemaBatch:
    """The rows of one schema ref in a batch.

    Attributes:
        ref: the schema ref.
        rows: as they came.
        schema_ids: the schema's id, for each row.
        good: positions of those that decoded; a range where all did, in their order.
        columns: what these decoded to, in the table's columns.
        rescued: what these hold besides (BINARY).
        bad: positions of the others, and why.
        cause: the `Cause` of all of these.
    """

    ref: SchemaRef
    rows: pa.RecordBatch
    schema_ids: pa.Array
    good: Sequence[int]
    columns: list[pa.Array]
    rescued: pa.Array
    bad: tuple[tuple[int, str], ...]
    cause: str


def silver_columns(payload: Struct) -> Struct:
    """Return the columns that `to_silver` gives: the payload's, the origin's, and `REFUSED`."""
    return Struct((*payload, *ORIGIN, Column(REFUSED, Primitive.BOOLEAN)))


def to_silver(decisions: Decisions) -> ArrowFunction:
    """Return a function that decodes batches; a refused row comes with NULLs and `REFUSED` true."""
    names = [column.name for column in silver_columns(decisions.columns)]

    def convert(batches: Batches) -> Batches:
        for part in parts_of(batches, decisions):
            if part.good:
                origin = origin_of(part)
                refused = pa.array(np.zeros(len(part.good), dtype=bool))
                yield pa.RecordBatch.from_arrays([*part.columns, *origin, refused], names=names)
            if part.bad:
                origin = _chosen(part, [row for row, _ in part.bad])
                nothing = [pa.nulls(len(part.bad), arrow_type(column.type)) for column in decisions.columns]
                rescued = pa.nulls(len(part.bad), pa.binary())
                refused = pa.array(np.ones(len(part.bad), dtype=bool))
                yield pa.RecordBatch.from_arrays([*nothing, *origin, rescued, refused], names=names)

    return convert


def to_refused(decisions: Decisions, game: str, query_id: str, batch_id: int, now: datetime) -> ArrowFunction:
    """Return a function that gives what does not decode in the columns of quarantine, as `bad_rows`."""

    def convert(batches: Batches) -> Batches:
        for part in parts_of(batches, decisions):
            if part.bad:
                yield bad_rows(part, game, query_id, batch_id, now)

    return convert


def parts_of(batches: Batches, decisions: Decisions) -> Iterator[SchemaBatch]:
    """Yield what becomes of the rows of each schema ref of each batch, which have the columns of `INPUT`."""
    for batch in merge_small_batches(batches):
        for ref, rows in by_ref(batch.select([column.name for column in INPUT])):
            yield decode_part(rows, ref, decisions.of(ref), decisions)


def by_ref(batch: pa.RecordBatch) -> Iterator[tuple[SchemaRef, pa.RecordBatch]]:
    """Yield the rows of each schema ref of a batch that has the columns of `REF`, the refs by their first row."""
    codes = np.zeros(len(batch), dtype=np.int64)
    for column in REF:
        if batch.column(column.name).null_count == len(batch):
            continue
        encoded = batch.column(column.name).dictionary_encode(null_encoding="encode")
        codes = codes * max(1, len(encoded.dictionary)) + encoded.indices.to_numpy(zero_copy_only=False)
    distinct = pc.unique(pa.array(codes)).to_pylist()
    for code in distinct:
        rows = batch if len(distinct) == 1 else batch.filter(pa.array(codes == code))
        yield SchemaRef(*(rows.column(column.name)[0].as_py() for column in REF)), rows


def decode_part(
    rows: pa.RecordBatch, ref: SchemaRef, decision: WriterSchema | Refusal, decisions: Decisions
) -> SchemaBatch:
    """Return what becomes of rows of one ref.

    Args:
        rows: with the columns `schema_id` and `payload`, and any others.
        ref: the ref of all of them.
        decision: what to do with them.
        decisions: the columns that they are decoded to.
    """
    table = decisions.columns
    schema_ids = rows.column("schema_id")
    match decision:
        case Refusal(cause, sentence):
            bad = tuple((row, sentence) for row in range(len(rows)))
            return SchemaBatch(ref, rows, schema_ids, (), [], pa.nulls(0, pa.binary()), bad, cause.value)
        case WriterSchema(schema_id, descriptor_set, message):
            decoder = decoder_of(descriptor_set, message, decisions.reserved)
            # a wrapper without payload holds a message whose fields are all unset
            payloads = rows.column("payload").fill_null(b"")
            decoded = decoder.decode(payloads)
            columns = project(decoded.columns, decoder.columns, table, len(decoded.good))
            rescued = decoder.rescued(payloads, decoded, table)
            if ref.guid is not None:
                schema_ids = pa.array(np.full(len(rows), schema_id, dtype=np.int32))
            bad, cause_of_all = decoded.bad, Cause.MALFORMED_PAYLOAD.value
            return SchemaBatch(ref, rows, schema_ids, decoded.good, columns, rescued, bad, cause_of_all)


def origin_of(part: SchemaBatch) -> list[pa.Array]:
    """Return the columns of `ORIGIN` of the good rows."""
    return [*_chosen(part, part.good), part.rescued]


def good_rows(part: SchemaBatch, columns: Struct, now: datetime) -> pa.RecordBatch:
    """Return what decoded in the columns of the silver table, decoded at this time."""
    origin = origin_of(part)
    fields = arrow_fields(columns)
    decoded_at = pa.repeat(pa.scalar(now, fields[-1].type), len(part.good))
    return pa.RecordBatch.from_arrays([*part.columns, *origin, decoded_at], schema=pa.schema(fields))


def bad_rows(part: SchemaBatch, game: str, query_id: str, batch_id: int, now: datetime) -> pa.RecordBatch:
    """Return what did not decode in the columns of quarantine, quarantined by this query and batch at this time."""
    rows = part.rows.take(pa.array([row for row, _ in part.bad], pa.int64()))
    sentences = pa.array([sentence for _, sentence in part.bad], pa.string())
    rows_with_sentences = pa.RecordBatch.from_arrays(
        [*rows.columns, sentences], names=[*("bytes" if c.name == "payload" else c.name for c in INPUT), "sentence"]
    )
    return add_constants(
        rows_with_sentences,
        QUARANTINE,
        stage=Stage.SILVER.value,
        cause=part.cause,
        game_name=game,
        # bronze has the key and the headers of these rows
        key=None,
        headers=None,
        query_id=query_id,
        batch_id=batch_id,
        quarantined_at=now,
    )


def _chosen(part: SchemaBatch, chosen: Sequence[int]) -> list[pa.Array]:
    """Return the schema ids and the positions of the rows at these positions."""
    columns = [part.schema_ids, *part.rows.select([column.name for column in POSITION]).columns]
    if chosen == range(len(part.rows)):
        return columns
    positions = pa.array(chosen, pa.int64())
    return [column.take(positions) for column in columns]
