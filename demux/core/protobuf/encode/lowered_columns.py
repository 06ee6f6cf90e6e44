"""The inverse of the column rules: columns of a table to those of the lowered message, a batch at a time.

The lowered message (`demux.core.protobuf.decode.lowered_descriptor`) is equal to the real one on the wire. Shapes: an
array of the column's type comes in, an array of the writer's type of the same length goes out. The value of a row with
a fault is not to be used. A column that the frame lacks is unset in every row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from demux.core.protobuf.decode.reference_parser import MAX_SECONDS, MIN_SECONDS
from demux.core.protobuf.encode.reference_writer import JsonReader, UnfitJson
from demux.core.protobuf.encode.row_faults import RowFaults, Rows, places_of
from demux.core.protobuf.schema.column_mapping import (
    Cardinality,
    FieldMapping,
    FieldPresence,
    JsonText,
    Message,
    NullableScalar,
    Scalar,
    TimestampValue,
    Value,
)
from demux.core.protobuf.schema.descriptor_pool import fields_of

_INT32, _UINT32 = (-(2**31), 2**31 - 1), (0, 2**32 - 1)
_INT64, _UINT64 = (-(2**63), 2**63 - 1), (0, 2**64 - 1)
_LIMITS = {pa.int32(): _INT32, pa.uint32(): _UINT32, pa.int64(): _INT64, pa.uint64(): _UINT64}
_MICROS = 1_000_000


@dataclass(frozen=True, slots=True)
class LoweredColumns:
    """Lowers the columns of one message; `json` reads the texts of fields without a fixed shape."""

    descriptor: Descriptor
    shape: Message
    json: JsonReader

    def lower(
        self, columns: Mapping[str, pa.Array], schema: pa.Schema, count: int, faults: RowFaults
    ) -> list[pa.Array]:
        """Return one array for each column of the writer's schema.

        Args:
            schema: the writer's, a column `f<number>` for each field.
        """
        present = pa.array(np.ones(count, dtype=bool))
        place = _Place("", faults, self.json)
        return _message(self.descriptor, self.shape, columns, pa.struct(list(schema)), present, place)


@dataclass(frozen=True, slots=True)
class _Place:
    """The path of a column, and the faults of its values at this level of nesting."""

    path: str
    faults: RowFaults
    json: JsonReader

    def inside(self, name: str) -> _Place:
        """Return the place of a column of a struct, which has as many values."""
        return _Place(f"{self.path}.{name}" if self.path else name, self.faults, self.json)

    def refuse(self, rows: Iterable[int] | Rows, what: str) -> None:
        """Remember that the column's values in these rows are so."""
        self.faults.refuse(rows, lambda _: f"Column {self.path} {what}.")


def _message(
    descriptor: Descriptor,
    shape: Message,
    columns: Mapping[str, pa.Array],
    target: pa.StructType,
    present: pa.Array,
    place: _Place,
) -> list[pa.Array]:
    declared: dict[int, FieldDescriptor] = {field.number: field for field in fields_of(descriptor)}
    by_number = {field.number: field for field in shape.fields}
    given = {number: columns.get(field.name.lower()) for number, field in by_number.items()}
    for oneof in descriptor.oneofs:
        _require_one([given[field.number] for field in oneof.fields], place.inside(oneof.name))
    lowered = []
    for part in target:
        field = by_number[int(part.name[1:])]
        array = given[field.number]
        if array is None or array.type == pa.null():
            lowered.append(_unset(part, len(present)))
            continue
        own = place.inside(field.name)
        if field.presence is FieldPresence.REQUIRED:
            own.refuse(places_of(pc.and_(array.is_null(), present)), "is NULL, and the field is required")
        lowered.append(_field(declared[field.number], field, array, part.type, own))
    return lowered


def _require_one(members: list[pa.Array | None], oneof: _Place) -> None:
    given = [member.is_valid().to_numpy(zero_copy_only=False) for member in members if member is not None]
    if len(given) > 1:
        several = np.flatnonzero(np.sum(given, axis=0) > 1)
        oneof.faults.refuse(several, lambda _: f"More than one column of the oneof {oneof.path} is set.")


def _unset(part: pa.Field, count: int) -> pa.Array:
    return pa.nulls(count, part.type) if part.nullable else _filled(pa.nulls(count, part.type))


def _field(
    declared: FieldDescriptor,
    field: FieldMapping,
    array: pa.Array,
    target: pa.DataType,
    place: _Place,
) -> pa.Array:
    match field.cardinality:
        case Cardinality.SINGULAR:
            made = _value(declared, field.value, array, target, place)
            return _implicit(made, place) if field.presence is FieldPresence.IMPLICIT else made
        case Cardinality.REPEATED:
            offsets, (values,) = _flat(array)
            element = _Place(f"{place.path}.element", RowFaults(), place.json)
            element.refuse(places_of(values.is_null()), "is NULL")
            made = _value(declared, field.value, values, target.value_type, element)
            place.faults.adopt(element.faults, offsets)
            return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), _filled(made), target)
        case Cardinality.MAP:
            return _map(declared, field, array, target, place)


def _map(
    declared: FieldDescriptor,
    field: FieldMapping,
    array: pa.Array,
    target: pa.ListType,
    place: _Place,
) -> pa.Array:
    assert field.key is not None
    assert declared.message_type is not None
    offsets, (keys, items) = _flat(array)
    entries = _Place(place.path, RowFaults(), place.json)
    entries.inside("value").refuse(places_of(items.is_null()), "is NULL")
    entry, parts = declared.message_type.fields_by_number, target.value_type
    made = [
        _value(entry[1], field.key, keys, parts[0].type, entries.inside("key")),
        _value(entry[2], field.value, items, parts[1].type, entries.inside("value")),
    ]
    place.faults.adopt(entries.faults, offsets)
    pairs = pa.StructArray.from_arrays(made, fields=list(parts))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pairs, target)


def _flat(array: pa.ListArray | pa.MapArray) -> tuple[Rows, list[pa.Array]]:
    """Return where each list begins and the last one ends, and what is in them; a NULL list is empty."""
    if array.null_count:
        # behind a NULL there may be values, which this leaves out
        array = array.take(pa.array(np.arange(len(array))))
    bounds = array.offsets.to_numpy().astype(np.int64)
    first, last = (int(bounds[0]), int(bounds[-1])) if len(bounds) else (0, 0)
    inside = [array.keys, array.items] if isinstance(array, pa.MapArray) else [array.values]
    return bounds - first, [values.slice(first, last - first) for values in inside]


def _value(
    declared: FieldDescriptor,
    value: Value,
    array: pa.Array,
    target: pa.DataType,
    place: _Place,
) -> pa.Array:
    if array.type == pa.null():
        return pa.nulls(len(array), target)
    match value:
        case Scalar():
            return _scalar(array, target, place)
        case NullableScalar():
            inside = _implicit(_scalar(array, target[0].type, place), place)
            return pa.StructArray.from_arrays([inside], fields=list(target), mask=array.is_null())
        case TimestampValue():
            return _timestamp(array, target, place)
        case JsonText(full_name):
            return _json(array, full_name, place)
        case Message(fields=()):
            return pc.if_else(array.is_valid(), pa.scalar(b""), pa.scalar(None, pa.binary()))
        case Message():
            assert declared.message_type is not None
            columns = dict(zip(_names(array.type), array.flatten(), strict=True))
            made = _message(declared.message_type, value, columns, target, array.is_valid(), place)
            return pa.StructArray.from_arrays(made, fields=list(target), mask=array.is_null())
        case _:
            assert declared.enum_type is not None
            return _enum_numbers(array, declared.enum_type, place)


def _names(struct: pa.StructType) -> list[str]:
    return [struct[at].name.lower() for at in range(struct.num_fields)]


def _implicit(array: pa.Array, place: _Place) -> pa.Array:
    """Return the array of a field that is not written where it is zero: NULL is zero, and -0.0 is not."""
    if pa.types.is_floating(array.type):
        values = array.fill_null(0.0).to_numpy()
        place.faults.doubt(pa.array((values == 0) & np.signbit(values)))
    return _filled(array)


def _filled(array: pa.Array) -> pa.Array:
    """Return the array without NULLs, which are of no value."""
    if not array.null_count:
        return array
    match array.type:
        case kind if pa.types.is_list(kind):
            return pa.array([[]] * len(array), kind) if array.null_count == len(array) else array.fill_null([])
        case kind if pa.types.is_struct(kind):
            parts = [_filled(part) if not kind[at].nullable else part for at, part in enumerate(array.flatten())]
            return pa.StructArray.from_arrays(parts, fields=list(kind))
        case kind if pa.types.is_string(kind):
            return array.fill_null("")
        case kind if pa.types.is_binary(kind):
            return array.fill_null(b"")
        case kind if pa.types.is_boolean(kind):
            return array.fill_null(False)
        case kind:
            return array.fill_null(pa.scalar(0, kind))


def _scalar(array: pa.Array, target: pa.DataType, place: _Place) -> pa.Array:
    if target == pa.string():
        _refuse_bad_text(array, place)
    if array.type == target:
        return array
    if target in _LIMITS:
        return _integer(array, target, place)
    return array.cast(target)


def _integer(array: pa.Array, target: pa.DataType, place: _Place) -> pa.Array:
    wide = array.cast(pa.decimal128(20, 0)) if pa.types.is_decimal(array.type) else array
    least, most = _LIMITS[target]
    outside = pa.array(np.zeros(len(array), dtype=bool))
    limits = _integer_limits(wide.type)
    if limits[0] < least:
        outside = pc.or_(outside, pc.less(wide, _scalar_of(least, wide.type)).fill_null(False))
    if limits[1] > most:
        outside = pc.or_(outside, pc.greater(wide, _scalar_of(most, wide.type)).fill_null(False))
    wrong = places_of(outside)
    place.faults.refuse(wrong, lambda row: f"Column {place.path} is {wide[row].as_py()}, outside of {target}.")
    return (pc.if_else(outside, pa.scalar(None, wide.type), wide) if len(wrong) else wide).cast(target)


def _integer_limits(kind: pa.DataType) -> tuple[int, int]:
    if pa.types.is_decimal(kind):
        return (-(10**20), 10**20)
    half = 2 ** (kind.bit_width - 1)
    return (-half, half - 1)


def _scalar_of(number: int, kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(number, pa.decimal128(20, 0)) if pa.types.is_decimal(kind) else pa.scalar(number, kind)


def _refuse_bad_text(array: pa.Array, place: _Place) -> None:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        place.refuse(_undecodable(array), "is not UTF-8")


def _undecodable(array: pa.Array) -> list[int]:
    found = []
    for row, data in enumerate(array.cast(pa.binary()).to_pylist()):
        try:
            (data or b"").decode()
        except UnicodeDecodeError:
            found.append(row)
    return found


def _timestamp(array: pa.Array, target: pa.StructType, place: _Place) -> pa.Array:
    micros = array.view(pa.int64()).fill_null(0).to_numpy()
    seconds, rest = np.divmod(micros, _MICROS)
    wrong = (seconds < MIN_SECONDS) | (seconds > MAX_SECONDS)
    place.refuse(np.flatnonzero(wrong), "is outside of the years 1 to 9999")
    parts = [pa.array(seconds, pa.int64()), pa.array((rest * 1_000).astype(np.int32), pa.int32())]
    return pa.StructArray.from_arrays(parts, fields=list(target), mask=array.is_null())


def _enum_numbers(array: pa.Array, enum: EnumDescriptor, place: _Place) -> pa.Array:
    numbers: dict[str, int] = {one.name: one.number for one in enum.values}
    encoded = array.dictionary_encode()
    found: list[int | None] = []
    for text in encoded.dictionary.to_pylist():
        digits = None if enum.is_closed else _digits(text)
        found.append(numbers.get(text, digits))
    made = pa.array(found, pa.int32()).take(encoded.indices)
    if made.null_count > array.null_count:
        unknown = places_of(pc.and_(made.is_null(), array.is_valid()))
        sentence = f"Column {place.path} is {{!r}}, no value of {enum.full_name}."
        place.faults.refuse(unknown, lambda row: sentence.format(array[row].as_py()))
    return made


def _digits(text: str) -> int | None:
    try:
        number = int(text)
    except ValueError:
        return None
    return number if str(number) == text and _INT32[0] <= number <= _INT32[1] else None


def _json(array: pa.Array, full_name: str, place: _Place) -> pa.Array:
    made: list[bytes | None] = []
    reasons: dict[int, str] = {}
    for row, text in enumerate(array.to_pylist()):
        try:
            made.append(None if text is None else place.json.payload(full_name, text))
        except UnfitJson as unfit:
            made.append(None)
            reasons[row] = str(unfit)
    place.faults.refuse(reasons, lambda row: f"Column {place.path} is no JSON of {full_name}: {reasons[row]}.")
    return pa.array(made, pa.binary())
