"""Reads single fields of payloads that may be malformed elsewhere, with the values that a decoder gives. Pure.

Each value is read by the reference, from a payload that has nothing but its field.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from demux.core.columns.types import ColumnType
from demux.core.errors import SchemaInvalid
from demux.core.protobuf.decode.reference_parser import MalformedRow, row_of
from demux.core.protobuf.schema.column_mapping import Cardinality, FieldMapping, Message, column_of, shape_of
from demux.core.protobuf.schema.descriptor_pool import Readable, pool_of
from demux.core.protobuf.wire.wire_fields import WireType, chunks_of, wrap_field

Numbers = tuple[int, ...]


class UnreadableValue(Exception):
    """The value cannot be read from the bytes."""


class FieldProbe:
    """Reads single values of one message; costly to make, kept for the life of a process by `glimpse_of`."""

    def __init__(self, descriptor_set: bytes, message: str, reserved: frozenset[str]) -> None:
        """Prepare for a message of a descriptor set; `reserved` as for `shape_of`.

        Raises:
            SchemaInvalid, KeyError: the set cannot be used, or has no such message.
        """
        files = FileDescriptorSet.FromString(descriptor_set)
        self._pool = pool_of(files)
        self._shape = shape_of(self._pool.FindMessageTypeByName(message), reserved)
        self._message = Readable(files, self._pool, message).message
        self._fields: dict[Numbers, tuple[FieldMapping, ...] | None] = {}

    def type_of(self, numbers: Numbers) -> ColumnType | None:
        """Return the type of the column that the field fills; None where this schema has no such field."""
        fields = self._way(numbers)
        return None if fields is None else column_of(fields[-1]).type

    def value(self, payload: bytes, numbers: Numbers) -> Any:
        """Return the value that the field's column would have, as `reference_parser` has values.

        Of a field that comes twice, one time behind the place where the payload is broken, the one before counts.

        Args:
            numbers: of the fields from the payload inwards, all but the last one messages.

        Raises:
            Unreadable: the value is broken, or may be behind the place where the payload is broken.
        """
        fields = self._way(numbers)
        if fields is None:
            return None
        if self._has_message_set(fields):
            raise UnreadableValue
        only, is_seen, is_whole = _only(payload, fields)
        if not is_seen and not is_whole:
            raise UnreadableValue
        try:
            parsed = self._message()
            parsed.ParseFromString(only)
            _require_known(parsed, fields)
            found: Any = row_of(parsed, _pruned(self._shape, fields), self._pool)
        except (DecodeError, MalformedRow, UnicodeDecodeError) as error:
            raise UnreadableValue from error
        for field in fields:
            found = None if found is None else found[field.name]
        return found

    def _has_message_set(self, fields: tuple[FieldMapping, ...]) -> bool:
        """Return whether a message on the way has its fields in the form of a message set, which only parsers read."""
        messages = (self._shape, *(field.value for field in fields[:-1] if isinstance(field.value, Message)))
        found = (self._pool.FindMessageTypeByName(message.full_name) for message in messages)
        return any(one.GetOptions().message_set_wire_format for one in found)

    def _way(self, numbers: Numbers) -> tuple[FieldMapping, ...] | None:
        if numbers not in self._fields:
            self._fields[numbers] = _fields(self._shape, numbers)
        return self._fields[numbers]


@lru_cache(maxsize=256)
def glimpse_of(descriptor_set: bytes, message: str, reserved: frozenset[str]) -> FieldProbe | None:
    """Return the process's one glimpse of this message; None where the schema cannot be used."""
    try:
        return FieldProbe(descriptor_set, message, reserved)
    except (SchemaInvalid, KeyError):
        return None


def _fields(shape: Message, numbers: Numbers) -> tuple[FieldMapping, ...] | None:
    """Return the fields on the way; None where the schema has not all of them, or one in between is no message."""
    found: list[FieldMapping] = []
    inside: Message | None = shape
    for number in numbers:
        field = None if inside is None else next((one for one in inside.fields if one.number == number), None)
        if field is None:
            return None
        found.append(field)
        is_message = field.cardinality is Cardinality.SINGULAR and isinstance(field.value, Message)
        inside = field.value if is_message and isinstance(field.value, Message) else None
    return tuple(found)


def _only(content: bytes, fields: tuple[FieldMapping, ...]) -> tuple[bytes, bool, bool]:
    """Return a message with nothing but the last field, whether that was there, and whether nothing was broken."""
    field, *inner = fields
    chunks, is_whole = chunks_of(content)
    mine = [chunk for chunk in chunks if chunk.number == field.number]
    if not inner:
        # one that is cut off has no value
        there = [chunk.raw for chunk in mine if chunk.is_whole]
        return b"".join(there), bool(there), is_whole
    if not mine:
        return b"", False, is_whole
    wire = WireType.GROUP if field.delimited else WireType.LENGTH
    # the same message twice is one message, whose fields follow each other
    body, is_seen, inner_whole = _only(b"".join(chunk.body for chunk in mine if chunk.wire is wire), tuple(inner))
    right = all(chunk.wire is wire for chunk in mine)
    return wrap_field(field.number, wire, body), is_seen, is_whole and inner_whole and right


def _require_known(parsed: Any, fields: tuple[FieldMapping, ...]) -> None:
    """Check that what is there was read: a field in another wire type is unknown to the parser.

    Raises:
        Unreadable: it was not.
    """
    for field in fields:
        if len(UnknownFieldSet(parsed)):
            raise UnreadableValue
        present = {one.number: value for one, value in parsed.ListFields()}
        if field is fields[-1] or field.number not in present:
            return
        parsed = present[field.number]


def _pruned(shape: Message, fields: tuple[FieldMapping, ...]) -> Message:
    """Return the shape of a message that has only these fields, one inside the other."""
    field, *inner = fields
    if inner and isinstance(field.value, Message):
        field = replace(field, value=_pruned(field.value, tuple(inner)))
    return Message(shape.full_name, (field,))
