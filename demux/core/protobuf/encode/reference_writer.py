"""One row of the lowered message, and JSON of a message, to bytes by `google.protobuf`: the reference of the writer."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf import json_format
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message

from demux.core.protobuf.schema.column_mapping import (
    Cardinality,
    Enumeration,
    FieldMapping,
    JsonText,
    NullableScalar,
    Scalar,
    TimestampValue,
    Value,
)
from demux.core.protobuf.schema.column_mapping import Message as MessageShape
from demux.core.protobuf.schema.descriptor_pool import fields_of, message_class

_UNRESOLVED = {"@type", "value"}


class UnfitJson(Exception):
    """The text is no JSON of the message; the text says why, without a full stop."""


@dataclass(frozen=True, slots=True)
class JsonReader:
    """Reads JSON texts of messages of a pool."""

    pool: DescriptorPool

    def payload(self, full_name: str, text: str) -> bytes:
        """Return the message's bytes; map entries in order of key.

        Raises:
            UnfitJson: the text is no JSON of the message.
        """
        message = message_class(self.pool, full_name)()
        try:
            json_format.Parse(text, message, descriptor_pool=self.pool)
            return message.SerializeToString(deterministic=True)
        except (json_format.Error, AttributeError, TypeError, ValueError, RecursionError) as error:
            unresolved = _unresolved(text) if full_name == AnyMessage.DESCRIPTOR.full_name else None
            if unresolved is None:
                raise UnfitJson(str(error).rstrip(".")) from error
            return unresolved


def _unresolved(text: str) -> bytes | None:
    """Return an Any whose type is not in the pool, as `json_text` writes one; None for anything else."""
    try:
        members = json.loads(text)
        if not isinstance(members, dict) or set(members) != _UNRESOLVED:
            return None
        value = base64.b64decode(members["value"], validate=True)
        return AnyMessage(type_url=members["@type"], value=value).SerializeToString(deterministic=True)
    except (ValueError, TypeError, binascii.Error):
        return None


Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReferenceWriter:
    """Writes rows of one message; `message` is the class without hidden methods (`Readable`)."""

    message: type[Message]
    shape: MessageShape

    def payload(self, row: Row) -> bytes:
        """Return the payload of a row, by lowered column name; maps in order of key."""
        made = self.message()
        _fill(made, self.shape, row)
        return made.SerializePartialToString(deterministic=True)


def _fill(message: Any, shape: MessageShape, row: Row) -> None:
    declared = {field.number: field for field in fields_of(message.DESCRIPTOR)}
    for field in shape.fields:
        value = row[f"f{field.number}"]
        if value is None:
            continue
        one = declared[field.number]
        if one.is_extension:
            _set(message.Extensions, one, field, value)
        else:
            _set(_Attributes(message), one.name, field, value)


@dataclass(frozen=True, slots=True)
class _Attributes:
    """The fields of a message by name, as its extensions are by descriptor."""

    message: Any

    def __getitem__(self, name: str) -> Any:
        return getattr(self.message, name)

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self.message, name, value)


def _set(fields: Any, key: Any, field: FieldMapping, value: Any) -> None:
    is_plain = isinstance(field.value, Scalar | Enumeration)
    match field.cardinality:
        case Cardinality.SINGULAR if is_plain:
            fields[key] = value
        case Cardinality.SINGULAR:
            _fill_message(fields[key], field.value, value)
        case Cardinality.REPEATED if is_plain:
            fields[key].extend(value)
        case Cardinality.REPEATED:
            for item in value:
                _fill_message(fields[key].add(), field.value, item)
        case Cardinality.MAP if is_plain:
            fields[key].update({entry["key"]: entry["value"] for entry in value})
        case Cardinality.MAP:
            for entry in value:
                _fill_message(fields[key][entry["key"]], field.value, entry["value"])


def _fill_message(message: Any, value: Value, given: Any) -> None:
    message.SetInParent()
    match value:
        case NullableScalar():
            message.value = given["f1"]
        case TimestampValue():
            message.seconds, message.nanos = given["f1"], given["f2"]
        case JsonText() | MessageShape(fields=()):
            message.MergeFromString(given)
        case MessageShape():
            _fill(message, value, given)
