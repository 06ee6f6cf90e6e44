"""A Confluent-compatible schema registry: Confluent's own, Apicurio, Karapace, Redpanda."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import count

from demux.core.errors import SchemaInvalid, SchemaUnknown
from demux.core.registry.confluent.api import (
    AVRO,
    PROTOBUF,
    Deletion,
    OwnershipMark,
    ReferenceTo,
    RegisteredVersion,
    Resources,
    SchemaLocation,
    Stored,
    is_mark_subject,
    mark_subject,
    mark_text,
    read_mark,
)
from demux.core.registry.confluent.http_client import Rest
from demux.core.registry.imports import direct_imports, needed_imports, schema_mistake
from demux.core.registry.protocol import ImportedFile, NewSchema, RegisteredSchema, SubjectVersion, no_guids, no_subject

_LARGEST_ID = 2**31 - 1


class ConfluentRegistry:
    """A registry over HTTP. Safe to share between threads; the text under an id never changes, so it is asked for once.

    Registries of this kind keep neither a schema's path nor the chosen message: `path` is `schema.proto` (the first
    free one of `schema2.proto` …, where an import is called so), and `message` is None. Subjects may share an id.
    """

    def __init__(self, rest: Rest, made_by: str | None = None) -> None:
        self._resources = Resources(rest)
        self._made_by = made_by
        self._stored: dict[int, Stored] = {}
        self._imports: dict[tuple[str, int], Stored] = {}

    def schema(self, schema_id: int) -> RegisteredSchema:
        """Return the schema of this id with all its subjects, which are asked for each time: there may be more now."""
        stored = self._by_id(schema_id)
        if stored is None:
            raise SchemaUnknown(
                f"The registry at {self._resources.url} has no schema {schema_id}.",
                "Register the schema, then replay the quarantine.",
                schema_id=schema_id,
                url=self._resources.url,
            )
        first, *others = self._places(schema_id)
        schema = self._whole(schema_id, first, stored)
        return replace(schema, others=tuple(SubjectVersion(place.subject, place.version) for place in others))

    def schema_of_guid(self, guid: str) -> RegisteredSchema:
        """Return the schema of this GUID, which only new registries give."""
        schema_id = self._resources.id_of_guid(guid)
        if schema_id is None:
            raise no_guids(f"at {self._resources.url}", guid)
        return self.schema(schema_id)

    def compatibility(self, subject: str) -> str | None:
        """Return the subject's level, or that of all subjects where it has none of its own."""
        return self._resources.level(subject)

    def versions(self, subject: str) -> tuple[RegisteredSchema, ...]:
        """Return the subject's schemas in order of version."""
        found = {number: self._resources.version(subject, number) for number in self._resources.numbers(subject)}
        return tuple(
            self._whole(stored.id, RegisteredVersion(subject=subject, version=number), stored)
            for number, stored in found.items()
            if stored is not None and stored.id is not None
        )

    def subjects(self) -> tuple[str, ...]:
        """Return all subjects in alphabetical order, those of imports too."""
        return tuple(sorted(name for name in self._resources.subjects() if not is_mark_subject(name)))

    def register(
        self, subject: str, text: str, path: str, references: tuple[ImportedFile, ...], message: str | None = None
    ) -> int:
        """Return the id of this content under this subject, registered now if it was not; a second call is safe.

        Every file it imports is registered first, under its import path as its subject.
        """
        return self.register_all([NewSchema(subject, text, path, references, message)])[0]

    def register_all(self, schemas: Sequence[NewSchema]) -> tuple[int, ...]:
        """Return one id per schema, in the same order; a file that several import is looked at once."""
        for schema in schemas:
            if mistake := schema_mistake(schema):
                message = f"The schema of {schema.subject!r} cannot be kept: {mistake}."
                raise SchemaInvalid(message, "Change it.", subject=schema.subject)
        registrar = Registrar(self._resources, self._made_by)
        return tuple(registrar.register(schema) for schema in schemas)

    def remove(self, *, made_by: str) -> tuple[int, ...]:
        """Delete permanently exactly the versions registered with this mark; return their ids.

        What a schema of another producer imports by now stays.
        """
        gone = take_out(self._resources, made_by)
        self._stored.clear()
        self._imports.clear()
        return gone

    def _by_id(self, schema_id: int) -> Stored | None:
        stored = self._stored.get(schema_id)
        if stored is None and 0 < schema_id <= _LARGEST_ID:
            stored = self._resources.by_id(schema_id)
            if stored is not None:
                self._stored[schema_id] = stored
        return stored

    def _places(self, schema_id: int) -> list[RegisteredVersion]:
        places = self._resources.places(schema_id)
        # where nothing has the id any more, its payloads can still be decoded
        return sorted(places, key=_by_name) or [RegisteredVersion(subject=no_subject(schema_id), version=1)]

    def _whole(self, schema_id: int, place: RegisteredVersion, stored: Stored) -> RegisteredSchema:
        if stored.type != PROTOBUF:
            raise self._invalid(schema_id, place, f"is of type {stored.type}, not {PROTOBUF}")
        imports = self._all_imports(schema_id, place, stored)
        references = tuple(ImportedFile(path, imports[path]) for path in sorted(imports))
        return RegisteredSchema(schema_id, place.subject, place.version, stored.text, _own_path(imports), references)

    def _all_imports(self, schema_id: int, place: RegisteredVersion, stored: Stored) -> dict[str, str]:
        """Return the text of every file that the schema needs, by path."""
        found: dict[str, str] = {}
        # breadth first: where files import different versions by one path, the one nearest to the schema counts
        waiting = deque(stored.references or ())
        while waiting:
            wanted = waiting.popleft()
            if wanted.name in found:
                continue
            file = self._import(wanted)
            if file is None or file.type != PROTOBUF:
                lack = "is not there" if file is None else f"is of type {file.type}, not {PROTOBUF}"
                name = f"{wanted.name!r} ({wanted.subject!r} version {wanted.version})"
                raise self._invalid(schema_id, place, f"imports {name}, which {lack}")
            found[wanted.name] = file.text
            waiting.extend(file.references or ())
        return found

    def _import(self, wanted: ReferenceTo) -> Stored | None:
        key = (wanted.subject, wanted.version)
        file = self._imports.get(key) or self._resources.version(*key)
        if file is not None:
            self._imports[key] = file
        return file

    def _invalid(self, schema_id: int, place: RegisteredVersion, mistake: str) -> SchemaInvalid:
        return SchemaInvalid(
            f"Schema {schema_id} ({place.subject!r} version {place.version}) of the registry at {self._resources.url} "
            f"{mistake}.",
            "Correct the schema in the registry; the rows wait in quarantine and can be replayed.",
            schema_id=schema_id,
            subject=place.subject,
            reason=mistake,
        )


def _by_name(place: RegisteredVersion) -> tuple[str, int]:
    return (place.subject, place.version)


def _own_path(imports: Collection[str]) -> str:
    """Return a path for the schema itself that no import has, and that is no folder of one."""
    paths = (f"schema{number if number > 1 else ''}.proto" for number in count(1))
    return next(path for path in paths if not any(name == path or name.startswith(f"{path}/") for name in imports))


class Registrar:
    """Registers schemas, each content once.

    Args:
        made_by: the mark on what is registered here; None = no mark.
    """

    def __init__(self, resources: Resources, made_by: str | None) -> None:
        self._resources = resources
        self._made_by = made_by
        self._places: dict[ImportedFile, SchemaLocation] = {}

    def register(self, schema: NewSchema) -> int:
        """Return the id of the schema, registered now if it was not, its imports before it.

        Raises:
            SchemaInvalid: a file imports itself, or the registry cannot keep one of them.
            SchemaIncompatible: the registry says that one of them breaks its subject's compatibility.
        """
        needed = needed_imports(schema)
        return self._register(OwnershipMark(schema.subject, schema.text, self._imports(schema.text, needed, ()))).id

    def _imports(self, text: str, needed: tuple[ImportedFile, ...], above: tuple[str, ...]) -> tuple[ReferenceTo, ...]:
        """Return where the imports of a text are, registered now if they were not, under their paths as subjects."""
        return tuple(self._import(reference, needed, above) for reference in direct_imports(text, needed))

    def _import(self, file: ImportedFile, needed: tuple[ImportedFile, ...], above: tuple[str, ...]) -> ReferenceTo:
        if file.path in above:
            message = f"The import {file.path!r} needs itself: {' -> '.join((*above, file.path))}."
            raise SchemaInvalid(message, "Take one of these imports away.", subject=file.path)
        own = self._imports(file.text, needed, (*above, file.path))
        if file not in self._places:
            self._places[file] = self._register(OwnershipMark(file.path, file.text, own))
        return ReferenceTo(name=file.path, subject=file.path, version=self._places[file].version)

    def _register(self, new: OwnershipMark) -> SchemaLocation:
        found = self._resources.lookup(new)
        if found is not None:
            return found
        self._resources.check(new)
        # the mark comes first, so that no crash leaves an entry of ours without one
        if self._made_by is not None:
            self._resources.add(OwnershipMark(mark_subject(self._made_by), mark_text(new)), AVRO)
        self._resources.add(new)
        found = self._resources.lookup(new)
        if found is None:
            raise SchemaInvalid(
                f"The registry at {self._resources.url} took the schema of {new.subject!r}, and does not find it now.",
                "Look at the subject there.",
                subject=new.subject,
            )
        return found


def take_out(resources: Resources, made_by: str) -> tuple[int, ...]:
    """Delete permanently exactly the versions with this mark; return their ids in order.

    What a schema of another producer refers to by now stays, and so does its mark. A second call is safe, also after a
    crash.
    """
    subject = mark_subject(made_by)
    numbers = reversed(resources.numbers(subject, deleted=True))
    marks = {number: resources.version(subject, number) for number in numbers}
    # a deleted mark cannot be read; it was deleted because its schema is gone
    waiting = {number: read_mark(stored.text) if stored else None for number, stored in marks.items()}
    gone: set[int] = set()
    while waiting:
        before = len(waiting)
        # a file can go only after those that import it
        for number, mark in tuple(waiting.items()):
            found = resources.lookup(mark, deleted=True) if mark else None
            if found and resources.erase(found.subject, found.version) is Deletion.STILL_NEEDED:
                continue
            gone.update([found.id] if found else [])
            resources.erase(subject, number)
            del waiting[number]
        if len(waiting) == before:
            break
    return tuple(sorted(gone))
