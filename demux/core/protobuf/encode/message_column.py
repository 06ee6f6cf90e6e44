"""Encodes messages in columns of any frame; runs in Spark's workers. A row that cannot be encoded has a reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark

from demux.core.columns.arrow import arrow_type, as_type, spread
from demux.core.columns.spark import NUMBER
from demux.core.columns.types import EMPTY_STRUCT, Column, Primitive, Struct, sql_name
from demux.core.protobuf.encode.encoder import EncodedBatch, encoder_of
from demux.core.protobuf.schema.column_mapping import (
    Cardinality,
    FieldMapping,
    FieldPresence,
    Message,
    Value,
    column_of,
    column_type,
)
from demux.core.spark.map_in_arrow import ArrowFunction, Batches, merge_small_batches

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
        for batch in merge_small_batches(batches):
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


_INTEGERS = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)
# every integer goes into every integer field: each value is looked at
_TAKES: dict[Primitive, tuple[type[spark.DataType], ...]] = {
    Primitive.BOOLEAN: (spark.BooleanType,),
    Primitive.INT: _INTEGERS,
    Primitive.BIGINT: _INTEGERS,
    Primitive.DECIMAL_20_0: _INTEGERS,
    Primitive.FLOAT: (spark.FloatType,),
    Primitive.DOUBLE: (spark.FloatType, spark.DoubleType),
    Primitive.STRING: (spark.StringType,),
    Primitive.BINARY: (spark.BinaryType,),
    Primitive.TIMESTAMP: (spark.TimestampType,),
}
_WHOLE = {Primitive.INT, Primitive.BIGINT, Primitive.DECIMAL_20_0}


def column_mistakes(shape: Message, columns: spark.StructType, path: str = "") -> Iterator[str]:
    """Yield a sentence for each column that is no field of the message, or of a type that does not fit.

    A column is the field that the column rules give its name to (docs/columns.md), whatever the case.
    """
    fields = {field.name.lower(): field for field in shape.fields}
    given: set[str] = set()
    for column in columns.fields:
        name = column.name.lower()
        field = fields.get(name)
        if name in given:
            yield f"There are two columns {path}{column.name}."
        elif field is not None:
            yield from _field_mistakes(field, column.dataType, path + column.name)
        elif column.name != EMPTY_STRUCT.columns[0].name:
            yield f"{shape.full_name} has no field for the column {path}{column.name}.{_hint(shape, column)}"
        given.add(name)
    for name, field in fields.items():
        if field.presence is FieldPresence.REQUIRED and name not in given:
            yield f"The field {path}{field.name} is required, and has no column."


def _hint(shape: Message, column: spark.StructField) -> str:
    """Return which field may be meant: the one that the column was decoded from, else the nearest name."""
    number = column.metadata.get(NUMBER)
    renamed = [field.name for field in shape.fields if field.number == number]
    if renamed:
        return f" Field {number} is called {renamed[0]}."
    near = get_close_matches(column.name.lower(), {field.name.lower(): field for field in shape.fields}, n=1)
    return next((f" The nearest is {field.name}." for field in shape.fields if field.name.lower() in near), "")


def _field_mistakes(field: FieldMapping, kind: spark.DataType, path: str) -> Iterator[str]:
    match field.cardinality, kind:
        case _, spark.NullType():
            pass
        case Cardinality.SINGULAR, _:
            yield from _value_mistakes(field.value, kind, path)
        case Cardinality.REPEATED, spark.ArrayType():
            yield from _value_mistakes(field.value, kind.elementType, f"{path}.element")
        case Cardinality.MAP, spark.MapType():
            assert field.key is not None
            yield from _value_mistakes(field.key, kind.keyType, f"{path}.key")
            yield from _value_mistakes(field.value, kind.valueType, f"{path}.value")
        case _:
            yield _misfit(path, kind, sql_name(column_of(field).type))


def _value_mistakes(value: Value, kind: spark.DataType, path: str) -> Iterator[str]:
    wanted = column_type(value)
    match value, kind:
        case _, spark.NullType():
            pass
        case Message(), spark.StructType():
            yield from column_mistakes(value, kind, f"{path}.")
        case _, spark.DecimalType() if wanted in _WHOLE and kind.scale == 0 and kind.precision <= 20:
            pass
        case _ if isinstance(wanted, Primitive) and isinstance(kind, _TAKES[wanted]):
            pass
        case _:
            yield _misfit(path, kind, sql_name(wanted))


def _misfit(path: str, kind: spark.DataType, wanted: str) -> str:
    return f"Column {path} is {kind.simpleString().upper()}, and its field takes {wanted}."
