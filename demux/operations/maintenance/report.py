"""The results of maintenance, done or planned. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum

from demux.core.errors import DemuxError


class TableKind(Enum):
    """The role of a table."""

    BRONZE = "bronze"
    SILVER = "silver"
    QUARANTINE = "quarantine"
    CONTROL = "control"


class Vacuum(Enum):
    """Whether unneeded files are removed."""

    YES = "yes"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Table:
    """A table to be maintained."""

    kind: TableKind
    path: str
    name: str
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableMaintenance:
    """The result of maintenance of a table.

    Attributes:
        removed: files that no table needed any more; None where they are not counted.
        rows: rows that were retired, or were too old.
    """

    table: Table
    files_before: int = 0
    files_after: int = 0
    bytes_after: int = 0
    removed: int | None = 0
    removed_bytes: int | None = 0
    rows: int = 0
    seconds: float = 0.0
    error: DemuxError | None = None


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A game that has not read files which bronze's newest version no longer has.

    Attributes:
        since: when the first came that it has still to read; None where unknown.
        files: how many stay for it; None where they are not counted.
    """

    game: str
    since: datetime | None
    files: int | None


@dataclass(frozen=True, slots=True)
class MaintenanceSums:
    """The sums over the tables of a kind; `removed` and `removed_bytes` are None where they are not counted."""

    kind: TableKind
    tables: int
    files_before: int
    files_after: int
    bytes_after: int
    removed: int | None
    removed_bytes: int | None
    rows: int


def sums(done: Iterable[TableMaintenance]) -> tuple[MaintenanceSums, ...]:
    """Return the sums by kind, in the order of the kinds, without kinds that have no table."""
    found: dict[TableKind, MaintenanceSums] = {}
    for one in done:
        kind = one.table.kind
        so_far = found.get(kind, MaintenanceSums(kind, 0, 0, 0, 0, 0, 0, 0))
        found[kind] = replace(
            so_far,
            tables=so_far.tables + 1,
            files_before=so_far.files_before + one.files_before,
            files_after=so_far.files_after + one.files_after,
            bytes_after=so_far.bytes_after + one.bytes_after,
            removed=_plus(so_far.removed, one.removed),
            removed_bytes=_plus(so_far.removed_bytes, one.removed_bytes),
            rows=so_far.rows + one.rows,
        )
    return tuple(found[kind] for kind in TableKind if kind in found)


def _plus(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second
