"""JSON documents of quarantine, and of work that a command does or would do."""

from __future__ import annotations

# pydantic takes none of `typing` before Python 3.12
from typing_extensions import NotRequired, TypedDict

from demux.cli.output.documents.plans import ErrorJson
from demux.core.reports import IngestReport
from demux.operations.erasure.results import SearchResult
from demux.operations.maintenance.report import MaintenanceSums
from demux.operations.quarantine.summary import Droppable


class QuarantineJson(TypedDict):
    """`rows` in all, and the groups with most of them."""

    rows: int
    groups: list[GroupJson]
    more_groups: int


class GroupJson(TypedDict):
    """Rows of one cause, stage, game and schema; the newest one is decoded as far as it goes."""

    cause: str
    stage: str
    game: str | None
    schema_id: int | None
    schema_guid: str | None
    several_schemas: bool
    rows: int
    first: str | None
    last: str | None
    sentence: str
    newest: NewestJson


class ContentJson(TypedDict):
    """The bytes of a record, decoded; `stops` is null where they are read to the end."""

    bytes: int | None
    message: str | None
    fields: list[DecodedFieldJson]
    more_fields: int
    stops: StopJson | None


class NewestJson(ContentJson):
    """The newest record of a group."""

    record_id: str


class DecodedFieldJson(TypedDict):
    """A field has a value, or fields of its own."""

    number: int
    name: str | None
    value: NotRequired[str]
    fields: NotRequired[list[DecodedFieldJson]]


class StopJson(TypedDict):
    """Where decoding stops, and why."""

    byte: int
    reason: str


class RecordsJson(TypedDict):
    """`rows` in all, and the newest records."""

    rows: int
    records: list[RecordJson]


class RecordJson(ContentJson):
    """A record of quarantine; `key`, `hex` and the values of headers are hexadecimal."""

    record_id: str
    cause: str
    stage: str
    game: str | None
    schema_id: int | None
    schema_guid: str | None
    message_indexes: str | None
    sentence: str
    quarantined_at: str | None
    query_id: str | None
    batch_id: int | None
    origin: str | None
    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: str | None
    key: str | None
    headers: list[HeaderJson]
    hex: str | None


class HeaderJson(TypedDict):
    """A header of a record."""

    key: str | None
    value: str | None


class DropJson(TypedDict):
    """The rows that `quarantine drop --dry-run` finds, quarantined before then."""

    before: str
    rows: int
    groups: list[Droppable]


class BackfillsJson(TypedDict):
    """The newest backfills of a root (`--status`)."""

    backfills: list[BackfillJson]


class BackfillJson(TypedDict):
    """A backfill; no games: all. `first` and `last` are days. `seconds_left` is null where it is not known."""

    id: str
    begun: str
    games: list[str]
    first: str | None
    last: str | None
    days: int
    days_done: int
    days_failed: int
    rows: int
    rows_done: int
    seconds_left: float | None


class BackfillEstimateJson(TypedDict):
    """How much a backfill has to do (`--dry-run`); `undated` are rows that say of no day, by game."""

    games: list[str]
    days: int
    rows: int
    seconds: float | None
    undated: dict[str, int]


class ForgetJson(TypedDict):
    """The records that `forget --dry-run` finds."""

    games: list[SearchResult]


class MaintenanceJson(TypedDict):
    """The work on the tables, done or with `--dry-run` only planned."""

    dry_run: bool
    tables: list[MaintenanceSums]
    held_back: list[HeldBackJson]
    failed: list[FailedTableJson]


class HeldBackJson(TypedDict):
    """A game that has not read bronze since then, so that old files stay."""

    game: str
    since: str | None
    files: int | None


class FailedTableJson(ErrorJson):
    """A table whose maintenance failed."""

    table: str


class RoundJson(TypedDict):
    """A round, on a line of its own; `complete` is false where it was interrupted."""

    bronze: IngestReport
    games: list[DecodedGameJson]
    waiting: list[str]
    complete: bool
    seconds: float


class DecodedGameJson(TypedDict):
    """A game, on a line of its own for `deserialize`; of one that failed, `error` says why and no rows are counted.

    `fresh_p50` and `fresh_p95` are ages of the decoded rows at their commit, in seconds; null without such rows.
    """

    game: str
    rows_in: int
    rows_silver: int
    rows_quarantined: int
    rows_waiting: int
    seconds: float
    fresh_p50: float | None
    fresh_p95: float | None
    error: ErrorJson | None
