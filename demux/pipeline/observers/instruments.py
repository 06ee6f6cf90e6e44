"""The names, units and meanings of what is measured, as OpenTelemetry has them; docs/observability.md has the same.

The games that have series of their own are bounded, however many a root has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from demux.core.control.freshness import NO_FRESHNESS, RECENT, Freshness, merge


class Kind(Enum):
    """What an instrument does with a value."""

    COUNTER = "counter"
    HISTOGRAM = "histogram"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Instrument:
    """One instrument.

    Attributes:
        name: as it is sent.
        unit: by UCUM.
        attributes: what its series differ by, beside `demux.root`.
        meaning: a sentence.
    """

    name: str
    kind: Kind
    unit: str
    attributes: tuple[str, ...]
    meaning: str


GAME = "demux.game"
ROOT = "demux.root"
OUTCOME = "demux.outcome"
STAGE = "demux.stage"
ERROR = "error.type"
COMMAND = "demux.command"
QUANTILE = "demux.quantile"

COMMAND_DURATION = Instrument(
    "demux.command.duration", Kind.HISTOGRAM, "s", (COMMAND, OUTCOME), "How long a round, or a stage alone, took"
)
STAGE_DURATION = Instrument("demux.stage.duration", Kind.HISTOGRAM, "s", (STAGE,), "How long a stage took")
INGESTED_ROWS = Instrument(
    "demux.ingest.rows", Kind.COUNTER, "{row}", (OUTCOME,), "Records that bronze took in, or put into quarantine"
)
TASKS = Instrument("demux.tasks", Kind.COUNTER, "{task}", (OUTCOME,), "Tasks of games that ended")
GAME_ROWS = Instrument(
    "demux.game.rows", Kind.COUNTER, "{row}", (GAME, OUTCOME), "Rows of bronze that were decoded, or quarantined"
)
GAME_BYTES = Instrument(
    "demux.game.bytes", Kind.COUNTER, "By", (GAME,), "Size of the files of bronze that the fleet read"
)
GAME_FAILURES = Instrument(
    "demux.game.failures", Kind.COUNTER, "{failure}", (GAME, ERROR), "Tasks of the game that failed"
)
GAME_DURATION = Instrument("demux.game.duration", Kind.HISTOGRAM, "s", (OUTCOME,), "How long a game's task worked")
GAME_LAG = Instrument(
    "demux.game.lag", Kind.GAUGE, "{row}", (GAME,), "Rows, about, that the last round left in bronze; sum for others"
)
GAME_TABLE_AGE = Instrument(
    "demux.game.table.age",
    Kind.GAUGE,
    "s",
    (GAME,),
    "Age of the state of bronze that the game's table has whole; the oldest for others",
)
GAME_FRESHNESS = Instrument(
    "demux.game.freshness",
    Kind.GAUGE,
    "s",
    (GAME, QUANTILE),
    "How long rows of the last hour took from the timestamp of their record to the game's table",
)
INSTRUMENTS = (
    COMMAND_DURATION,
    STAGE_DURATION,
    INGESTED_ROWS,
    TASKS,
    GAME_ROWS,
    GAME_BYTES,
    GAME_FAILURES,
    GAME_DURATION,
    GAME_LAG,
    GAME_TABLE_AGE,
    GAME_FRESHNESS,
)


# the status page's metrics have the same
MOST_GAMES = 500
OTHER = "other"


class GameSeries:
    """The games of one root, as one process has seen them; the first ones keep series of their own."""

    def __init__(self, most: int = MOST_GAMES) -> None:
        """Prepare for so many games with series of their own."""
        self._most = most
        self._own: set[str] = set()
        self._lag_rows: dict[str, int] = {}
        self._fresh_at: dict[str, datetime] = {}
        # by label and minute
        self._freshness: dict[str, dict[datetime, Freshness]] = {}

    def label(self, game: str) -> str:
        """Return the value of the game's attribute: its exact name, or `other` where there are too many."""
        if game not in self._own and len(self._own) < self._most:
            self._own.add(game)
        return game if game in self._own else OTHER

    def left(self, game: str, rows: int) -> None:
        """Remember how many rows of the game wait."""
        self._lag_rows[game] = rows

    def fresh(self, games: Iterable[str], at: datetime) -> None:
        """Remember that these games have all that bronze had at a time."""
        self._fresh_at.update(dict.fromkeys(games, at))

    def committed(self, game: str, freshness: Freshness, at: datetime) -> None:
        """Remember how fresh the rows were that the game's table got at a time."""
        minutes, minute = self._freshness.setdefault(self.label(game), {}), at.replace(second=0, microsecond=0)
        minutes[minute] = merge((minutes.get(minute, NO_FRESHNESS), freshness))
        for old in [each for each in minutes if at - each > RECENT]:
            del minutes[old]

    def freshness(self, now: datetime) -> Mapping[str, Freshness]:
        """Return how fresh the rows of the last hour were, by label; that of all rows for `other`."""
        return {
            label: merge(each for at, each in tuple(minutes.items()) if now - at <= RECENT)
            for label, minutes in tuple(self._freshness.items())
        }

    def lag_rows(self) -> Mapping[str, int]:
        """Return the rows that wait, by label; the sum for `other`."""
        found: dict[str, int] = {}
        for game, rows in tuple(self._lag_rows.items()):
            label = self.label(game)
            found[label] = found.get(label, 0) + rows
        return found

    def age_s(self, now: datetime) -> Mapping[str, float]:
        """Return how old the state of bronze is that a game has, by label; the oldest for `other`."""
        found: dict[str, float] = {}
        for game, at in tuple(self._fresh_at.items()):
            label = self.label(game)
            found[label] = max(found.get(label, 0.0), (now - at).total_seconds())
        return found
