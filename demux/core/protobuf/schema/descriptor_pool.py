"""Message classes made from a descriptor set, without generated code."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FeatureSet,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from demux.core.errors import SchemaInvalid

# a field of such a name hides the method of a message instance
_METHODS = frozenset(dir(Empty()))


def pool_of(files: FileDescriptorSet) -> DescriptorPool:
    """Return a pool with the set's files, which must be in order of their imports (protoc does so).

    Raises:
        SchemaInvalid: a file that protoc lets pass and the parser does not.
    """
    pool = DescriptorPool()
    for file in files.file:
        accepted = FileDescriptorProto.FromString(file.SerializeToString())
        for _, message in _message_protos(accepted):
            _distinguish(message)
        try:
            pool.AddSerializedFile(accepted.SerializeToString())
        except TypeError as error:
            raise SchemaInvalid(f"File {file.name!r} of the schema cannot be used: {error}.", "Correct it.") from error
    return pool


def message_class(pool: DescriptorPool, full_name: str) -> type[Message]:
    """Return the class of a message in the pool.

    Raises:
        KeyError: the pool has no such message.
    """
    return GetMessageClass(pool.FindMessageTypeByName(full_name))


def files_of(pool: DescriptorPool, full_name: str) -> FileDescriptorSet:
    """Return the files that the message needs, those of its extensions too, in order of their imports."""
    found: dict[str, Any] = {}

    def add(file: Any) -> None:
        if file.name in found:
            return
        for needed in file.dependencies:
            add(needed)
        found[file.name] = file
        for extensible in (one for one in _messages(file) if one.is_extendable):
            extensions: Iterable[Any] = pool.FindAllExtensions(extensible)
            for extension in extensions:
                add(extension.file)

    add(pool.FindMessageTypeByName(full_name).file)
    return FileDescriptorSet(file=[FileDescriptorProto.FromString(file.serialized_pb) for file in found.values()])


def unhide_methods(files: FileDescriptorSet) -> FileDescriptorSet:
    """Return the set with a `_` behind the name of each field that hides a method of its message (`ByteSize`, say)."""
    result = FileDescriptorSet()
    result.CopyFrom(files)
    for file in result.file:
        for _, one in _message_protos(file):
            _unhide(one)
    return result


class Readable:
    """The classes that read a message (`unhide_methods`), made when they are asked for: most payloads need none."""

    def __init__(self, files: FileDescriptorSet, pool: DescriptorPool, full_name: str) -> None:
        """Prepare for a message of a set; `pool` is the same set's.

        Raises:
            KeyError: the set has no such message.
        """
        self.declared: Descriptor = pool.FindMessageTypeByName(full_name)
        self._files = files

    @cached_property
    def message(self) -> type[Message]:
        """The message itself."""
        return message_class(self._pool, self.declared.full_name)

    @cached_property
    def listed(self) -> type[Message]:
        """The message with its maps as lists, as `listed` has it."""
        return listed(self._pool, self.declared.full_name)

    def require(self) -> None:
        """Check that the classes can be made.

        Raises:
            SchemaInvalid: the parser refuses them.
        """
        for made in (self.message, self.listed):
            made()

    @cached_property
    def _pool(self) -> DescriptorPool:
        return pool_of(unhide_methods(self._files))


@lru_cache(maxsize=256)
def listed(pool: DescriptorPool, full_name: str) -> type[Message]:
    """Return the class that reads each map as the list of entries that it is on the wire, doubled keys and all."""
    files = files_of(pool, full_name)
    for file in files.file:
        for name, one in _message_protos(file):
            for field in one.field:
                _list_entries(one, field, name, file)
    return message_class(pool_of(files), full_name)


# a list of these is never packed
NOT_PACKABLE = frozenset(
    {
        FieldDescriptorProto.TYPE_STRING,
        FieldDescriptorProto.TYPE_BYTES,
        FieldDescriptorProto.TYPE_MESSAGE,
        FieldDescriptorProto.TYPE_GROUP,
    }
)


def all_fields(file: FileDescriptorProto) -> Iterator[FieldDescriptorProto]:
    """Yield the fields of every message of the file, and its extensions."""
    yield from file.extension
    for _, message in _message_protos(file):
        yield from message.field
        yield from message.extension


def _distinguish(message: DescriptorProto) -> None:
    # proto2 may have a_b besides aB: protoc warns that both are aB in JSON, the parser refuses it
    taken: set[str] = set()
    for field in message.field:
        while field.json_name in taken:
            field.json_name += f"__{field.number}"
        if field.json_name:
            taken.add(field.json_name)


def _unhide(message: DescriptorProto) -> None:
    named: tuple[Any, ...] = (*message.field, *message.oneof_decl, *message.nested_type, *message.enum_type)
    taken = {part.name for part in named}
    taken |= {value.name for enum in message.enum_type for value in enum.value} | _METHODS
    # nor may a field's name be another one's in JSON
    taken |= {field.json_name for field in message.field}
    for field in message.field:
        if field.name in _METHODS:
            while field.name in taken:
                field.name += "_"
            taken.add(field.name)


def has_required(descriptor: Descriptor, seen: set[str] | None = None) -> bool:
    """Return whether the message, or one that it can hold, has a required field."""
    seen = set() if seen is None else seen
    if descriptor.full_name in seen:
        return False
    seen.add(descriptor.full_name)
    return any(
        is_required(field) or (field.message_type is not None and has_required(field.message_type, seen))
        for field in fields_of(descriptor)
    )


def fields_of(descriptor: Descriptor) -> list[FieldDescriptor]:
    """Return the message's fields and its extensions, which come in no order of their own."""
    return [*descriptor.fields, *descriptor.file.pool.FindAllExtensions(descriptor)]


def _list_entries(
    message: DescriptorProto, field: FieldDescriptorProto, full_name: str, file: FileDescriptorProto
) -> None:
    for entry in message.nested_type:
        if entry.options.map_entry and field.type_name == f".{full_name}.{entry.name}":
            entry.options.ClearField("map_entry")
            for part in entry.field:
                _always_written(part, entry, file)
            _never_a_group(field, file)


def _always_written(part: FieldDescriptorProto, entry: DescriptorProto, file: FileDescriptorProto) -> None:
    # a map writes key and value whatever they are; a plain message would leave out a zero
    if file.syntax == "editions":
        part.options.features.field_presence = FeatureSet.EXPLICIT
        _never_a_group(part, file)
    elif file.syntax == "proto3" and part.type != FieldDescriptorProto.TYPE_MESSAGE:
        part.proto3_optional = True
        part.oneof_index = len(entry.oneof_decl)
        entry.oneof_decl.add(name=f"_{part.name}")


def _never_a_group(field: FieldDescriptorProto, file: FileDescriptorProto) -> None:
    # a file may ask for groups everywhere; maps are exempt, and these are no maps any more
    if file.syntax == "editions" and field.type == FieldDescriptorProto.TYPE_MESSAGE:
        field.options.features.message_encoding = FeatureSet.LENGTH_PREFIXED


def _messages(file: Any) -> Iterator[Any]:
    def walk(messages: Iterable[Any]) -> Iterator[Any]:
        for message in messages:
            yield message
            yield from walk(message.nested_types)

    return walk(file.message_types_by_name.values())


def _message_protos(file: FileDescriptorProto) -> Iterator[tuple[str, DescriptorProto]]:
    def walk(prefix: str, messages: list[DescriptorProto]) -> Iterator[tuple[str, DescriptorProto]]:
        for message in messages:
            name = f"{prefix}.{message.name}" if prefix else message.name
            yield name, message
            yield from walk(name, list(message.nested_type))

    return walk(file.package, list(file.message_type))


# `.proto` text that says anything has blanks, quotes or semicolons, which base64 has not
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")


def descriptor_of(text: str) -> FileDescriptorProto | None:
    """Return the file that a schema's text is the serialized form of; None for `.proto` text."""
    if not _BASE64.fullmatch(text):
        return None
    try:
        file = FileDescriptorProto.FromString(base64.b64decode(text))
    except (binascii.Error, DecodeError):
        return None
    # a few letters may be base64 of something, but a file that declares nothing is of no use
    return file if file.name or file.message_type or file.enum_type or file.extension else None


# newer stubs do not have it
_label = attrgetter("label")


# the class itself does not say which properties its fields have
_IS_NEW = hasattr(FileDescriptorProto.DESCRIPTOR.fields_by_name["name"], "is_repeated")


def is_repeated(field: FieldDescriptor) -> bool:
    """Return whether the field has any number of values."""
    return field.is_repeated if _IS_NEW else bool(_label(field) == FieldDescriptor.LABEL_REPEATED)


def is_required(field: FieldDescriptor) -> bool:
    """Return whether a message without the field is invalid."""
    return field.is_required if _IS_NEW else bool(_label(field) == FieldDescriptor.LABEL_REQUIRED)
