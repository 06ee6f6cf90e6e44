"""The message reduced to what every fast parser reads alike: the same bytes, a plainer descriptor.

Field `n` is called `f<n>`. An enum is an int32, a message without a fixed shape or without fields is bytes, `Timestamp`
and the `*Value` messages are ordinary messages: equal on the wire, so no parser applies rules of its own.
The column rules (`demux.core.protobuf.schema.column_mapping`) are applied afterwards, to whole columns.
"""

from __future__ import annotations

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from demux.core.protobuf.schema.column_mapping import (
    Cardinality,
    Enumeration,
    FieldMapping,
    FieldPresence,
    JsonText,
    Message,
    NullableScalar,
    Scalar,
    TimestampValue,
    Value,
)

PACKAGE = "demux_lowered"
ROOT = f"{PACKAGE}.M0"

_TIMESTAMP_FIELDS = (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_INT32)


def lower_message(shape: Message, syntax: str) -> FileDescriptorSet:
    """Return a set of one file whose message `ROOT` reads the same bytes as the shape's message.

    Args:
        shape: the message, without delimited fields (groups).
        syntax: `proto3` (unset implicit fields read as their default) or `proto2` (they read as unset).
    """
    return FileDescriptorSet(file=[_Lowering(syntax).file(shape)])


def can_lower(shape: Message) -> bool:
    """Return whether the message has no delimited field (a group), which the fast parsers do not read."""
    return all(
        not field.delimited and (not isinstance(field.value, Message) or can_lower(field.value))
        for field in shape.fields
    )


class _Lowering:
    def __init__(self, syntax: str) -> None:
        self._proto3 = syntax == "proto3"
        self._file = FileDescriptorProto(name="demux_lowered.proto", package=PACKAGE, syntax=syntax)
        self._names: dict[Value, str] = {}

    def file(self, shape: Message) -> FileDescriptorProto:
        self._message(shape)
        return self._file

    def _message(self, value: Message | TimestampValue | NullableScalar) -> str:
        known = self._names.get(value)
        if known is not None:
            return known
        name = f"M{len(self._names)}"
        self._names[value] = name
        message = self._file.message_type.add(name=name)
        match value:
            case Message(_, fields):
                for field in fields:
                    self._field(message, field)
            case TimestampValue():
                for number, proto_type in enumerate(_TIMESTAMP_FIELDS, start=1):
                    self._plain(message, number, proto_type)
            case NullableScalar(scalar):
                self._plain(message, 1, scalar.proto_type)
        return name

    def _plain(self, message: DescriptorProto, number: int, proto_type: int) -> None:
        message.field.add(
            name=f"f{number}",
            number=number,
            type=proto_type,
            label=FieldDescriptorProto.LABEL_OPTIONAL,
        )

    def _field(self, message: DescriptorProto, field: FieldMapping) -> None:
        lowered = message.field.add(name=f"f{field.number}", number=field.number)
        if field.cardinality is Cardinality.MAP:
            lowered.label = FieldDescriptorProto.LABEL_REPEATED
            lowered.type = FieldDescriptorProto.TYPE_MESSAGE
            lowered.type_name = self._map_entry(message, field)
            return
        self._set_type(lowered, field.value)
        if field.cardinality is Cardinality.REPEATED:
            lowered.label = FieldDescriptorProto.LABEL_REPEATED
            lowered.options.packed = field.packed
            return
        lowered.label = FieldDescriptorProto.LABEL_OPTIONAL
        is_message = lowered.type == FieldDescriptorProto.TYPE_MESSAGE
        if self._proto3 and field.presence is not FieldPresence.IMPLICIT and not is_message:
            lowered.proto3_optional = True
            lowered.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_f{field.number}")

    def _map_entry(self, message: DescriptorProto, field: FieldMapping) -> str:
        assert field.key is not None
        # protoc's own naming rule for entries; parsers check it
        entry = message.nested_type.add(name=f"F{field.number}Entry")
        entry.options.map_entry = True
        key = entry.field.add(name="key", number=1, label=FieldDescriptorProto.LABEL_OPTIONAL)
        key.type = field.key.proto_type  # type: ignore[assignment]
        value = entry.field.add(name="value", number=2, label=FieldDescriptorProto.LABEL_OPTIONAL)
        self._set_type(value, field.value)
        return f".{PACKAGE}.{message.name}.{entry.name}"

    def _set_type(self, target: FieldDescriptorProto, value: Value) -> None:
        match value:
            case Scalar(proto_type):
                target.type = proto_type  # type: ignore[assignment]
            case Enumeration():
                target.type = FieldDescriptorProto.TYPE_INT32
            case JsonText() | Message(fields=()):
                target.type = FieldDescriptorProto.TYPE_BYTES
            case Message() | TimestampValue() | NullableScalar():
                target.type = FieldDescriptorProto.TYPE_MESSAGE
                target.type_name = f".{PACKAGE}.{self._message(value)}"
