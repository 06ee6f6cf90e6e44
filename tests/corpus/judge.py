"""What a payload of any bytes must become, by `google.protobuf` and the words of docs/columns.md. Free of Spark.

Nothing of the product decides here. `tests.support.oracle` says what a row is; this module says whether there is one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from demux.core.protobuf.schema.descriptor_pool import is_repeated
from tests.corpus.versions import Version, class_of
from tests.support.data.messages import FIRST_SECOND, LAST_SECOND
from tests.support.oracle import Row, fields_of, oracle_row

_VARINT = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a payload must become.

    Attributes:
        row: its row; None where the record is bad.
        why: why it is bad.
        left_over: whether it has fields, or numbers of closed enums, that the schema does not know.
    """

    row: Row | None
    why: str = ""
    left_over: bool = False


class Bad(Exception):
    """Why a payload is bad."""


class Judge:
    """Judges payloads of one version of a message type."""

    def __init__(self, version: Version, reserved: Iterable[str] = ()) -> None:
        self._type: Any = version.type
        # a parser drops what is wrong in an entry of a map; as a message in a list, an entry shows it
        self._listed = class_of(tuple(map(_with_listed_maps, version.files)), version.message)
        self._reserved = tuple(reserved)

    def verdict(self, payload: bytes) -> Verdict:
        listed = self._listed()
        try:
            listed.ParseFromString(payload)
            left_over = bool(list(_strays(listed)))
            return Verdict(self._row(payload), left_over=left_over)
        except (Bad, DecodeError, UnicodeDecodeError, json_format.Error) as error:
            return Verdict(None, f"{type(error).__name__}: {error}")

    def _row(self, payload: bytes) -> Row:
        message = self._type.FromString(payload)
        if not message.IsInitialized():
            raise Bad("a required field is missing")
        _check_values(message, message.DESCRIPTOR)
        try:
            return oracle_row(message, message.DESCRIPTOR, self._reserved)
        except (TypeError, ValueError) as error:
            raise Bad(f"it has no JSON form: {error}") from error


def _strays(message: Message) -> Iterator[int]:
    """The numbers of the unknown fields at any depth, those too of closed enums that do not have the number sent.

    Raises:
        Bad: a declared field has the wrong wire type.
    """
    descriptor: Any = message.DESCRIPTOR
    declared = {field.number: field for field in fields_of(descriptor)}
    unknown: Any = UnknownFieldSet(message)
    for stray in unknown:
        field = declared.get(stray.field_number)
        closed = field is not None and field.enum_type is not None and field.enum_type.is_closed
        if field is not None and not (closed and stray.wire_type == _VARINT):
            raise Bad(f"field {field.full_name} has wire type {stray.wire_type}")
        yield stray.field_number
    for field, value in message.ListFields():
        if field.message_type is not None:
            for item in value if is_repeated(field) else (value,):
                yield from _strays(item)


def _check_values(message: Any, descriptor: Descriptor) -> None:
    """Raise `Bad` where a value has no place in its column."""
    if descriptor.full_name == "google.protobuf.Timestamp" and not (
        FIRST_SECOND <= message.seconds <= LAST_SECOND and 0 <= message.nanos <= 999_999_999
    ):
        raise Bad("a timestamp is out of range")
    for field, value in message.ListFields():
        for part, values in _parts(field, value):
            for item in values:
                if part.type == FieldDescriptor.TYPE_STRING and isinstance(item, bytes):
                    raise Bad(f"{part.full_name} is not UTF-8")
                if part.full_name == "google.protobuf.Value.number_value" and not math.isfinite(item):
                    raise Bad("a number of a Value has no JSON form")
                if part.message_type is not None:
                    _check_values(item, part.message_type)


def _parts(field: FieldDescriptor, value: Any) -> Iterator[tuple[FieldDescriptor, list[Any]]]:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        yield entry.fields_by_name["key"], list(value)
        yield entry.fields_by_name["value"], [value[key] for key in value]
    else:
        yield field, list(value) if is_repeated(field) else [value]


def _with_listed_maps(file: FileDescriptorProto) -> FileDescriptorProto:
    copy = FileDescriptorProto.FromString(file.SerializeToString())
    _list_maps(copy.message_type)
    return copy


def _list_maps(messages: Iterable[DescriptorProto]) -> None:
    for message in messages:
        message.options.ClearField("map_entry")
        _list_maps(message.nested_type)
