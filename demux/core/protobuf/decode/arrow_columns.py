"""The column rules applied to whole Arrow columns that a fast parser read by the lowered descriptor.

Shapes: an array of the lowered message's field comes in, an array of the column's type of the same length goes out.
A row that holds a value without a place in its column, or one that only the reference places (a map key that comes
twice, a number of a closed enum without a name), is named in `bad`, and the value of its row is not to be used.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor_pool import DescriptorPool

from demux.core.columns.arrow import arrow_fields, arrow_type, as_type
from demux.core.columns.types import EMPTY_STRUCT
from demux.core.protobuf.decode.reference_parser import MAX_NANOS, MAX_SECONDS, MIN_SECONDS, MalformedRow, json_text
from demux.core.protobuf.schema.column_mapping import (
    Cardinality,
    Enumeration,
    FieldMapping,
    JsonText,
    Message,
    NullableScalar,
    Scalar,
    TimestampValue,
    Value,
    column_type,
    columns_of,
)

Rows = npt.NDArray[np.int64]


class ArrowRules:
    """Applies the rules to one batch and remembers the rows that break them."""

    def __init__(self, pool: DescriptorPool) -> None:
        self._pool = pool

    def columns(self, parsed: pa.RecordBatch, shape: Message) -> tuple[list[pa.Array], Rows]:
        """Return the table's columns in order of the shape's fields, and the rows that must not be used, ascending.

        Args:
            parsed: one column `f<number>` for each field of the shape.
        """
        bad: list[Rows] = []
        columns = [self._field(parsed.column(f"f{field.number}"), field, bad) for field in shape.fields]
        return columns, _distinct(bad)

    def _field(self, array: pa.Array, field: FieldMapping, bad: list[Rows]) -> pa.Array:
        match field.cardinality:
            case Cardinality.SINGULAR:
                return self._value(array, field.value, bad)
            case Cardinality.REPEATED:
                inside: list[Rows] = []
                values = self._value(array.values, field.value, inside)
                bad.extend(_owners(array.offsets, inside))
                return pa.ListArray.from_arrays(array.offsets, values, pa.list_(pa.field("element", values.type)))
            case Cardinality.MAP:
                assert field.key is not None
                inside = [*_doubled(array), *_without_value(array)]
                keys = self._value(array.keys, field.key, inside)
                items = self._value(array.items, field.value, inside)
                bad.extend(_owners(array.offsets, inside))
                return pa.MapArray.from_arrays(array.offsets, keys, items)

    def _value(self, array: pa.Array, value: Value, bad: list[Rows]) -> pa.Array:
        match value:
            case Scalar():
                return as_type(array, arrow_type(column_type(value)))
            case Enumeration():
                return _enum_names(array, value, bad)
            case NullableScalar(scalar):
                return self._value(array.flatten()[0], scalar, bad)
            case TimestampValue():
                return _timestamps(array, bad)
            case JsonText(full_name):
                return self._json(array, full_name, bad)
            case Message(fields=()):
                present = pa.array(np.ones(len(array), dtype=bool))
                return pa.StructArray.from_arrays([present], fields=arrow_fields(EMPTY_STRUCT), mask=array.is_null())
            case Message(_, fields):
                columns = [self._field(array.field(f"f{field.number}"), field, bad) for field in fields]
                types = arrow_fields(columns_of(value))
                return pa.StructArray.from_arrays(columns, fields=types, mask=array.is_null())

    def _json(self, array: pa.Array, full_name: str, bad: list[Rows]) -> pa.Array:
        texts: list[str | None] = []
        for row, data in enumerate(array.to_pylist()):
            try:
                texts.append(None if data is None else json_text(self._pool, full_name, data))
            except MalformedRow:
                texts.append(None)
                bad.append(np.array([row], dtype=np.int64))
        return pa.array(texts, pa.string())


def _enum_names(array: pa.Array, enum: Enumeration, bad: list[Rows]) -> pa.Array:
    numbers, texts = _as_arrays(enum.names)
    known = texts.take(pc.index_in(array, value_set=numbers))
    if known.null_count == array.null_count:
        return known
    if enum.is_closed:
        nameless = pc.and_(known.is_null(), array.is_valid())
        bad.append(np.flatnonzero(nameless.to_numpy(zero_copy_only=False)).astype(np.int64))
        return known
    # digits only where the schema has no name: NULL stays NULL
    return pc.coalesce(known, array.cast(pa.string()))


@lru_cache(maxsize=4096)
def _as_arrays(names: tuple[tuple[int, str], ...]) -> tuple[pa.Array, pa.Array]:
    return pa.array([number for number, _ in names], pa.int32()), pa.array([name for _, name in names], pa.string())


def _timestamps(array: pa.Array, bad: list[Rows]) -> pa.Array:
    seconds, nanos = (part.fill_null(0).to_numpy() for part in array.flatten())
    wrong = (seconds < MIN_SECONDS) | (seconds > MAX_SECONDS) | (nanos < 0) | (nanos > MAX_NANOS)
    if wrong.any():
        bad.append(np.flatnonzero(wrong).astype(np.int64))
        seconds, nanos = np.where(wrong, 0, seconds), np.where(wrong, 0, nanos)
    absent = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    micros = pa.array(seconds * 1_000_000 + nanos // 1_000, pa.int64(), mask=absent)
    return micros.view(pa.timestamp("us", tz="UTC"))


def _doubled(array: pa.MapArray) -> list[Rows]:
    """Return the entries whose key is in their map more than once: the reference decides which value counts."""
    counts = np.diff(array.offsets.to_numpy())
    if counts.max(initial=0) < 2:
        return []
    keys = array.keys.dictionary_encode()
    maps = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    pairs = maps * len(keys.dictionary) + keys.indices.to_numpy()
    # nearly sorted already: rows ascend, and keys often come in the same order
    ordered = np.sort(pairs, kind="stable")
    if not (ordered[1:] == ordered[:-1]).any():
        return []
    _, first = np.unique(pairs, return_index=True)
    return [np.setdiff1d(np.arange(len(pairs), dtype=np.int64), first)]


def _without_value(array: pa.MapArray) -> list[Rows]:
    if not array.items.null_count:
        return []
    return [np.flatnonzero(array.items.is_null().to_numpy(zero_copy_only=False)).astype(np.int64)]


def _owners(offsets: pa.Array, inside: list[Rows]) -> list[Rows]:
    if not inside:
        return []
    starts = offsets.to_numpy()
    return [np.searchsorted(starts, rows, side="right").astype(np.int64) - 1 for rows in inside]


def _distinct(bad: list[Rows]) -> Rows:
    return np.unique(np.concatenate(bad)) if bad else np.empty(0, dtype=np.int64)
