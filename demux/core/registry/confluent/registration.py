"""Registering with a Confluent-compatible registry, imports first, and taking out what was registered so."""

from __future__ import annotations

from demux.core.errors import SchemaInvalid
from demux.core.registry.confluent.api import AVRO, Deletion, Resources, SchemaLocation
from demux.core.registry.confluent.ownership_marks import OwnershipMark, ReferenceTo, mark_subject, mark_text, read_mark
from demux.core.registry.imports import direct_imports, only_needed
from demux.core.registry.protocol import ImportedFile, NewSchema


class Registrar:
    """Registers schemas, each content once.

    Args:
        resources: the registry.
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
        needed = only_needed(schema)
        return self._registered(OwnershipMark(schema.subject, schema.text, self._imports(schema.text, needed, ()))).id

    def _imports(self, text: str, needed: tuple[ImportedFile, ...], above: tuple[str, ...]) -> tuple[ReferenceTo, ...]:
        """Return where the imports of a text are, registered now if they were not, under their paths as subjects."""
        return tuple(self._import(reference, needed, above) for reference in direct_imports(text, needed))

    def _import(self, file: ImportedFile, needed: tuple[ImportedFile, ...], above: tuple[str, ...]) -> ReferenceTo:
        if file.path in above:
            cause = f"The import {file.path!r} needs itself: {' -> '.join((*above, file.path))}."
            raise SchemaInvalid(cause, "Take one of these imports away.", subject=file.path)
        own = self._imports(file.text, needed, (*above, file.path))
        if file not in self._places:
            self._places[file] = self._registered(OwnershipMark(file.path, file.text, own))
        return ReferenceTo(name=file.path, subject=file.path, version=self._places[file].version)

    def _registered(self, new: OwnershipMark) -> SchemaLocation:
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
    """Return the ids taken out for good, in order: exactly the versions with this mark.

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
