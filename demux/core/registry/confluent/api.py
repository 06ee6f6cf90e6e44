"""The resources of a Confluent-compatible registry: one method per question, "there is none" as None."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from demux.core.errors import SchemaIncompatible, SchemaInvalid
from demux.core.http.failures import HttpRejected
from demux.core.registry.confluent.http_client import Rest

_PREFIX = "demux-marks."


class JsonShape(BaseModel):
    """JSON of the registry's API; fields that we do not read may be there."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class ReferenceTo(JsonShape):
    """A schema that another one imports as `name`."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class OwnershipMark:
    """The identity of a schema in its subject."""

    subject: str
    text: str
    references: tuple[ReferenceTo, ...] = ()


_MARK = TypeAdapter(OwnershipMark)


def mark_subject(made_by: str) -> str:
    """Return the subject that the marks of this maker are kept under."""
    return f"{_PREFIX}{made_by}"


def is_mark_subject(subject: str) -> bool:
    """Return whether the subject holds marks, and no schemas of payloads."""
    return subject.startswith(_PREFIX)


def mark_text(mark: OwnershipMark) -> str:
    """Return the schema that says so; `read_mark` is its inverse."""
    doc = _MARK.dump_json(mark).decode()
    field = {"name": f"m_{hashlib.sha256(doc.encode()).hexdigest()}", "type": "null", "default": None}
    return json.dumps({"type": "record", "name": "DemuxMark", "fields": [field], "doc": doc})


def read_mark(text: str) -> OwnershipMark | None:
    """Return the mark of a schema's text; None for a text that is none."""
    try:
        return _MARK.validate_json(json.loads(text)["doc"])
    except (ValidationError, ValueError, KeyError, TypeError):
        return None


T = TypeVar("T")

PROTOBUF, AVRO = "PROTOBUF", "AVRO"
_STILL_NEEDED = 42206


class RegisteredVersion(JsonShape):
    """A version of a subject."""

    subject: str
    version: int


class Stored(JsonShape):
    """A schema as the registry keeps it; `id`, `subject` and `version` only where it was asked for by subject."""

    text: str = Field(alias="schema")
    type: str = Field(default="AVRO", alias="schemaType")
    references: tuple[ReferenceTo, ...] | None = Field(default=None, strict=False)
    id: int | None = None
    subject: str | None = None
    version: int | None = None


class SchemaLocation(JsonShape):
    """The place of a schema that was looked up by its text."""

    id: int
    subject: str
    version: int


class CompatibilityVerdict(JsonShape):
    """Whether a new version would be compatible, and why not."""

    is_compatible: bool
    messages: list[str] | None = None


class _CompatibilityLevel(JsonShape):
    level: str = Field(alias="compatibilityLevel")


class _Numbered(JsonShape):
    id: int


STORED = TypeAdapter(Stored)
FOUND = TypeAdapter(SchemaLocation)
VERDICT = TypeAdapter(CompatibilityVerdict)
LEVEL = TypeAdapter(_CompatibilityLevel)
REGISTERED = TypeAdapter(_Numbered)
PLACES = TypeAdapter(list[RegisteredVersion])
IDS = TypeAdapter(list[_Numbered])
NUMBERS = TypeAdapter(list[int])
NAMES = TypeAdapter(list[str])
ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)


class Deletion(Enum):
    """The result of deleting a version."""

    GONE = "gone"
    STILL_NEEDED = "another schema refers to it"


class Resources:
    """The resources of the registry, by its REST API.

    Every method raises `RegistryRefused` and `RegistryUnavailable`.
    """

    def __init__(self, rest: Rest) -> None:
        self._rest = rest
        self.url = rest.url

    def by_id(self, schema_id: int) -> Stored | None:
        """Return the schema of this id."""
        return self._asked(f"schemas/ids/{schema_id}", STORED)

    def places(self, schema_id: int) -> list[RegisteredVersion]:
        """Return the versions that have this id; those that were deleted where there is no other."""
        for query in ({}, {"deleted": "true"}):
            try:
                places = self._rest.ask("GET", f"schemas/ids/{schema_id}/versions", PLACES, query)
            except HttpRejected:
                # not every registry knows the question, and the schema can do without the answer
                continue
            if places:
                return places
        return []

    def id_of_guid(self, guid: str) -> int | None:
        """Return the id of the schema with this GUID."""
        ids = self._asked(f"schemas/guids/{_quoted(guid)}/ids", IDS)
        return ids[0].id if ids else None

    def subjects(self) -> list[str]:
        """Return all subjects."""
        try:
            return self._rest.ask("GET", "subjects", NAMES)
        except HttpRejected as rejected:
            raise self._rest.unexpected(rejected) from None

    def numbers(self, subject: str, *, deleted: bool = False) -> list[int]:
        """Return the subject's versions, in order, deleted ones too if so wished; none for an unknown subject."""
        numbers = self._asked(f"subjects/{_quoted(subject)}/versions", NUMBERS, _deleted(deleted))
        return sorted(numbers or [])

    def version(self, subject: str, version: int) -> Stored | None:
        """Return a version of a subject."""
        return self._asked(f"subjects/{_quoted(subject)}/versions/{version}", STORED)

    def level(self, subject: str) -> str | None:
        """Return the subject's compatibility, or that of all subjects where it has none of its own."""
        own = self._asked(f"config/{_quoted(subject)}", LEVEL) or self._asked("config", LEVEL)
        return own.level if own else None

    def lookup(self, schema: OwnershipMark, *, deleted: bool = False) -> SchemaLocation | None:
        """Return the version of the subject that has this content; deleted ones too if so wished."""
        path = f"subjects/{_quoted(schema.subject)}"
        try:
            return self._rest.ask("POST", path, FOUND, query=_deleted(deleted), body=_body(schema))
        except HttpRejected as rejected:
            # a text that the registry cannot read is none that it has
            if _is_unknown(rejected) or rejected.status == 422:
                return None
            raise self._rest.unexpected(rejected) from None

    def check(self, new: OwnershipMark) -> None:
        """Check that the registry accepts this as the subject's next version.

        Raises:
            SchemaIncompatible: it says what is against it.
        """
        path = f"compatibility/subjects/{_quoted(new.subject)}/versions"
        try:
            verdict = self._rest.ask("POST", path, VERDICT, query={"verbose": "true"}, body=_body(new))
        except HttpRejected:
            # a new subject, an unknown question, or (Apicurio) imports in the schema: registering asks once more
            return
        # apicurio says no without a reason, at level NONE too; it gives the reason, if there is one, when registering
        if not verdict.is_compatible and verdict.messages:
            raise self._incompatible(new.subject, "; ".join(verdict.messages))

    def add(self, new: OwnershipMark, kind: str = PROTOBUF) -> None:
        """Make this content a version of its subject, if it is none.

        Raises:
            SchemaIncompatible: the registry says that it breaks the subject's compatibility.
            SchemaInvalid: the registry cannot keep it.
        """
        path = f"subjects/{_quoted(new.subject)}/versions"
        try:
            self._rest.ask("POST", path, REGISTERED, body=_body(new, kind))
        except HttpRejected as rejected:
            if rejected.status == 409:
                raise self._incompatible(new.subject, rejected.message) from None
            if rejected.status == 422:
                raise SchemaInvalid(
                    f"The registry at {self.url} refuses the schema of {new.subject!r}: {rejected.message}.",
                    "Correct the schema.",
                    subject=new.subject,
                ) from None
            raise self._rest.unexpected(rejected) from None

    def erase(self, subject: str, version: int) -> Deletion:
        """Delete a version permanently; a second call is safe."""
        path = f"subjects/{_quoted(subject)}/versions/{version}"
        # a version must be deleted before it can be deleted for good
        for query in (None, {"permanent": "true"}):
            if self._delete(path, query) is Deletion.STILL_NEEDED:
                return Deletion.STILL_NEEDED
        return Deletion.GONE

    def _delete(self, path: str, query: Mapping[str, str] | None) -> Deletion:
        try:
            self._rest.ask("DELETE", path, ANYTHING, query=query)
        except HttpRejected as rejected:
            if rejected.code == _STILL_NEEDED:
                return Deletion.STILL_NEEDED
            if not _is_unknown(rejected):
                raise self._rest.unexpected(rejected) from None
        return Deletion.GONE

    def _asked(self, path: str, shape: TypeAdapter[T], query: Mapping[str, str] | None = None) -> T | None:
        try:
            return self._rest.ask("GET", path, shape, query)
        except HttpRejected as rejected:
            if rejected.status != 404:
                raise self._rest.unexpected(rejected) from None
            has_code = _is_unknown(rejected)
        if not has_code:
            # such a 404 may come from anything that is no registry
            self.subjects()
        return None

    def _incompatible(self, subject: str, reason: str) -> SchemaIncompatible:
        return SchemaIncompatible(
            f"The registry at {self.url} refuses the new version of {subject!r} as incompatible: {reason}.",
            "Change the schema so that it suits the versions before, or relax the subject's compatibility there.",
            subject=subject,
            reason=reason,
        )


def _body(schema: OwnershipMark, kind: str = PROTOBUF) -> dict[str, object]:
    references = [reference.model_dump() for reference in schema.references]
    return {"schema": schema.text, "schemaType": kind, "references": references}


def _deleted(wished: bool) -> dict[str, str] | None:
    return {"deleted": "true"} if wished else None


def _quoted(segment: str) -> str:
    return quote(segment, safe="")


def _is_unknown(rejected: HttpRejected) -> bool:
    """Return whether the registry itself says that there is no such id, subject or version."""
    return rejected.status == 404 and isinstance(rejected.code, int) and 40400 <= rejected.code < 40500
