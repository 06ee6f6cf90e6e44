"""Each message type of the corpus in two versions: as it is installed, and as it may have been before. Free of Spark.

The older version lacks a field of the message and of the messages of its file that it holds, lacks the last value of
each of the file's enums where it can, and has a field that the newer one has dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from tests.corpus.installed import TYPES, Files, files_of

DROPPED = "dropped_since"


@dataclass(frozen=True)
class Version:
    """A version of a message type; `files` as `files_of` has them."""

    message: str
    number: int
    files: Files

    def __str__(self) -> str:
        return f"{self.message} {self.number}"

    def __hash__(self) -> int:
        return hash((self.message, self.number))

    @property
    def file(self) -> FileDescriptorProto:
        return self.files[-1]

    @property
    def descriptor_set(self) -> bytes:
        return FileDescriptorSet(file=self.files).SerializeToString()

    @property
    def type(self) -> type[Message]:
        """The class of `google.protobuf`, in a pool of its own."""
        return class_of(self.files, self.message)


@cache
def versions_of(message: str) -> tuple[Version, Version]:
    """The older version and the installed one."""
    files = files_of(message)
    return Version(message, 1, (*files[:-1], _older(files[-1], message))), Version(message, 2, files)


def class_of(files: Files, message: str) -> type[Message]:
    """The class of a message in these files."""
    pool = DescriptorPool()
    for file in files:
        pool.Add(file)
    descriptor: Any = pool.FindMessageTypeByName(message)
    return GetMessageClass(descriptor)


def _older(file: FileDescriptorProto, message: str) -> FileDescriptorProto:
    older = FileDescriptorProto.FromString(file.SerializeToString())
    messages = dict(_messages(older.package, older.message_type))
    root = messages[message]
    # what its fields may say is looked at before one is gone
    said = {field.default_value for one in messages.values() for field in one.field}
    for one in {id(one): one for one in (root, *_held(root, messages))}.values():
        _lose_field(one)
    for enum in (*older.enum_type, *(enum for one in messages.values() for enum in one.enum_type)):
        _lose_value(enum, said)
    number = _free(root)
    root.field.add(
        name=DROPPED, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL
    ).type = FieldDescriptorProto.TYPE_SINT64
    return older


def _messages(prefix: str, messages: Any) -> Iterator[tuple[str, DescriptorProto]]:
    for message in messages:
        name = f"{prefix}.{message.name}" if prefix else message.name
        yield name, message
        yield from _messages(name, message.nested_type)


def _held(root: DescriptorProto, messages: dict[str, DescriptorProto]) -> Iterator[DescriptorProto]:
    """The messages of the file that fields of the root hold."""
    names = (field.type_name.removeprefix(".") for field in root.field if field.type == field.TYPE_MESSAGE)
    held = (messages[name] for name in names if name in messages)
    return (message for message in held if not message.options.map_entry)


def _lose_field(message: DescriptorProto) -> None:
    """Remove the last plain field: one that is no message, so that what is inside itself stays so."""
    plain = [
        at
        for at, field in enumerate(message.field)
        if field.type not in (field.TYPE_MESSAGE, field.TYPE_GROUP)
        and field.label != field.LABEL_REQUIRED
        and not field.HasField("oneof_index")
    ]
    if plain and len(message.field) > 1:
        del message.field[plain[-1]]


def _lose_value(enum: EnumDescriptorProto, said: set[str]) -> None:
    if len(enum.value) > 1 and not enum.options.allow_alias and enum.value[-1].name not in said:
        del enum.value[-1]


def _free(message: DescriptorProto) -> int:
    taken = {field.number for field in message.field}
    ranges = [range(part.start, part.end) for part in message.reserved_range]
    ranges += [range(part.start, part.end) for part in message.extension_range]
    return next(number for number in range(100, 10_000) if number not in taken and not any(number in r for r in ranges))


VERSIONS = tuple(version for message in TYPES for version in versions_of(message))
