"""Rows of quarantine counted by cause, game and schema, and the newest of them found, batch by batch. Pure.

Memory does not depend on how many rows there are: so many groups are kept apart, and those after them are put together.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.compute as pc

from demux.core.causes import Stage
from demux.operations.quarantine.filter import QuarantineFilter

MOST_GROUPS = 10_000
_OF_GAMES = ("game_name", "schema_id", "schema_guid")
_OTHERS = ("stage", "cause", "quarantined_at")
_KEYS = ["stage", "cause", *_OF_GAMES]
# what a look at all rows needs; a look for one record also needs its id
COLUMNS = (*_KEYS, "quarantined_at")
_LONG_AGO_US = -(2**62)
_BEFORE_ALL = datetime.min.replace(tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True, order=True)
class RowLocation:
    """Where a row is: in which file of the table, and which row of it."""

    file: int
    row: int


@dataclass(frozen=True, slots=True)
class GroupKey:
    """The values that the rows of a group share.

    Attributes:
        game: the exact name; None at stage bronze, where a name that was refused is no game.
        schema_id: the id that they name; None for none, and where a GUID decides.
        others: whether they name several schemas, which were too many to be kept apart.
    """

    stage: str
    cause: str
    game: str | None
    schema_id: int | None = None
    guid: str | None = None
    others: bool = False


@dataclass(frozen=True, slots=True)
class QuarantineGroup:
    """Rows with the same key.

    Attributes:
        first: when the first one was quarantined (UTC); None where no row says so.
    """

    key: GroupKey
    rows: int
    first: datetime | None
    last: datetime | None
    newest: RowLocation


class Grouping:
    """Counts rows as they come."""

    def __init__(self, choice: QuarantineFilter, most: int = MOST_GROUPS) -> None:
        """Prepare to count the selected rows, in about `most` groups."""
        self._choice = choice
        self._most = most
        self._groups: dict[GroupKey, QuarantineGroup] = {}

    def add(self, batch: pa.RecordBatch, begin: RowLocation) -> None:
        """Count a batch with the columns of `COLUMNS`, whose first row is at this place."""
        is_silver = pc.equal(batch.column("stage"), Stage.SILVER.value)
        # each refused name would be a group of its own
        of_games = [pc.if_else(is_silver, batch.column(name), None) for name in _OF_GAMES]
        rows = pa.array(range(begin.row, begin.row + len(batch)), pa.int64())
        times = pc.fill_null(batch.column("quarantined_at"), pa.scalar(_LONG_AGO_US, pa.timestamp("us", tz="UTC")))
        columns = [*(batch.column(name) for name in _OTHERS), *of_games, rows, times]
        found = pa.table(columns, names=[*_OTHERS, *_OF_GAMES, "row", "time"]).filter(self._choice.among(batch))
        counted, several = _counted(found, _KEYS), False
        if len(counted) > self._most:
            # too many to list one by one
            counted, several = _counted(found, _KEYS[:3]), True
        for row in counted.to_pylist():
            key = _key(row["stage"], row["cause"], row["game_name"], row.get("schema_id"), row.get("schema_guid"))
            newest = RowLocation(begin.file, row["row_last"])
            first, last = row["quarantined_at_min"], row["quarantined_at_max"]
            others = several and key.stage == Stage.SILVER.value
            self._put(QuarantineGroup(replace(key, others=others), row["count_all"], first, last, newest))

    def _put(self, group: QuarantineGroup) -> None:
        key = group.key
        is_silver = key.stage == Stage.SILVER.value
        if is_silver and key not in self._groups and len(self._groups) >= self._most:
            key = replace(key, schema_id=None, guid=None, others=True)
        known = self._groups.get(key)
        self._groups[key] = replace(group, key=key) if known is None else _merged(known, group)

    @property
    def groups(self) -> tuple[QuarantineGroup, ...]:
        """The groups, those with most rows first."""
        return tuple(sorted(self._groups.values(), key=lambda one: (-one.rows, _order(one.key))))


class NewestRows:
    """Finds the newest rows as they come."""

    def __init__(self, choice: QuarantineFilter, most: int) -> None:
        """Prepare to find `most` of the selected rows."""
        self._choice = choice
        self._most = most
        self._heap: list[tuple[datetime, int, int]] = []
        self.rows = 0

    def add(self, batch: pa.RecordBatch, begin: RowLocation) -> None:
        """Look at a batch with `quarantined_at` and what the choice names, whose first row is at this place."""
        chosen = self._choice.among(batch)
        self.rows += chosen.true_count
        positions = pc.indices_nonzero(chosen)
        times = batch.column("quarantined_at").take(positions)
        order = pc.sort_indices(pa.table({"at": times}), sort_keys=[("at", "descending")])[: self._most]
        for at in order.to_pylist():
            # of rows of the same time the first ones
            found = (times[at].as_py() or _BEFORE_ALL, -begin.file, -(begin.row + positions[at].as_py()))
            if len(self._heap) < self._most:
                heapq.heappush(self._heap, found)
            else:
                heapq.heappushpop(self._heap, found)

    @property
    def places(self) -> tuple[RowLocation, ...]:
        """Where they are, the newest first."""
        return tuple(RowLocation(-file, -row) for _, file, row in sorted(self._heap, reverse=True))


def total(counted: Iterable[QuarantineGroup | Droppable]) -> int:
    """Return how many rows these are."""
    return sum(one.rows for one in counted)


def _counted(rows: pa.Table, keys: list[str]) -> pa.Table:
    """Return the rows counted by keys; in order of time the last row of a group is its newest."""
    ordered = rows.sort_by([("time", "ascending"), ("row", "ascending")])
    return pa.TableGroupBy(ordered, keys, use_threads=False).aggregate(
        [([], "count_all"), ("quarantined_at", "min"), ("quarantined_at", "max"), ("row", "last")]
    )


def _key(stage: str, cause: str, game: str | None, schema_id: int | None, guid: str | None) -> GroupKey:
    return GroupKey(stage, cause, game, None if guid is not None else schema_id, guid)


def _merged(known: QuarantineGroup, more: QuarantineGroup) -> QuarantineGroup:
    times = list(_times(known.first, more.first))
    lasts = list(_times(known.last, more.last))
    is_newer = (more.last or _BEFORE_ALL, more.newest) > (known.last or _BEFORE_ALL, known.newest)
    return QuarantineGroup(
        known.key,
        known.rows + more.rows,
        min(times, default=None),
        max(lasts, default=None),
        more.newest if is_newer else known.newest,
    )


def _times(*times: datetime | None) -> Iterator[datetime]:
    yield from (time for time in times if time is not None)


def _order(key: GroupKey) -> tuple[str, str, str, int, str, bool]:
    return key.cause, key.game or "", key.stage, key.schema_id or 0, key.guid or "", key.others


@dataclass(frozen=True, slots=True)
class Droppable:
    """Rows of a cause: `game` is None at stage bronze, where a name that was refused is no game."""

    stage: str
    cause: str
    game: str | None
    rows: int
