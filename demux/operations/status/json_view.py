"""A status as JSON: what the page reads, and programs may. Pure.

Names are made printable and lists of games have a head of columns, so that 10,000 games are a few megabytes, even if
each of them failed in words of its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from demux.core.causes import Stage
from demux.core.text import printable
from demux.operations.status.model import Failure, GameStatus, Problem, Status

# one more whenever a name or a meaning changes
FORMAT = 4
# columns of a game; times are milliseconds since 1970, `fresh_…` seconds;
# `failure` and `last_failure` are numbers in `failures`
COLUMNS = (
    "name",
    "key",
    "state",
    "lag_rows",
    "waiting_since",
    "rate",
    "last_success",
    "versions",
    "quarantined",
    "silver",
    "files",
    "bytes",
    "seconds",
    "share",
    "cluster",
    "bronze",
    "reason",
    "failure",
    "last_failure",
    "last_failure_at",
    "causes",
    "recent",
    "dropped",
    "retired",
    "fresh_p50",
    "fresh_p95",
    "fresh_within",
)
_PROBLEMS = 20
_NAMES_OF_PROBLEM = 20
_NOTES = 20
# of a sentence, the message begins it and the remedy ends it
_FIRST_CHARACTERS, _LAST_CHARACTERS = 700, 300


def status_json(status: Status) -> str:
    """Return the status as one JSON object, in ASCII, on one line."""
    return json.dumps(status_content(status), separators=(",", ":"))


def status_content(status: Status) -> dict[str, Any]:
    """Return the status as JSON data; see `COLUMNS` for the games."""
    failures = _Failures()
    return {
        "format": FORMAT,
        "root": printable(status.root),
        "at": _ms(status.at),
        "lag_rows": status.lag_rows,
        "rate": _rounded(status.rate),
        "states": {state.value: games for state, games in status.states.items()},
        "columns": COLUMNS,
        "games": [_game(game, failures) for game in status.games],
        "failures": failures.texts,
        "rounds": [
            [_ms(one.at), one.games, one.failed, one.rows, _rounded(one.seconds), one.lag_rows, _rounded(one.rate)]
            for one in status.rounds
        ],
        "clusters": [
            [printable(one.name), one.games, one.failed, one.behind, one.lag_rows, _rounded(one.seconds)]
            for one in status.clusters
        ],
        "problems": [_problem(one) for one in status.problems[:_PROBLEMS]],
        "more_problems": max(0, len(status.problems) - _PROBLEMS),
        "causes": _causes(status),
        "notes": _notes(status.notes),
    }


class _Failures:
    """Each different failure once: what fails for all games is said once."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}

    def number(self, failure: Failure | None) -> int | None:
        if failure is None:
            return None
        return self._numbers.setdefault((failure.condition, failure.sentence), len(self._numbers))

    @property
    def texts(self) -> list[list[str]]:
        return [[printable(condition), _bounded(sentence)] for condition, sentence in self._numbers]


def _game(game: GameStatus, failures: _Failures) -> list[Any]:
    table = game.table
    return [
        printable(game.game),
        game.key,
        game.state.value,
        game.lag_rows,
        _ms(game.waiting_since),
        _rounded(game.rate),
        _ms(game.last_success),
        ", ".join(map(str, game.versions)),
        sum(game.quarantined.values()),
        table.rows if table else None,
        table.files if table else None,
        table.bytes if table else None,
        _rounded(game.seconds),
        _rounded(game.share),
        game.cluster and printable(game.cluster),
        game.bronze,
        game.reason and printable(game.reason),
        failures.number(game.failure),
        failures.number(game.last_failure),
        _ms(game.last_failure.at if game.last_failure else None),
        dict(sorted(game.quarantined.items())),
        [[part.round, part.rows, _rounded(part.seconds)] for part in game.recent],
        game.dropped,
        game.retired,
        _rounded(game.freshness.p50_s),
        _rounded(game.freshness.p95_s),
        game.fresh_within_s,
    ]


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "condition": printable(problem.condition),
        "sentence": _bounded(problem.sentence),
        "games": [printable(game) for game in problem.games[:_NAMES_OF_PROBLEM]],
        "count": len(problem.games),
    }


def _notes(notes: Sequence[str]) -> list[str]:
    more = len(notes) - _NOTES
    return [*map(printable, notes[:_NOTES]), *([f"and {more:,} more like these"] if more > 0 else [])]


def _bounded(sentence: str) -> str:
    if len(sentence) <= _FIRST_CHARACTERS + _LAST_CHARACTERS:
        return printable(sentence)
    return f"{printable(sentence[:_FIRST_CHARACTERS])} … {printable(sentence[-_LAST_CHARACTERS:])}"


def _causes(status: Status) -> list[list[Any]]:
    """Return cause, stage, rows and how many games for each cause, those with most rows first."""
    games = Counter(cause for game in status.games for cause in game.quarantined)
    found: list[list[Any]] = [
        [cause, stage.value, rows, games[cause] if stage is Stage.SILVER else None]
        for (stage, cause), rows in status.quarantined.items()
    ]
    return sorted(found, key=lambda one: (-one[2], one[0]))


def _ms(at: datetime | None) -> int | None:
    return None if at is None else round(at.timestamp() * 1000)


def _rounded(value: float | None) -> float | None:
    """Return four digits that count: more would only make the page longer."""
    return None if value is None else float(f"{value:.4g}")
