"""A schema registry in memory, for tests and for schemas that live nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from demux.core.errors import RegistryUnavailable, SchemaInvalid, SchemaUnknown
from demux.core.registry.imports import needed_imports, schema_mistake
from demux.core.registry.protocol import ImportedFile, NewSchema, RegisteredSchema, no_guids


class MemoryRegistry:
    """A registry that ends with the process.

    Args:
        made_by: the mark on what is registered through this object.

    Attributes:
        reachable: set it to False and every call raises `RegistryUnavailable`.
    """

    def __init__(self, schemas: Iterable[RegisteredSchema] = (), made_by: str | None = None) -> None:
        self.reachable = True
        self._schemas = {schema.schema_id: schema for schema in schemas}
        self._marks: dict[int, str | None] = {}
        self._next_id = max(self._schemas, default=0) + 1
        self._made_by = made_by

    def schema(self, schema_id: int) -> RegisteredSchema:
        """Return the schema of this id."""
        self._check_reachable()
        if schema_id not in self._schemas:
            raise SchemaUnknown(
                f"The registry has no schema {schema_id}.",
                "Register the schema, then replay the quarantine.",
                schema_id=schema_id,
            )
        return self._schemas[schema_id]

    def schema_of_guid(self, guid: str) -> RegisteredSchema:
        """Raise `SchemaUnknown`: nothing here has a GUID."""
        self._check_reachable()
        raise no_guids("in memory", guid)

    def compatibility(self, subject: str) -> str | None:
        """Return None: nothing is checked here."""
        self._check_reachable()
        return None

    def versions(self, subject: str) -> tuple[RegisteredSchema, ...]:
        """Return the subject's schemas in order of version."""
        self._check_reachable()
        found = (schema for schema in self._schemas.values() if schema.subject == subject)
        return tuple(sorted(found, key=lambda schema: schema.version))

    def subjects(self) -> tuple[str, ...]:
        """Return all subjects in alphabetical order."""
        self._check_reachable()
        return tuple(sorted({schema.subject for schema in self._schemas.values()}))

    def register(
        self, subject: str, text: str, path: str, references: tuple[ImportedFile, ...], message: str | None = None
    ) -> int:
        """Return the id of this content under this subject, registered now if it was not."""
        return self.register_all([NewSchema(subject, text, path, references, message)])[0]

    def register_all(self, schemas: Sequence[NewSchema]) -> tuple[int, ...]:
        """Return one id per schema, in the same order."""
        self._check_reachable()
        for schema in schemas:
            if mistake := schema_mistake(schema):
                raise SchemaInvalid(
                    f"The schema of {schema.subject!r} cannot be kept: {mistake}.", "Change it.", subject=schema.subject
                )
        return tuple(self._register(schema) for schema in schemas)

    def remove(self, *, made_by: str) -> tuple[int, ...]:
        """Return the ids taken out: exactly those registered with this mark."""
        self._check_reachable()
        gone = tuple(sorted(schema_id for schema_id, mark in self._marks.items() if mark == made_by))
        for schema_id in gone:
            del self._schemas[schema_id], self._marks[schema_id]
        return gone

    def _register(self, new: NewSchema) -> int:
        references = needed_imports(new)
        versions = self.versions(new.subject)
        for known in versions:
            if (known.text, known.references, known.message) == (new.text, references, new.message):
                return known.schema_id
        schema_id, self._next_id = self._next_id, self._next_id + 1
        version = versions[-1].version + 1 if versions else 1
        self._schemas[schema_id] = RegisteredSchema(
            schema_id, new.subject, version, new.text, new.path, references, new.message
        )
        self._marks[schema_id] = self._made_by
        return schema_id

    def _check_reachable(self) -> None:
        if not self.reachable:
            raise RegistryUnavailable("The registry does not answer.", "Try again later.")
