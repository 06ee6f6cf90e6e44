"""The facts that are read from the tables and their logs, without conclusions. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from demux.core.control.games_and_rounds import KnownGame, TaskRecord
from demux.core.registry.protocol import SubjectVersion


@dataclass(frozen=True, slots=True)
class BronzeFile:
    """A file of bronze: how many rows of one game came, and when."""

    at: datetime
    rows: int


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The size of a table, by its log."""

    files: int
    bytes: int
    rows: int | None


@dataclass(frozen=True, slots=True)
class QuarantinedRows:
    """Rows in quarantine; `game` is None where a record never became a bronze row."""

    cause: str
    game: str | None
    rows: int


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is read of a root.

    Attributes:
        records: how tasks ended, in order of time; the newest ones where there are very many.
        bronze: by game, the files that came, in order of time; None where bronze could not be read.
        silver: by game, its table; without those that are not there or cannot be read.
        dropped: rows dropped from there, by game; None where that could not be read.
        retired: rows that were in bronze and taken out of it, by game; None where that could not be read.
        uses: the versions of subjects that have an id, by registry and schema id.
    """

    games: Mapping[str, KnownGame] = field(default_factory=dict)
    records: Sequence[TaskRecord] = ()
    bronze: Mapping[str, Sequence[BronzeFile]] | None = field(default_factory=dict)
    silver: Mapping[str, TableFacts] = field(default_factory=dict)
    unreadable: frozenset[str] = frozenset()
    quarantine: Sequence[QuarantinedRows] | None = ()
    dropped: Mapping[str, int] | None = field(default_factory=dict)
    retired: Mapping[str, int] | None = field(default_factory=dict)
    uses: Mapping[tuple[str, int], Sequence[SubjectVersion]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
