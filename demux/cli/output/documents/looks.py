"""What `--json` prints of a root: status, rows of a table, the ledger."""

from __future__ import annotations

from typing import Any

# pydantic takes none of `typing` before Python 3.12
from typing_extensions import TypedDict


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


class LedgerJson(TypedDict):
    """Where every record is."""

    balances: bool
    source: SourceAccountJson | None
    accounts: list[AccountJson]
    differences: list[DifferenceJson]
    holes: list[HoleJson]
    notes: list[str]


class SourceAccountJson(TypedDict):
    """Records of the source; `source` is null where it cannot be counted."""

    bronze: int
    quarantined: int
    source: int | None
    dropped: int
    retired: int
    forgotten: int


class AccountJson(TypedDict):
    """Rows of a game; `batch` is null without `--rounds`."""

    game: str
    batch: int | None
    bronze: int
    silver: int
    quarantined: int
    waiting: int
    missing: int
    surplus: int
    dropped: int
    retired: int
    balances: bool


class DifferenceJson(TypedDict):
    """What is wrong with so many rows, and the first 20 of them."""

    kind: str
    game: str | None
    rows: int
    first_batch: int | None
    last_batch: int | None
    examples: list[ExampleJson]
    meaning: str


class ExampleJson(TypedDict):
    """A record; `owner` is the game whose bronze has it."""

    record_id: str
    batch: int | None
    owner: str | None


class HoleJson(TypedDict):
    """Offsets of a partition that are not there; each range is its first offset, and the one behind its last."""

    log: str
    partition: int
    offsets: int
    ranges: list[tuple[int, int]]
