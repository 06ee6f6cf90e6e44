"""The names, units and meanings of what is measured, as OpenTelemetry has them; docs/observability.md has the same."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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
GAME_FRESHNESS = Instrument(
    "demux.game.freshness",
    Kind.GAUGE,
    "s",
    (GAME,),
    "Age of the state of bronze that the game's table has whole; the oldest for others",
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
    GAME_FRESHNESS,
)
