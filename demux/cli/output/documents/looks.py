"""JSON documents of a root and its schemas: status, rows of a table, the ledger, schemas and their changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from typing_extensions import NotRequired, TypedDict

from demux.core.protobuf.compatibility.changes import ReadEffect
from demux.core.registry.protocol import ImportedFile, SubjectVersion
from demux.operations.reconcile.balance import Account, LedgerDifference, OffsetHole, SourceAccount


class StatusJson(TypedDict):
    """`columns` names the values of each game; `format` grows when a name or a meaning changes. Times: ms of 1970."""

    format: int
    root: str
    at: int
    lag_rows: int | None
    rate: float | None
    states: dict[str, int]
    columns: list[str]
    games: list[list[Any]]
    failures: list[list[str]]
    rounds: list[list[float | None]]
    clusters: list[list[Any]]
    problems: list[ProblemJson]
    more_problems: int
    causes: list[list[Any]]
    notes: list[str]


class ProblemJson(TypedDict):
    """`count` games have it; `games` are the first ones."""

    condition: str
    sentence: str
    games: list[str]
    count: int


class ShowJson(TypedDict):
    """`count` rows in all. Bytes are hexadecimal; times ISO 8601; decimals, and numbers that JSON lacks, texts."""

    game: str
    path: str
    count: int
    columns: list[str]
    rows: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class AccountJson(Account):
    """Rows of a game; `batch` is null without `--rounds`."""

    # without `field`, the property of `Account` would be its default
    balances: bool = field(kw_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceJson(LedgerDifference):
    """A fault of some rows, and the first 20 of them."""

    meaning: str


class LedgerJson(TypedDict):
    """Where every record is."""

    balances: bool
    source: SourceAccount | None
    accounts: list[AccountJson]
    differences: list[DifferenceJson]
    holes: list[OffsetHole]
    notes: list[str]


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
    """The differences; `modes` are the compatibility modes that allow them. The last three name silver columns."""

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
    """The effect on the silver table."""

    effect: str
    sentence: str


class DiffJson(ComparisonJson):
    """Two schemas."""

    old: SchemaJson
    new: SchemaJson


class CheckJson(TypedDict):
    """The effect of a file on each subject that holds one of its messages."""

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
