"""What `--json` prints of schemas."""

from __future__ import annotations

# pydantic takes none of `typing` before Python 3.12
from typing_extensions import NotRequired, TypedDict

from demux.core.protobuf.compatibility.changes import ReadEffect
from demux.core.registry.protocol import ImportedFile, SubjectVersion


class SchemaJson(TypedDict):
    """A version of a subject."""

    schema_id: int
    subject: str
    version: int


class SchemasJson(TypedDict):
    """The schemas, and what cannot be used."""

    schemas: list[ListedSchemaJson]
    problems: list[str]


class ListedSchemaJson(SchemaJson):
    """`message` is null for the first one of the file; `compatibility` where the registry knows none."""

    registry: str
    message: str | None
    path: str
    compatibility: str | None


class SchemaTextJson(TypedDict):
    """A schema's text, the subjects that have it, and the files that it imports from the registry."""

    schema_id: int
    subjects: list[SubjectVersion]
    path: str
    text: str
    references: list[ImportedFile]


class SilverColumnsJson(TypedDict):
    """The silver columns that a schema makes (`--columns`)."""

    columns: list[SilverColumnJson]


class SilverColumnJson(TypedDict):
    """A column, its type in SQL, and the number of its field; null where it has none."""

    name: str
    type: str
    field: int | None


class ComparisonJson(TypedDict):
    """What differs; `modes` are the compatibility modes that allow it. The last three name silver columns."""

    breaks: bool
    modes: list[str]
    changes: list[FieldComparisonJson]
    added: list[str]
    widened: list[str]
    conflicts: list[str]


class FieldComparisonJson(TypedDict):
    """A field that differs."""

    path: str
    number: int
    kind: str
    old: str | None
    new: str | None
    wire: str
    backward: ReadEffect
    forward: ReadEffect
    refused: list[str]
    silver: EffectJson


class EffectJson(TypedDict):
    """What it does to the silver table."""

    effect: str
    sentence: str


class DiffJson(ComparisonJson):
    """Two schemas."""

    old: SchemaJson
    new: SchemaJson


class CheckJson(TypedDict):
    """What a file does to each subject that holds a message of it."""

    file: str
    breaks: bool
    subjects: list[CheckedSubjectJson]
    problems: list[str]


class CheckedSubjectJson(SchemaJson):
    """The subject's latest version; where it cannot be compared, `problem` says why and the comparison is missing."""

    registry: str
    message: str
    compatibility: str | None
    refused: bool
    problem: str | None
    breaks: bool
    modes: NotRequired[list[str]]
    changes: NotRequired[list[FieldComparisonJson]]
    added: NotRequired[list[str]]
    widened: NotRequired[list[str]]
    conflicts: NotRequired[list[str]]
