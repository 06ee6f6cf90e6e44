"""The protocol of schema registries: schemas by id, the versions of a subject."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from demux.core.errors import SchemaUnknown


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """A `.proto` file that another one imports.

    Attributes:
        path: the import path, as it is between the quotes of `import "…"`.
        text: the file's text, or its serialized form (`demux.core.protobuf.schema.descriptor_pool`).
    """

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class NewSchema:
    """A schema to register.

    Attributes:
        references: every file it needs, those of its imports included; `google/protobuf/*` may be left out.
        message: the full name of the message that payloads hold; None = the first message of the file.
    """

    subject: str
    text: str
    path: str
    references: tuple[ImportedFile, ...] = ()
    message: str | None = None


@dataclass(frozen=True, slots=True)
class SubjectVersion:
    """A version of a subject.

    Attributes:
        version: unique in the subject, at least 1, growing.
        message: the full name of the message that payloads hold; None = the first message of the file.
    """

    subject: str
    version: int
    message: str | None = None


def no_subject(schema_id: int) -> str:
    """Return the placeholder of a subject where the registry names none for the id; all were deleted, say."""
    return f"schema-{schema_id}"


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema with the id that payloads name it by.

    Registries give equal texts one id, so an id may belong to several subjects: `subject_choice` decides
    which of them a game's record means.

    Attributes:
        schema_id: unique in the registry, at least 1, never given to another text.
        text: the `.proto` text, or its serialized form where that was registered (`serialized_schema`).
        references: every file it needs, those of its imports included, in order of path.
        message: the full name of the message that payloads hold; None = the first message of the file.
        others: the other versions of subjects that have the same id; only of a schema that was asked for by id.
    """

    schema_id: int
    subject: str
    version: int
    text: str
    path: str
    references: tuple[ImportedFile, ...] = ()
    message: str | None = None
    others: tuple[SubjectVersion, ...] = ()

    @property
    def use(self) -> SubjectVersion:
        """The version of the subject."""
        return SubjectVersion(self.subject, self.version, self.message)

    @property
    def uses(self) -> tuple[SubjectVersion, ...]:
        """The versions of subjects that have the id, as far as they were asked for; none where no subject is named."""
        if self.subject == no_subject(self.schema_id):
            return ()
        return (self.use, *self.others)

    def used_as(self, use: SubjectVersion) -> RegisteredSchema:
        """Return the schema as this version of a subject."""
        return replace(self, subject=use.subject, version=use.version, message=use.message, others=())


class SchemaRegistry(Protocol):
    """Schemas by id and by subject."""

    def schema(self, schema_id: int) -> RegisteredSchema:
        """Return the schema of this id, with every version of a subject that has it now.

        Raises:
            SchemaUnknown: the registry answered, and has no such id.
            SchemaInvalid: the registry has the id, but what it says about it cannot be used.
            RegistryUnavailable: there was no usable answer.
            RegistryRefused: the registry does not let us in; so of every other method.
        """
        ...

    def schema_of_guid(self, guid: str) -> RegisteredSchema:
        """Return the schema of this globally unique id, lower-case with hyphens.

        Raises:
            SchemaUnknown: the registry has no such GUID, or none at all.
            SchemaInvalid: what the registry says about it cannot be used.
            RegistryUnavailable: there was no usable answer.
        """
        ...

    def compatibility(self, subject: str) -> str | None:
        """Return the compatibility mode of the subject, `NONE` … `FULL_TRANSITIVE`; None: it has none.

        Raises:
            RegistryUnavailable: there was no usable answer.
        """
        ...

    def versions(self, subject: str) -> tuple[RegisteredSchema, ...]:
        """Return the subject's schemas in order of version; none for an unknown subject.

        Raises:
            SchemaInvalid: one of them cannot be used.
            RegistryUnavailable: there was no usable answer.
        """
        ...

    def subjects(self) -> tuple[str, ...]:
        """Return all subjects in alphabetical order.

        Raises:
            SchemaInvalid: the registry's own list cannot be used.
            RegistryUnavailable: there was no usable answer.
        """
        ...

    def register(
        self, subject: str, text: str, path: str, references: tuple[ImportedFile, ...], message: str | None = None
    ) -> int:
        """Return the id of this content under this subject, registered now if it was not; a second call is safe.

        Raises:
            SchemaInvalid: the subject, the path or the text cannot be kept.
            SchemaIncompatible: the registry holds the subject to a compatibility that this content breaks.
            RegistryUnavailable: the registry cannot be written now.
        """
        ...

    def register_all(self, schemas: Sequence[NewSchema]) -> tuple[int, ...]:
        """Return one id per schema, in the same order, as `register` would; faster for many."""
        ...


class ErasableRegistry(SchemaRegistry, Protocol):
    """A registry that can remove its own entries."""

    def remove(self, *, made_by: str) -> tuple[int, ...]:
        """Remove exactly the entries registered with this mark; return their ids, which are not used again."""
        ...


def no_guids(where: str, guid: str) -> SchemaUnknown:
    """Return the error of a registry that gives no GUIDs."""
    return SchemaUnknown(
        f"The registry {where} gives no GUIDs, so it has no schema {guid}.",
        "Name under `registries` the registry that the producer uses, then replay the quarantine.",
        guid=guid,
    )
