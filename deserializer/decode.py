"""Bronze rows to silver rows by the `arrow` decoder: each row with the schema of its own `schema_id`.

The functions here run in Spark's workers, on Arrow batches with the columns `schema_id`, `payload` and the position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from demux.arrow_types import arrow_type
from demux.causes import Cause
from demux.columns import Column, Primitive, Struct
from demux.commits import REFUSED, Rows
from demux.projection import project
from demux.protobuf.decoder import decoder_of
from demux.tables import POSITION, SILVER_ORIGIN, SILVER_RESERVED
from deserializer.decisions import Decisions, Refusal, Writer

INPUT = Struct((Column("schema_id", Primitive.INT), Column("payload", Primitive.BINARY), *POSITION))
# all of silver's last columns but the time of decoding, which Spark adds
ORIGIN = Struct(SILVER_ORIGIN.columns[:-1])
EXAMINED = Struct((*INPUT, Column("cause", Primitive.STRING), Column("sentence", Primitive.STRING)))

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class _Part:
    """The rows of one schema id: which decoded, to what, and why the others did not."""

    rows: pa.RecordBatch
    good: tuple[int, ...]
    columns: list[pa.Array]
    bad: tuple[tuple[int, str], ...]
    cause: str


def silver_columns(payload: Struct) -> Struct:
    """Return the columns that `to_silver` gives: the payload's, the origin's, and `REFUSED`."""
    return Struct((*payload, *ORIGIN, Column(REFUSED, Primitive.BOOLEAN)))


def to_silver(decisions: Decisions) -> Callable[[Batches], Batches]:
    """Return a function that decodes batches; a refused row comes with NULLs and `REFUSED` true."""
    names = [column.name for column in silver_columns(decisions.columns)]

    def convert(batches: Batches) -> Batches:
        for part in _parts(batches, decisions):
            if part.good:
                origin = _origin(part.rows.take(pa.array(part.good, pa.int64())))
                refused = pa.array(np.zeros(len(part.good), dtype=bool))
                yield pa.RecordBatch.from_arrays([*part.columns, *origin, refused], names=names)
            if part.bad:
                origin = _origin(part.rows.take(pa.array([row for row, _ in part.bad], pa.int64())))
                nothing = [pa.nulls(len(part.bad), arrow_type(column.type)) for column in decisions.columns]
                refused = pa.array(np.ones(len(part.bad), dtype=bool))
                yield pa.RecordBatch.from_arrays([*nothing, *origin, refused], names=names)

    return convert


def to_examined(decisions: Decisions, which: Rows) -> Callable[[Batches], Batches]:
    """Return a function that gives rows as they came, with cause and sentence where they do not decode."""
    names = [column.name for column in EXAMINED]

    def convert(batches: Batches) -> Batches:
        for part in _parts(batches, decisions):
            sentences: list[str | None] = [None] * len(part.rows)
            for row, sentence in part.bad:
                sentences[row] = sentence
            causes = [None if sentence is None else part.cause for sentence in sentences]
            examined = pa.RecordBatch.from_arrays(
                [*part.rows.columns, pa.array(causes, pa.string()), pa.array(sentences, pa.string())], names=names
            )
            yield examined.filter(examined.column("cause").is_valid()) if which is Rows.REFUSED else examined

    return convert


def _parts(batches: Batches, decisions: Decisions) -> Iterator[_Part]:
    for batch in batches:
        ids = batch.column("schema_id")
        for schema_id in pc.unique(ids).to_pylist():
            of_id = ids.is_null() if schema_id is None else pc.equal(ids, schema_id)
            rows = batch.filter(of_id).select([column.name for column in INPUT])
            yield _part(rows, decisions.by_schema_id[schema_id], decisions.columns)


def _part(rows: pa.RecordBatch, decision: Writer | Refusal, table: Struct) -> _Part:
    match decision:
        case Refusal(cause, sentence):
            return _Part(rows, (), [], tuple((row, sentence) for row in range(len(rows))), cause.value)
        case Writer(descriptor_set, message):
            decoder = decoder_of(descriptor_set, message, SILVER_RESERVED)
            # a wrapper without payload holds a message whose fields are all unset
            payloads = [payload or b"" for payload in rows.column("payload").to_pylist()]
            decoded = decoder.decode(payloads)
            columns = project(decoded.columns, decoder.columns, table, len(decoded.good))
            return _Part(rows, decoded.good, columns, decoded.bad, Cause.MALFORMED_PAYLOAD.value)


def _origin(rows: pa.RecordBatch) -> list[pa.Array]:
    return [rows.column("schema_id"), *(rows.column(column.name) for column in POSITION)]
