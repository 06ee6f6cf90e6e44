"""One payload to one row by `google.protobuf`: the reference that every faster decoder must equal.

It decides what is malformed, and its sentence is the one that quarantine shows; the cause is added in
`deserializer/decoders/arrow.py`. A rule about values is also in `arrow_columns.py` beside this file, for whole columns,
and in `deserializer/decoders/from_protobuf_checks.py`, in SQL; `test_decoders_agree.py` compares them.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any as Anything

from google.protobuf import json_format
from google.protobuf.any_pb2 import Any
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from demux.core.protobuf.schema.column_mapping import (
    Cardinality,
    Enumeration,
    FieldMapping,
    FieldPresence,
    JsonText,
    NullableScalar,
    Scalar,
    TimestampValue,
    Value,
    is_map,
)
from demux.core.protobuf.schema.column_mapping import Message as MessageShape
from demux.core.protobuf.schema.descriptor_pool import is_repeated, is_required, listed, message_class

# https://protobuf.dev/reference/protobuf/google.protobuf/#timestamp: 0001-01-01 to 9999-12-31
MIN_SECONDS, MAX_SECONDS = -62_135_596_800, 253_402_300_799
MAX_NANOS = 999_999_999

# missing fields that a sentence names
_MAX_NAMED = 5
_VARINT = 0
_WIRE_TYPES = {_VARINT: "varint", 1: "64-bit", 2: "length-delimited", 3: "start group", 4: "end group", 5: "32-bit"}
_ZERO: dict[int, Anything] = {
    FieldDescriptor.TYPE_STRING: "",
    FieldDescriptor.TYPE_BYTES: b"",
    FieldDescriptor.TYPE_BOOL: False,
    FieldDescriptor.TYPE_DOUBLE: 0.0,
    FieldDescriptor.TYPE_FLOAT: 0.0,
}
Row = dict[str, Anything]


# their strings are proto3's, which are checked when they are parsed
_ALWAYS_TEXT = frozenset({"google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"})


class MalformedRow(Exception):
    """The payload is not a valid message of its schema; the text says why."""


@dataclass(frozen=True, slots=True)
class ReferenceParser:
    """Reads payloads of one message, one by one."""

    message: type[Message]
    shape: MessageShape
    pool: DescriptorPool

    def row(self, payload: bytes) -> Row:
        """Return the row by column name; timestamps in microseconds since 1970, every column present.

        Raises:
            MalformedRow: the bytes do not parse, a required field is missing, a declared field came with a wire type
                that is not its own (a parser would drop its value silently), or a value has no place in its column.
        """
        try:
            parsed = parse(self.message, payload)
            return row_of(parsed, self.shape, self.pool) if self.shape.fields else {}
        except UnicodeDecodeError as error:
            raise MalformedRow(f"String field had bad UTF-8: {error}") from error


def parse(message: type[Message], payload: bytes) -> Message:
    """Return the parsed message.

    Raises:
        MalformedRow: as for `ReferenceParser.row`.
    """
    parsed = message()
    try:
        parsed.ParseFromString(payload)
    except DecodeError as error:
        raise MalformedRow(str(error)) from error
    if not parsed.IsInitialized():
        missing = ", ".join(islice(_missing(parsed, ""), _MAX_NAMED))
        raise MalformedRow(f"Message {parsed.DESCRIPTOR.full_name!r} is missing required fields: {missing}")
    descriptor: Anything = message.DESCRIPTOR
    plain = listed(descriptor.file.pool, descriptor.full_name)()
    plain.ParseFromString(payload)
    _refuse_wrong_wire_types(plain)
    return parsed


def row_of(parsed: Message, shape: MessageShape, pool: DescriptorPool) -> Row:
    """Return the row of a message, and of each message inside it, by column name.

    Raises:
        MalformedRow: a value has no place in its column (time out of range, no JSON form).
    """
    if not shape.fields:
        return {"_empty": True}
    present = {field.number: value for field, value in parsed.ListFields()}
    return {field.name: column_value(field, present, pool) for field in shape.fields}


def json_text(pool: DescriptorPool, full_name: str, data: bytes) -> str:
    """Return canonical Protobuf JSON on one line, keys sorted; an Any of an unknown type keeps its bytes in base64.

    Raises:
        MalformedRow: the message has no JSON form (a NaN in a Value, say).
    """
    message = message_class(pool, full_name)()
    try:
        message.ParseFromString(data)
        if full_name not in _ALWAYS_TEXT:
            _refuse_bad_text(message, pool)
        return _as_json(pool, message)
    except (DecodeError, json_format.Error, AttributeError, TypeError, ValueError, RecursionError) as error:
        if full_name != Any.DESCRIPTOR.full_name or not isinstance(error, TypeError):
            raise MalformedRow(f"{full_name} has no JSON form: {error}") from error
        # an Any whose type is not in the pool: the same members as the wire has, nothing lost
        unresolved = Any.FromString(data)
        value = base64.b64encode(unresolved.value).decode("ascii")
        return json.dumps({"@type": unresolved.type_url, "value": value}, ensure_ascii=False)


def _as_json(pool: DescriptorPool, message: Message) -> str:
    return json_format.MessageToJson(message, indent=None, sort_keys=True, ensure_ascii=False, descriptor_pool=pool)


def _refuse_bad_text(message: Message, pool: DescriptorPool) -> None:
    """Raise ValueError where a proto2 string is no text: json_format would write its Python repr."""
    for field, value in message.ListFields():
        if is_map(field):
            items = list(value.values())
            entry: Anything = field.message_type
            field = entry.fields_by_number[2]
        else:
            items = list(value) if is_repeated(field) else [value]
        if field.type == FieldDescriptor.TYPE_STRING and any(isinstance(item, bytes) for item in items):
            raise ValueError(f"string field {field.name} had bad UTF-8")
        if field.message_type is not None:
            for item in items:
                _refuse_bad_text(item, pool)
    if message.DESCRIPTOR.full_name == Any.DESCRIPTOR.full_name:
        inside = Any.FromString(message.SerializeToString())
        with contextlib.suppress(KeyError):
            packed = message_class(pool, inside.type_url.rpartition("/")[2])()
            packed.ParseFromString(inside.value)
            _refuse_bad_text(packed, pool)


def column_value(field: FieldMapping, present: dict[int, Anything], pool: DescriptorPool) -> Anything:
    """Return the value of a field's column in a row.

    Args:
        present: the values of the message's fields that are on the wire, by number.

    Raises:
        MalformedRow: as for `row_of`.
    """
    value = present.get(field.number)
    match field.cardinality:
        case Cardinality.REPEATED:
            return [_single(item, field.value, pool) for item in value or ()]
        case Cardinality.MAP:
            assert field.key is not None
            pairs = (value or {}).items()
            return [(_single(key, field.key, pool), _single(item, field.value, pool)) for key, item in pairs]
        case Cardinality.SINGULAR if value is not None:
            return _single(value, field.value, pool)
        case Cardinality.SINGULAR:
            return _default(field.value) if field.presence is FieldPresence.IMPLICIT else None


def _default(value: Value) -> Anything:
    match value:
        case Scalar(proto_type):
            return _ZERO.get(proto_type, 0)
        case Enumeration():
            return enum_text(0, value)
        case _:
            return None


def _single(item: Anything, value: Value, pool: DescriptorPool) -> Anything:
    match value:
        case Scalar(FieldDescriptor.TYPE_STRING) if isinstance(item, bytes):
            # a proto2 string is not checked when it is parsed: read, it comes as bytes, or a map key as an error
            raise MalformedRow(f"String field had bad UTF-8: {item[:60]!r}")
        case Scalar():
            return item
        case Enumeration():
            return enum_text(item, value)
        case NullableScalar():
            return item.value
        case TimestampValue():
            return microseconds(item.seconds, item.nanos)
        case JsonText(full_name):
            return json_text(pool, full_name, item.SerializeToString())
        case MessageShape():
            return row_of(item, value, pool)


def enum_text(number: int, value: Enumeration) -> str:
    """Return the enum value's name, or its digits when the schema has no name for it."""
    return next((name for known, name in value.names if known == number), str(number))


def microseconds(seconds: int, nanos: int) -> int:
    """Return a Timestamp as microseconds since 1970.

    Raises:
        MalformedRow: outside years 1 to 9999, or nanos outside 0 to 999,999,999.
    """
    if not MIN_SECONDS <= seconds <= MAX_SECONDS or not 0 <= nanos <= MAX_NANOS:
        raise MalformedRow(f"Timestamp is out of range: {seconds} seconds, {nanos} nanos")
    return seconds * 1_000_000 + nanos // 1_000


def _missing(parsed: Message, path: str) -> Iterator[str]:
    # FindInitializationErrors says the same, but reads memory that is not its own when there is a map of scalars
    present = {field.number: (field, value) for field, value in parsed.ListFields()}
    for field in _declared(parsed.DESCRIPTOR).values():
        if is_required(field) and field.number not in present:
            yield f"{path}{field.name}"
    for field, value in present.values():
        if field.message_type is None:
            continue
        if is_map(field):
            if field.message_type.fields_by_number[2].message_type is not None:
                for key, item in value.items():
                    yield from _missing(item, f"{path}{field.name}[{key!r}].")
        elif is_repeated(field):
            for position, item in enumerate(value):
                yield from _missing(item, f"{path}{field.name}[{position}].")
        else:
            yield from _missing(value, f"{path}{field.name}.")


def _refuse_wrong_wire_types(parsed: Message) -> None:
    unknown: Anything = UnknownFieldSet(parsed)
    if len(unknown):
        declared = _declared(parsed.DESCRIPTOR)
        for stray in unknown:
            field = declared.get(stray.field_number)
            if field is not None and not _is_unknown_number(field, stray.wire_type):
                wire_type = _WIRE_TYPES.get(stray.wire_type, str(stray.wire_type))
                raise MalformedRow(
                    f"Field {field.number} ({field.name}) of {parsed.DESCRIPTOR.full_name!r} has the wrong wire type: "
                    f"{wire_type}"
                )
    for field, value in parsed.ListFields():
        if field.message_type is not None:
            for item in value if is_repeated(field) else (value,):
                _refuse_wrong_wire_types(item)


def _is_unknown_number(field: FieldDescriptor, wire_type: int) -> bool:
    # a closed enum's number without a name is an unknown field of the enum's own wire type, in a packed list too
    return field.enum_type is not None and field.enum_type.is_closed and wire_type == _VARINT


def _declared(descriptor: Anything) -> dict[int, FieldDescriptor]:
    extensions = descriptor.file.pool.FindAllExtensions(descriptor) if descriptor.is_extendable else ()
    return {field.number: field for field in (*descriptor.fields, *extensions)}
