"""The status of a root as data: games, rounds, clusters, problems. Pure; `summary.py` makes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from demux.core.causes import Stage
from demux.core.control.freshness import NO_FRESHNESS, Freshness
from demux.operations.status.facts import TableFacts

# conditions of problems that are no failures
WAITING = "waiting"
LATE = "late"


class GameHealth(Enum):
    """How a game is, the most urgent first."""

    FAILED = "failed"
    WAITING = "waiting"
    BEHIND = "behind"
    CURRENT = "current"


@dataclass(frozen=True, slots=True)
class Failure:
    """How a task failed: `sentence` is the message and the remedy."""

    condition: str
    sentence: str
    at: datetime


@dataclass(frozen=True, slots=True)
class GameRound:
    """A game's part in a round: rows of bronze that it read, and seconds of work."""

    round: int
    rows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class GameStatus:
    """One game.

    Attributes:
        reason: why it waits to be admitted; None when it does not.
        cluster: where it runs; None while it waits to be admitted.
        bronze: rows in bronze; None where bronze cannot be read.
        lag_rows: rows in bronze that are neither in its table nor in quarantine; None where that is not known.
        waiting_since: when the oldest of them came to bronze, about; None when none waits or it is not known.
        rate: rows decoded a second, over the last 15 minutes.
        last_success: when a task of it ended well last, in what is on record (UTC).
        failure: how its last task failed; None when that ended well.
        versions: the schema versions that its rows had, in what is on record.
        share: of the seconds of all tasks on record, its own, 0 to 1; None without any.
        recent: what it did in its last rounds, the newest last.
        retired: rows of it that were in bronze and taken out of it, being old.
        freshness: of its rows that were committed in the last hour.
        fresh_within_s: the longest time that its p95 should be; None for no limit.
    """

    game: str
    key: str
    state: GameHealth
    reason: str | None
    cluster: str | None
    bronze: int | None
    quarantined: Mapping[str, int]
    lag_rows: int | None
    waiting_since: datetime | None
    rate: float
    last_success: datetime | None
    failure: Failure | None
    last_failure: Failure | None
    versions: tuple[int, ...]
    table: TableFacts | None
    seconds: float | None
    share: float | None
    recent: tuple[GameRound, ...] = ()
    dropped: int = 0
    retired: int = 0
    freshness: Freshness = NO_FRESHNESS
    fresh_within_s: float | None = None

    @property
    def rows_in(self) -> int | None:
        """Rows that came into bronze, those too that it has no more; None where bronze cannot be read."""
        return None if self.bronze is None else self.bronze + self.retired

    def lag_s(self, now: datetime) -> float | None:
        """Return for how long the oldest waiting row has waited; 0 when none does, None when that is not known."""
        if self.waiting_since is not None:
            return max(0.0, (now - self.waiting_since).total_seconds())
        return None if self.lag_rows is None or self.lag_rows else 0.0

    def is_late(self, now: datetime) -> bool:
        """Return whether it misses its limit: by the p95 of the last hour, or by rows that wait for longer already."""
        ages = (self.freshness.p95_s, self.lag_s(now))
        return self.fresh_within_s is not None and any(age is not None and age > self.fresh_within_s for age in ages)


@dataclass(frozen=True, slots=True)
class RoundStatus:
    """One round.

    Attributes:
        at: when it ended (UTC).
        seconds: of work, the sum of its tasks'.
        lag_rows: rows that waited in bronze when it ended, about; None where that is not known.
        rate: rows a second, from the end of the round before; None for the first one on record.
    """

    at: datetime
    games: int
    failed: int
    rows: int
    seconds: float
    lag_rows: int | None
    rate: float | None


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """A cluster of the plan: its games, how they are, and the seconds of their last tasks."""

    name: str
    games: int
    failed: int
    behind: int
    lag_rows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Problem:
    """A failure, a reason to wait, or a missed limit, with all games that share it, by name.

    Attributes:
        condition: of the failure; or `WAITING`, or `LATE`.
    """

    condition: str
    sentence: str
    games: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Status:
    """A root at a moment.

    Attributes:
        at: when it was read (UTC).
        games: by name.
        rounds: the last ones, the newest last.
        problems: what failed, who waits, who is late; in this order, those of most games first.
        no_bronze: records that never became a bronze row, by cause.
        tasks: how many tasks are on record.
    """

    root: str
    at: datetime
    games: tuple[GameStatus, ...] = ()
    rounds: tuple[RoundStatus, ...] = ()
    clusters: tuple[ClusterStatus, ...] = ()
    problems: tuple[Problem, ...] = ()
    no_bronze: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    tasks: int = 0

    @property
    def lag_rows(self) -> int | None:
        """Rows of all games that wait in bronze; None where bronze cannot be read."""
        known = [game.lag_rows for game in self.games if game.lag_rows is not None]
        return sum(known) if known or not self.games else None

    @property
    def states(self) -> Mapping[GameHealth, int]:
        """How many games are in each state."""
        counts = Counter(game.state for game in self.games)
        return {state: counts[state] for state in GameHealth}

    @property
    def quarantined(self) -> Mapping[tuple[Stage, str], int]:
        """Rows in quarantine by stage and cause."""
        counts: Counter[tuple[Stage, str]] = Counter()
        for game in self.games:
            counts.update({(Stage.SILVER, cause): rows for cause, rows in game.quarantined.items()})
        counts.update({(Stage.BRONZE, cause): rows for cause, rows in self.no_bronze.items()})
        return counts

    @property
    def rate(self) -> float:
        """Rows decoded a second, of all games, over the last 15 minutes."""
        return sum(game.rate for game in self.games)
