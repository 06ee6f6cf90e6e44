"""Message classes made from a descriptor set, without generated code."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass


def pool_of(files: FileDescriptorSet) -> DescriptorPool:
    """Return a pool with the set's files, which must stand in order of their imports (protoc does so)."""
    pool = DescriptorPool()
    for file in files.file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def message_class(pool: DescriptorPool, full_name: str) -> type[Message]:
    """Return the class of a message in the pool.

    Raises:
        KeyError: the pool has no such message.
    """
    return GetMessageClass(pool.FindMessageTypeByName(full_name))


def opened(files: FileDescriptorSet, pool: DescriptorPool) -> FileDescriptorSet:
    """Return the set with every closed enum read as int32, so that no number is lost on the way.

    A closed enum (proto2) sends a number it does not know to the unknown fields, out of its place in a list.

    Args:
        files: the set.
        pool: the same set's pool, which knows which enums are closed.
    """
    result = FileDescriptorSet()
    result.CopyFrom(files)
    for file in result.file:
        for field in _fields(file):
            if field.type == FieldDescriptorProto.TYPE_ENUM and _is_closed(pool, field.type_name):
                field.type = FieldDescriptorProto.TYPE_INT32
                field.ClearField("type_name")
                field.ClearField("default_value")
    return result


def has_required(descriptor: Descriptor, seen: set[str] | None = None) -> bool:
    """Return whether the message, or one that it can hold, has a required field."""
    seen = set() if seen is None else seen
    if descriptor.full_name in seen:
        return False
    seen.add(descriptor.full_name)
    fields: list[FieldDescriptor] = [*descriptor.fields, *descriptor.file.pool.FindAllExtensions(descriptor)]
    return any(
        field.is_required or (field.message_type is not None and has_required(field.message_type, seen))
        for field in fields
    )


def _is_closed(pool: DescriptorPool, type_name: str) -> bool:
    return bool(pool.FindEnumTypeByName(type_name.lstrip(".")).is_closed)


def _fields(file: FileDescriptorProto) -> Iterator[FieldDescriptorProto]:
    yield from file.extension
    for message in file.message_type:
        yield from _message_fields(message)


def _message_fields(message: DescriptorProto) -> Iterator[FieldDescriptorProto]:
    yield from message.field
    yield from message.extension
    for nested in message.nested_type:
        yield from _message_fields(nested)
