"""Where the schemas of a column come from: versions of a subject, ids of a registry, or one file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import DecodeError
from pydantic import ValidationError

from demux.core.errors import ArgumentInvalid, SchemaInvalid, SchemaUnknown
from demux.core.protobuf.schema.message_selection import has_message, with_message
from demux.core.protobuf.schema.protoc import CompiledSchema, compile_schema, first_message
from demux.core.registry.imports import path_mistake, transitive_imports
from demux.core.registry.protocol import RegisteredSchema, SchemaRegistry
from demux.core.schemas.registry_selection import open_registry
from demux.core.settings.settings import RegistrySettings, Settings

Registry = str | Path | Mapping[str, object] | SchemaRegistry
SchemaFile = str | Path | bytes
Schemas = dict[int, CompiledSchema | SchemaInvalid]

# the id of a schema that no registry has
NO_ID = 0


def open_named_registry(registry: Registry) -> SchemaRegistry:
    """Return the registry: by its URL, the path or URI of its folder, or the settings of a section `registry`.

    Raises:
        ArgumentInvalid: the settings have mistakes.
        SecretMissing, SettingsInvalid: as `open_registry`.
    """
    match registry:
        case str() | Path():
            place = str(registry)
            section: Mapping[str, object] = {"url" if place.startswith(("http://", "https://")) else "path": place}
        case Mapping():
            section = registry
        case _:
            return registry
    try:
        settings = RegistrySettings.model_validate(section)
    except ValidationError as error:
        # never the input: it may hold a password
        mistakes = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise ArgumentInvalid(
            f"The argument `registry` has mistakes: {mistakes}.",
            "Its keys are those of the section `registry` in the settings.",
            mistakes=mistakes,
        ) from None
    return open_registry(Settings(registry=settings), environ=os.environ)


def schemas_of_subject(registry: SchemaRegistry, subject: str, message: str | None) -> Schemas:
    """Return every version of the subject, by id in order of version; or why one cannot be used.

    Raises:
        SchemaUnknown: the registry has no such subject.
        RegistryUnavailable, RegistryRefused: the registry gives no answer.
    """
    versions = registry.versions(subject)
    if not versions:
        subjects = registry.subjects()
        near = get_close_matches(subject, subjects, n=1)
        known = f"the nearest is {near[0]!r}" if near else f"it has {len(subjects):,} others"
        raise SchemaUnknown(
            f"The registry has no subject {subject!r}; {known}.",
            "Correct the name of the subject, or register its schema.",
            subject=subject,
        )
    return {version.schema_id: _compiled(version, message) for version in versions}


def schemas_of_ids(registry: SchemaRegistry, ids: Iterable[int], message: str | None) -> Schemas:
    """Return the schemas of these ids, as far as the registry has them.

    Raises:
        SchemaUnknown: it has none of them.
        RegistryUnavailable, RegistryRefused: the registry gives no answer.
    """
    found: Schemas = {}
    unknown: SchemaUnknown | None = None
    for schema_id in sorted(ids):
        try:
            found[schema_id] = _compiled(registry.schema(schema_id), message)
        except SchemaInvalid as invalid:
            found[schema_id] = invalid
        except SchemaUnknown as error:
            unknown = error
    if not found and unknown is not None:
        raise unknown
    return found


def schema_of_file(file: SchemaFile, message: str | None) -> CompiledSchema:
    """Return the schema in a `.proto` file, which imports from its own folder, or in a descriptor set.

    Args:
        file: path of a file `….proto`; path of a serialized `FileDescriptorSet` with all imports, or its bytes.
        message: the full name of the message; None for the first of the file, in a set the last one.

    Raises:
        ArgumentInvalid: the file cannot be read.
        SchemaInvalid: it is no schema, or has no such message.
    """
    if isinstance(file, bytes):
        return _of_set(file, "the descriptor set", message)
    path = Path(file)
    data = _read(path)
    if data is None:
        raise ArgumentInvalid(f"There is no file {file}.", "Correct the argument `schema`.", file=str(file))
    if path.suffix != ".proto":
        return _of_set(data, str(file), message)

    def imported(name: str) -> str | None:
        text = None if path_mistake(name) else _read(path.parent / name)
        return None if text is None else _text(path.parent / name, text)

    text = _text(path, data)
    references = transitive_imports(text, imported)
    try:
        return compile_schema(RegisteredSchema(NO_ID, path.stem, 1, text, path.name, references, message))
    except SchemaInvalid as invalid:
        raise SchemaInvalid(
            f"{file} does not compile: {invalid.fields['reason']}.",
            "Correct the file, or the argument `message`; imports are looked for in the folder of the file.",
            file=str(file),
        ) from invalid


def _compiled(schema: RegisteredSchema, message: str | None) -> CompiledSchema | SchemaInvalid:
    try:
        return with_message(compile_schema(schema), None, message)
    except SchemaInvalid as invalid:
        return invalid


def _of_set(data: bytes, what: str, message: str | None) -> CompiledSchema:
    try:
        files = FileDescriptorSet.FromString(data)
    except DecodeError:
        files = FileDescriptorSet()
    if not files.file:
        raise SchemaInvalid(
            f"{what[0].upper()}{what[1:]} is no FileDescriptorSet.",
            "Make it with `protoc --include_imports --descriptor_set_out=FILE`.",
        )
    wanted = message or first_message(data)
    if wanted is None or not has_message(data, wanted):
        raise SchemaInvalid(f"There is no message {wanted or ''!r} in {what}.", "Name one of its messages.")
    return CompiledSchema(NO_ID, what, 1, wanted, data)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ArgumentInvalid(
            f"{path} cannot be read: {error.strerror or error}.", "Correct the argument `schema`.", file=str(path)
        ) from error


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise SchemaInvalid(f"{path} is not UTF-8 text.", "Correct the file.", file=str(path)) from None
