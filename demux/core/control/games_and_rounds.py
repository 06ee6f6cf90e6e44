"""The control tables: which games are known and where they run, and how each task ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from statistics import median
from typing import TYPE_CHECKING, Any

from demux.core.control.freshness import NO_FRESHNESS, Freshness
from demux.core.delta.record_table import RecordTable
from demux.core.root.layout import Layout
from demux.core.tables import APPROVALS, GAMES, ROUNDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Load:
    """The cost of a game in a round in which it has new rows.

    Attributes:
        rows: rows of bronze that it reads.
        seconds: how long its task takes; None where only the rows are known.
    """

    rows: float
    seconds: float | None


def usual_load(rounds: Sequence[Load]) -> Load:
    """Return the median of a game's rounds, of rows and of seconds: the one round of a long history counts for little.

    Args:
        rounds: at least one.
    """
    seconds = [load.seconds for load in rounds if load.seconds is not None]
    return Load(median(load.rows for load in rounds), median(seconds) if seconds else None)


# rounds that a game's load is made of: few, so that it follows the game
_RECENT = 5
# each game's last record, and its last ones that decoded something
_HISTORY = f"""
    SELECT * FROM (
        SELECT
            *,
            outcome <> 'failed' AND rows_in > 0 AS worked,
            row_number() OVER (PARTITION BY game_name ORDER BY finished_at DESC NULLS LAST) AS newest,
            row_number() OVER (
                PARTITION BY game_name
                ORDER BY (outcome <> 'failed' AND rows_in > 0) DESC NULLS LAST, finished_at DESC NULLS LAST
            ) AS newest_worked
        FROM {{records}}
        WHERE game_name IS NOT NULL
    ) AS ranked
    WHERE newest = 1 OR (worked AND newest_worked <= {_RECENT})
    ORDER BY finished_at
"""


class TaskOutcome(Enum):
    """How a game's task ended; behind: well, and rows are left for the next round."""

    DONE = "done"
    BEHIND = "behind"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class KnownGame:
    """A game that was seen in bronze.

    Attributes:
        cluster: the cluster that its task runs on; None while it waits to be admitted.
        since: when that was (UTC).
    """

    name: str
    cluster: str | None
    plan_id: str
    since: datetime


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """How one game's task ended in a round; rows and seconds as in `demux.core.tables.ROUNDS`."""

    round_id: str
    game: str
    outcome: TaskOutcome
    rows_in: int
    rows_silver: int
    rows_quarantined: int
    schema_ids: tuple[int, ...]
    seconds: float
    condition: str | None
    sentence: str | None
    finished_at: datetime
    freshness: Freshness = NO_FRESHNESS


@dataclass(frozen=True, slots=True)
class RoundHistory:
    """The history of earlier rounds.

    Attributes:
        bronze_version: every game was looked at up to this version of bronze; -1 before the first round.
        last: each game's last record.
        recent: the load of each game in its last 5 rounds that decoded something, the newest last.
    """

    bronze_version: int
    last: dict[str, TaskRecord]
    recent: dict[str, tuple[Load, ...]] = field(default_factory=dict)

    @property
    def loads(self) -> dict[str, Load]:
        """The usual cost of each game; games that decoded nothing yet have none."""
        return {game: usual_load(rounds) for game, rounds in self.recent.items()}

    @property
    def last_end(self) -> datetime | None:
        """When a task ended last (UTC)."""
        return max((record.finished_at for record in self.last.values()), default=None)

    def after(self, records: Iterable[TaskRecord], bronze_version: int) -> RoundHistory:
        """Return the history once these records have come, in order of time."""
        last, recent = dict(self.last), dict(self.recent)
        for record in records:
            last[record.game] = record
            if record.outcome is not TaskOutcome.FAILED and record.rows_in:
                load = Load(record.rows_in, record.seconds)
                recent[record.game] = (*recent.get(record.game, ()), load)[-_RECENT:]
        return RoundHistory(bronze_version, last, recent)


class Control:
    """Reads and writes the control tables of one root; each table is read once, then what was written is known.

    Several processes that deserialize may close their rounds at the same time: each appends, and knows of the others'
    records only if it reads the table after them. A process that replaces the games, or says how far bronze was
    looked at, must be alone: the root's lock, or a scheduler, sees to it (`demux.core.root.lock`).
    """

    def __init__(self, spark: SparkSession | None, layout: Layout) -> None:
        """Prepare; without a session, for tables that are reached without Spark."""
        self._games = RecordTable(spark, layout.storage, layout.games, GAMES)
        self._rounds = RecordTable(spark, layout.storage, layout.rounds, ROUNDS)
        self._known: dict[str, KnownGame] | None = None
        self._history: RoundHistory | None = None

    def forget(self) -> None:
        """Read the tables again when they are asked for next: another process may have written them."""
        self._known = self._history = None

    def known_games(self) -> dict[str, KnownGame]:
        """Return every known game by name."""
        if self._known is None:
            rows = self._games.select("SELECT * FROM {records}")
            self._known = {row["game_name"]: _known_game(row) for row in rows}
        return self._known

    def replace_games(self, games: Iterable[KnownGame]) -> None:
        """Make the table hold exactly these games, in one transaction; a second call changes nothing."""
        games = tuple(games)
        self._games.replace([(game.name, game.cluster, game.plan_id, game.since) for game in games])
        self._known = {game.name: game for game in games}

    def history(self) -> RoundHistory:
        """Return each game's last record, and how far bronze was looked at."""
        if self._history is None:
            self._history = self._read_history()
        return self._history

    def close_round(self, records: Iterable[TaskRecord], bronze_version: int | None) -> None:
        """Append the records of a finished round, in one transaction; others may append at the same time.

        Args:
            bronze_version: every game was looked at up to here; None when the round was not complete.
        """
        records = tuple(records)
        further = bronze_version is not None and bronze_version > self.history().bronze_version
        if records or further:
            self._append(records, bronze_version)
        if self._history is not None:
            version = self._history.bronze_version if bronze_version is None else bronze_version
            self._history = self._history.after(records, max(version, self._history.bronze_version))

    def _read_history(self) -> RoundHistory:
        (latest,) = self._rounds.select("SELECT max(bronze_version) AS version FROM {records}") or [{"version": None}]
        version = -1 if latest["version"] is None else latest["version"]
        return RoundHistory(-1, {}).after(map(task_record, self._rounds.select(_HISTORY)), version)

    def _append(self, records: tuple[TaskRecord, ...], bronze_version: int | None) -> None:
        rows: list[tuple[object, ...]] = [
            (
                record.round_id,
                record.game,
                record.outcome.value,
                bronze_version,
                record.rows_in,
                record.rows_silver,
                record.rows_quarantined,
                list(record.schema_ids),
                record.seconds,
                record.condition,
                record.sentence,
                record.finished_at,
                record.freshness.to_column(),
            )
            for record in records
        ]
        # a round without tasks still says how far bronze was looked at
        none = (None, None, None, bronze_version, *[None] * (len(ROUNDS.columns) - 4))
        self._rounds.append(rows or [none])


def approvals_of(spark: SparkSession | None, layout: Layout) -> RecordTable:
    """Return the table of approved schemas, which need not be there."""
    return RecordTable(spark, layout.storage, layout.approvals, APPROVALS)


def approved(table: RecordTable, game: str, registry: str) -> frozenset[int]:
    """Return the ids of the game's schemas of a registry that were approved."""
    rows = table.select("SELECT DISTINCT game_name, registry, schema_id FROM {records}")
    return frozenset(row["schema_id"] for row in rows if (row["game_name"], row["registry"]) == (game, registry))


def approve(table: RecordTable, game: str, registry: str, schema_ids: Iterable[int], now: datetime) -> None:
    """Append approvals of the game's schemas, in one transaction; a second call adds none that are there.

    Others may append at the same time: it needs no lock.
    """
    new = sorted(set(schema_ids) - approved(table, game, registry))
    if new:
        table.append([(game, registry, schema_id, now) for schema_id in new])


def _known_game(row: Mapping[str, Any]) -> KnownGame:
    return KnownGame(row["game_name"], row["cluster"], row["plan_id"], row["since"])


def task_record(row: Mapping[str, Any]) -> TaskRecord:
    """Return a row of `control/rounds` as what it says."""
    return TaskRecord(
        row["round_id"],
        row["game_name"],
        TaskOutcome(row["outcome"]),
        row["rows_in"],
        row["rows_silver"],
        row["rows_quarantined"],
        tuple(row["schema_ids"] or ()),
        row["seconds"],
        row["condition"],
        row["sentence"],
        row["finished_at"],
        Freshness.from_column(row["freshness"]),
    )
