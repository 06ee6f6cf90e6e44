"""A changed `.proto` file against the subjects of a registry: which hold its messages, and what it breaks there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from demux.core.errors import SchemaInvalid, SettingsInvalid
from demux.core.protobuf.compatibility.changes import SchemaComparison
from demux.core.protobuf.compatibility.compare import compare, table_of
from demux.core.protobuf.schema.descriptor_pool import pool_of
from demux.core.protobuf.schema.protoc import CompiledSchema, compile_schema
from demux.core.registry.imports import imports_of, path_mistake, transitive_imports
from demux.core.registry.protocol import ImportedFile, RegisteredSchema, SchemaRegistry
from demux.core.schemas.subject_choice import named_message


@dataclass(frozen=True, slots=True)
class NamedRegistry:
    """A registry of the settings."""

    name: str
    opened: SchemaRegistry
    messages: Mapping[str, str]

    def schema(self, schema_id: int) -> RegisteredSchema:
        """Return the schema of this id with all its subjects; raises as `SchemaRegistry.schema` does."""
        return self._meant(self.opened.schema(schema_id))

    def versions(self, subject: str) -> tuple[RegisteredSchema, ...]:
        """Return the subject's schemas in order of version; raises as `SchemaRegistry.versions` does."""
        return tuple(map(self._meant, self.opened.versions(subject)))

    def _meant(self, schema: RegisteredSchema) -> RegisteredSchema:
        first, *others = (named_message(use, self.messages) for use in (schema.use, *schema.others))
        return replace(schema.used_as(first), others=tuple(others))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A `.proto` file that is not registered yet.

    Attributes:
        place: its absolute path, with forward slashes.
        schema: its text and imports; id and version are 0.
        messages: the full names of its messages, nested ones too; the first one of the file first.
    """

    place: str
    schema: RegisteredSchema
    messages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubjectCheck:
    """The effect of a file on a subject.

    Attributes:
        level: the compatibility mode that it holds the subject to; None where it knows none.
        comparison: what differs; None where there is nothing to compare.
        problem: why not, without a full stop; it breaks the subject where the file is at fault.
        at_fault: whether that is the file.
    """

    registry: str
    level: str | None
    latest: RegisteredSchema
    message: str
    comparison: SchemaComparison | None
    problem: str = ""
    at_fault: bool = False

    @property
    def breaks(self) -> bool:
        """Whether the file must not be the subject's next version."""
        return self.at_fault if self.comparison is None else self.comparison.breaks

    @property
    def refused(self) -> bool:
        """Whether the registry, held to its mode, refuses the file after the latest version."""
        if self.comparison is None or self.level is None:
            return False
        return self.level.removesuffix("_TRANSITIVE") not in {mode.value for mode in self.comparison.modes}


def candidate(file: Path, roots: Sequence[Path]) -> Candidate:
    """Return the file, compiled once with the imports that it finds below the roots; reads files.

    Args:
        roots: the folders that import paths start at; none = the nearest folder around the file that has its imports.

    Raises:
        SettingsInvalid: the file cannot be read, or is below none of the roots.
        SchemaInvalid: it does not compile.
    """
    text = _text_of(file)
    folders = [root.resolve() for root in roots] or [_root_of(file.resolve(), text)]
    path = _import_path(file, folders)
    schema = RegisteredSchema(0, "", 0, text, path, transitive_imports(text, lambda name: _imported(folders, name)))
    compiled = _compiled(file, schema)
    found = pool_of(FileDescriptorSet.FromString(compiled.descriptor_set)).FindFileByName(path)
    place = file.resolve().as_posix()
    return Candidate(
        place, schema, tuple(dict.fromkeys((compiled.message, *_names(found.message_types_by_name.values()))))
    )


def check(registry: NamedRegistry, subject: str, new: Candidate, *, by_name: bool) -> SubjectCheck | None:
    """Return the effect of the file on the subject; None where it is no part of the subject.

    It takes the place of the schema where that holds a message of the file, or of the import that has its path.

    Args:
        by_name: whether it must be such a part; else its first message takes the place of the subject's.

    Raises:
        SchemaInvalid: the registry's entries for the subject cannot be used.
        RegistryUnavailable: the registry gives no usable answer.
    """
    versions = registry.versions(subject)
    if not versions:
        return None
    latest = versions[-1]
    imported = _as_import(latest, new)
    if by_name and imported is None and not _may_hold(latest, new.messages):
        return None
    result = SubjectCheck(registry.name, registry.opened.compatibility(subject), latest, latest.message or "", None)
    try:
        old = compile_schema(latest)
    except SchemaInvalid as invalid:
        return replace(result, problem=invalid.message.rstrip("."))
    if old.message in new.messages or not (by_name or imported):
        message = old.message if old.message in new.messages else new.messages[0]
        proposed = replace(new.schema, subject=subject, message=message)
    elif imported is not None:
        proposed = replace(imported, message=old.message)
    else:
        return None
    result = replace(result, message=proposed.message or "")
    try:
        table = table_of(compiled_versions(versions))
        return replace(result, comparison=compare(old, compile_schema(proposed), table))
    except SchemaInvalid as invalid:
        reason = invalid.fields.get("reason")
        problem = invalid.message.rstrip(".") if reason is None else f"it does not compile any more: {reason}"
        return replace(result, problem=problem, at_fault=True)


def compiled_versions(versions: Sequence[RegisteredSchema]) -> Iterator[CompiledSchema]:
    """Yield those of the versions that compile, in order."""
    for version in versions:
        try:
            yield compile_schema(version)
        except SchemaInvalid:
            continue


def _compiled(file: Path, schema: RegisteredSchema) -> CompiledSchema:
    try:
        return compile_schema(schema)
    except SchemaInvalid as invalid:
        raise SchemaInvalid(
            f"{file} does not compile: {invalid.fields.get('reason', invalid.message)}.",
            "Correct it, or name the folder that its imports start at with --import-root.",
            file=str(file),
        ) from invalid


def _text_of(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SettingsInvalid(f"{file} cannot be read: {why}.", "Name a .proto file.", file=str(file)) from error


def _root_of(file: Path, text: str) -> Path:
    wanted = [name for name in imports_of(text) if not name.startswith("google/") and path_mistake(name) is None]
    return next((folder for folder in file.parents if all((folder / name).is_file() for name in wanted)), file.parent)


def _import_path(file: Path, folders: Sequence[Path]) -> str:
    whole = file.resolve()
    below = [whole.relative_to(folder).as_posix() for folder in folders if whole.is_relative_to(folder)]
    if not below:
        raise SettingsInvalid(f"{file} is below no --import-root.", "Name a folder around the file.", file=str(file))
    return below[0]


def _imported(folders: Sequence[Path], name: str) -> str | None:
    if path_mistake(name) is not None:
        return None
    found = next((folder / name for folder in folders if (folder / name).is_file()), None)
    return None if found is None else _text_of(found)


def _as_import(schema: RegisteredSchema, new: Candidate) -> RegisteredSchema | None:
    """Return the schema with the file in the place of one of its imports; None where it is none of them."""
    at = [part.path for part in schema.references if new.place.endswith(f"/{part.path}")]
    if not at:
        return None
    others = [part for part in schema.references if part.path != at[0]]
    known = {part.path for part in schema.references}
    needed = [part for part in new.schema.references if part.path not in known]
    files = [*others, *needed, ImportedFile(at[0], new.schema.text)]
    return replace(schema, references=tuple(sorted(files, key=lambda part: part.path)))


def _may_hold(schema: RegisteredSchema, messages: Sequence[str]) -> bool:
    """Return whether the subject may hold one of the messages; False is certain, and costs no compilation."""
    if schema.message is not None:
        return schema.message in messages
    words = set(re.findall(r"\w+", schema.text))
    return any(words.issuperset(name.split(".")) for name in messages)


def _names(messages: Iterable[Descriptor]) -> Iterator[str]:
    for message in messages:
        if not message.GetOptions().map_entry:
            yield message.full_name
            yield from _names(message.nested_types)
