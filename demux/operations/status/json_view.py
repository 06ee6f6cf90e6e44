"""A status as JSON: what the page reads, and programs may. Pure.

Names are made printable and lists of games have a head of columns, so that 10,000 games are a few megabytes, even if
each of them failed in words of its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from demux.core.causes import Stage
from demux.core.text import printable
from demux.operations.status.model import Failure, GameStatus, Problem, Status

# one more whenever a name or a meaning changes
FORMAT = 4
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
        "games": [[value(game, failures) for value in _COLUMNS.values()] for game in status.games],
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


# columns of a game; times are milliseconds since 1970, `fresh_…` seconds;
# `failure` and `last_failure` are numbers in `failures`
_COLUMNS: Mapping[str, Callable[[GameStatus, _Failures], Any]] = {
    "name": lambda game, _: printable(game.game),
    "key": lambda game, _: game.key,
    "state": lambda game, _: game.state.value,
    "lag_rows": lambda game, _: game.lag_rows,
    "waiting_since": lambda game, _: _ms(game.waiting_since),
    "rate": lambda game, _: _rounded(game.rate),
    "last_success": lambda game, _: _ms(game.last_success),
    "versions": lambda game, _: ", ".join(map(str, game.versions)),
    "quarantined": lambda game, _: sum(game.quarantined.values()),
    "silver": lambda game, _: game.table and game.table.rows,
    "files": lambda game, _: game.table and game.table.files,
    "bytes": lambda game, _: game.table and game.table.bytes,
    "seconds": lambda game, _: _rounded(game.seconds),
    "share": lambda game, _: _rounded(game.share),
    "cluster": lambda game, _: game.cluster and printable(game.cluster),
    "bronze": lambda game, _: game.bronze,
    "reason": lambda game, _: game.reason and printable(game.reason),
    "failure": lambda game, failures: failures.number(game.failure),
    "last_failure": lambda game, failures: failures.number(game.last_failure),
    "last_failure_at": lambda game, _: _ms(game.last_failure.at if game.last_failure else None),
    "causes": lambda game, _: dict(sorted(game.quarantined.items())),
    "recent": lambda game, _: [[part.round, part.rows, _rounded(part.seconds)] for part in game.recent],
    "dropped": lambda game, _: game.dropped,
    "retired": lambda game, _: game.retired,
    "fresh_p50": lambda game, _: _rounded(game.freshness.p50_s),
    "fresh_p95": lambda game, _: _rounded(game.freshness.p95_s),
    "fresh_within": lambda game, _: game.fresh_within_s,
}
COLUMNS = tuple(_COLUMNS)


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
