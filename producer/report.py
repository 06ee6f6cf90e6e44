"""What the producer did, for people and for tests that check the tables against it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from demux.core.causes import Cause
from producer.batch import Made
from producer.faults import Fault, cause_of

_NO_GAME = (Cause.MALFORMED_WRAPPER, Cause.INVALID_GAME_NAME)


@dataclass(frozen=True, slots=True)
class ProducedGame:
    """The new events of one game that get as far as bronze.

    Attributes:
        bronze: how many rows of it come to bronze.
        silver: how many of those are valid.
        quarantine: how many of those are not, by cause.
    """

    game: str
    bronze: int
    silver: int
    quarantine: Mapping[Cause, int]


@dataclass(frozen=True, slots=True)
class ProduceReport:
    """What was sent.

    Attributes:
        events: new events, faulty ones included.
        resent: earlier messages sent again; in none of the other counts.
        quarantine: how many new events must end in quarantine, by cause, over all games.
        games: what becomes of the new events of each game, in order of name.
    """

    events: int
    resent: int
    first: int
    faults: Mapping[Fault, int]
    quarantine: Mapping[Cause, int]
    games: tuple[ProducedGame, ...]
    schema_ids: tuple[int, ...]

    @staticmethod
    def of(made: Made, resent: int, first: int, schema_ids: tuple[int, ...]) -> ProduceReport:
        """Return the report of these events, counted by game and fault."""
        faults: Counter[Fault] = Counter()
        quarantine: Counter[Cause] = Counter()
        for (_, fault), count in made.items():
            if fault is not None:
                faults[fault] += count
                if cause := cause_of(fault):
                    quarantine[cause] += count
        names = sorted({game for game, _ in made})
        games = tuple(_game_report(name, made) for name in names)
        return ProduceReport(made.total(), resent, first, faults, quarantine, games, schema_ids)


@dataclass(frozen=True, slots=True)
class CleanUpReport:
    """What `clean_up` removed."""

    target: bool
    schema_ids: tuple[int, ...]


def _game_report(name: str, made: Made) -> ProducedGame:
    silver, quarantine = 0, Counter[Cause]()
    for (game, fault), count in made.items():
        cause = cause_of(fault) if fault is not None else None
        if game != name or cause in _NO_GAME:
            continue
        if cause is None:
            silver += count
        else:
            quarantine[cause] += count
    return ProducedGame(name, silver + quarantine.total(), silver, quarantine)
