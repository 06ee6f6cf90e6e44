"""What `--json` prints of a root: status, rows of a table, the ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# pydantic takes none of `typing` before Python 3.12
from typing_extensions import TypedDict

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
    """What is wrong with so many rows, and the first 20 of them."""

    meaning: str


class LedgerJson(TypedDict):
    """Where every record is."""

    balances: bool
    source: SourceAccount | None
    accounts: list[AccountJson]
    differences: list[DifferenceJson]
    holes: list[OffsetHole]
    notes: list[str]
