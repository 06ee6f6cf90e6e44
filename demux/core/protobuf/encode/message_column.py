"""Messages in columns of any frame to payloads; runs in Spark's workers. A row that cannot be written says why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from demux.core.columns.arrow import arrow_type, as_type, spread
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.protobuf.encode.encoder import EncodedBatch, encoder_of
from demux.core.spark.map_in_arrow import ArrowFunction, Batches, gathered

UNFIT_VALUE = "UNFIT_VALUE"
# why a row has no payload
UNWRITTEN_ROW = Struct((Column("cause", Primitive.STRING), Column("sentence", Primitive.STRING)))


@dataclass(frozen=True, slots=True)
class MessageColumn:
    """Where a frame has messages, and how they are written.

    Attributes:
        places: the places of the columns in the frame: of a struct with the fields, or of each field's column.
        is_struct: whether it is one struct, whose NULL is a NULL payload.
        descriptor_set: a serialized `FileDescriptorSet`, without comments.
        prefix: the frame before each payload; empty for none.
    """

    places: tuple[int, ...]
    is_struct: bool
    descriptor_set: bytes
    message: str
    prefix: bytes


def to_payloads(column: MessageColumn, into: str, quarantine: str) -> ArrowFunction:
    """Return a function that gives a frame's columns, and behind them payload (BINARY) and `UNWRITTEN_ROW`."""

    def convert(batches: Batches) -> Batches:
        for batch in gathered(batches):
            encoded = _encoded(batch, column)
            arrays = [*batch.columns, _framed(encoded.payloads, column.prefix), _unwritten(encoded, len(batch))]
            yield pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, into, quarantine])

    return convert


def _encoded(batch: pa.RecordBatch, column: MessageColumn) -> EncodedBatch:
    encoder = encoder_of(column.descriptor_set, column.message)
    arrays = [batch.column(place) for place in column.places]
    if not column.is_struct:
        names = [batch.schema.names[place].lower() for place in column.places]
        return encoder.encode(dict(zip(names, arrays, strict=True)), len(batch))
    (struct,) = arrays
    if not struct.null_count:
        return encoder.encode(_parts(struct), len(batch))
    given = np.flatnonzero(struct.is_valid().to_numpy(zero_copy_only=False))
    encoded = encoder.encode(_parts(struct.take(pa.array(given))), len(given))
    payloads = spread(encoded.payloads, given, len(batch))
    return EncodedBatch(payloads, {int(given[row]): sentence for row, sentence in encoded.bad.items()})


def _parts(struct: pa.StructArray) -> dict[str, pa.Array]:
    names = [struct.type[at].name.lower() for at in range(struct.type.num_fields)]
    return dict(zip(names, struct.flatten(), strict=True))


def _framed(payloads: pa.Array, prefix: bytes) -> pa.Array:
    payloads = as_type(payloads, pa.binary())
    return pc.binary_join_element_wise(pa.scalar(prefix), payloads, pa.scalar(b"")) if prefix else payloads


def _unwritten(encoded: EncodedBatch, count: int) -> pa.Array:
    kind = arrow_type(UNWRITTEN_ROW)
    if not encoded.bad:
        return pa.nulls(count, kind)
    made = pa.array([{"cause": UNFIT_VALUE, "sentence": sentence} for sentence in encoded.bad.values()], kind)
    return spread(made, list(encoded.bad), count)
