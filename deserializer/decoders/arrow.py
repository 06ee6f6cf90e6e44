"""Bronze rows to silver rows by the `arrow` decoder: each row with the schema and the message of its own schema ref.

The functions here run in Spark's workers, on Arrow batches with the columns of a ref, `payload` and the position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from demux.core.causes import Cause
from demux.core.columns.arrow import arrow_type, project
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.batch_commit import REFUSED, RowSelection
from demux.core.protobuf.decode.decoder import decoder_of
from demux.core.schemas.ref import SchemaRef
from demux.core.spark.map_in_arrow import ArrowFunction, Batches, gathered
from demux.core.tables import POSITION, SILVER_ORIGIN, SILVER_RESERVED
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
EXAMINED = Struct((*INPUT, Column("cause", Primitive.STRING), Column("sentence", Primitive.STRING)))


@dataclass(frozen=True, slots=True)
class SchemaBatch:
    """The rows of one schema ref in a batch.

    Attributes:
        ref: the schema ref.
        rows: in the columns of `INPUT`.
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


def to_examined(decisions: Decisions, which: RowSelection) -> ArrowFunction:
    """Return a function that gives rows as they came, with cause and sentence where they do not decode."""
    names = [column.name for column in EXAMINED]

    def convert(batches: Batches) -> Batches:
        for part in parts_of(batches, decisions):
            sentences: list[str | None] = [None] * len(part.rows)
            for row, sentence in part.bad:
                sentences[row] = sentence
            causes = [None if sentence is None else part.cause for sentence in sentences]
            examined = pa.RecordBatch.from_arrays(
                [*part.rows.columns, pa.array(causes, pa.string()), pa.array(sentences, pa.string())], names=names
            )
            yield examined.filter(examined.column("cause").is_valid()) if which is RowSelection.REFUSED else examined

    return convert


def parts_of(batches: Batches, decisions: Decisions) -> Iterator[SchemaBatch]:
    """Yield what becomes of the rows of each schema ref of each batch, which have the columns of `INPUT`."""
    for batch in gathered(batches):
        for ref, rows in by_ref(batch.select([column.name for column in INPUT])):
            yield _part(rows, ref, decisions.of(ref), decisions.columns)


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


def _part(rows: pa.RecordBatch, ref: SchemaRef, decision: WriterSchema | Refusal, table: Struct) -> SchemaBatch:
    schema_ids = rows.column("schema_id")
    match decision:
        case Refusal(cause, sentence):
            bad = tuple((row, sentence) for row in range(len(rows)))
            return SchemaBatch(ref, rows, schema_ids, (), [], pa.nulls(0, pa.binary()), bad, cause.value)
        case WriterSchema(schema_id, descriptor_set, message):
            decoder = decoder_of(descriptor_set, message, SILVER_RESERVED)
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


def _chosen(part: SchemaBatch, chosen: Sequence[int]) -> list[pa.Array]:
    """Return the schema ids and the positions of the rows at these positions."""
    columns = [part.schema_ids, *part.rows.select([column.name for column in POSITION]).columns]
    if chosen == range(len(part.rows)):
        return columns
    positions = pa.array(chosen, pa.int64())
    return [column.take(positions) for column in columns]
