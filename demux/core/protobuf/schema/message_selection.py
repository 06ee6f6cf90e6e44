"""Which message of a compiled schema a payload holds: by its message indexes, by configuration, or the first. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet

from demux.core.errors import SchemaInvalid
from demux.core.protobuf.schema.descriptor_pool import pool_of
from demux.core.protobuf.schema.protoc import CompiledSchema

_INDEXES = re.compile(r"[0-9]{1,9}(,[0-9]{1,9})*")


def with_message(schema: CompiledSchema, indexes: str | None, configured: str | None) -> CompiledSchema:
    """Return the schema with the chosen message: by indexes, else as configured, else as it is.

    Args:
        indexes: the row's message indexes, such as `1,0`; None where the row does not say.
        configured: the full name that the settings or the registry give for the subject, or None.

    Raises:
        SchemaInvalid: the indexes lead to no message, or to one of two, or the schema lacks the configured message.
    """
    if indexes is None:
        if configured is None:
            return schema
        if not has_message(schema.descriptor_set, configured):
            raise _invalid(schema, f"has no message {configured!r}, which is named for its subject")
        return replace(schema, message=configured)
    found = messages_at(schema.descriptor_set, indexes)
    if configured in found:
        return replace(schema, message=configured)
    match found:
        case []:
            raise _invalid(schema, f"has no message at the indexes {indexes}")
        case [message]:
            return replace(schema, message=message)
        case _:
            both = " or ".join(found)
            raise _invalid(schema, f"has at the indexes {indexes} {both}, depending on who wrote them", *found)


@lru_cache(maxsize=1024)
def messages_at(descriptor_set: bytes, indexes: str) -> tuple[str, ...]:
    """Return the full names of the messages that the indexes can mean: none, one or two.

    The first index counts the messages of the file, each further one the messages inside. Some serializers count as
    the text does, others also the hidden entry message of each map field: where both ways lead to a message that may
    be sent, and not to the same one, both are returned.

    Args:
        descriptor_set: a serialized `FileDescriptorSet`, the file itself last.
        indexes: numbers with commas between them.
    """
    if not _INDEXES.fullmatch(indexes):
        return ()
    file = FileDescriptorSet.FromString(descriptor_set).file[-1]
    path = [int(index) for index in indexes.split(",")]
    ways = (_follow(file, path, entries=False), _follow(file, path, entries=True))
    return tuple(dict.fromkeys(name for name in ways if name is not None))


def indexes_of_message(descriptor_set: bytes, full_name: str) -> tuple[int, ...]:
    """Return the way to a message from the top of the file, as `messages_at` reads it; map entries are not counted.

    Raises:
        SchemaInvalid: the file itself, the last of the set, has no such message.
    """
    file = FileDescriptorSet.FromString(descriptor_set).file[-1]
    prefix = f"{file.package}." if file.package else ""
    path: list[int] = []
    inside: list[DescriptorProto] = list(file.message_type)
    for name in full_name.removeprefix(prefix).split(".") if full_name.startswith(prefix) else ("",):
        counted = [message for message in inside if not message.options.map_entry]
        found = next((at for at, message in enumerate(counted) if message.name == name), None)
        if found is None:
            raise SchemaInvalid(
                f"A frame cannot name {full_name}, which is not a message of the file {file.name}.",
                "Register the file of the message under a subject of its own.",
                message=full_name,
            )
        path.append(found)
        inside = list(counted[found].nested_type)
    return tuple(path)


def _follow(file: FileDescriptorProto, path: list[int], *, entries: bool) -> str | None:
    names = [file.package] if file.package else []
    inside: list[DescriptorProto] = list(file.message_type)
    is_entry = False
    for index in path:
        counted = [message for message in inside if entries or not message.options.map_entry]
        if index >= len(counted):
            return None
        message = counted[index]
        names.append(message.name)
        inside, is_entry = list(message.nested_type), message.options.map_entry
    return None if is_entry else ".".join(names)


@lru_cache(maxsize=1024)
def has_message(descriptor_set: bytes, full_name: str) -> bool:
    """Return whether the schema, or a file that it imports, declares the message."""
    try:
        pool_of(FileDescriptorSet.FromString(descriptor_set)).FindMessageTypeByName(full_name)
    except KeyError:
        return False
    return True


def _invalid(schema: CompiledSchema, what: str, *choices: str) -> SchemaInvalid:
    remedy = (
        "Correct `messages` in the settings, `message` in registry.yml, or the producer; then replay the quarantine."
    )
    if choices:
        remedy = f"Name {choices[0]} or {choices[1]} in the registry's `messages`; then replay the quarantine."
    return SchemaInvalid(
        f"Schema {schema.schema_id} ({schema.subject!r} version {schema.version}) {what}.",
        remedy,
        schema_id=schema.schema_id,
        subject=schema.subject,
    )
