r"""A status as metrics for Prometheus, in its text format 0.0.4. Pure.

https://prometheus.io/docs/instrumenting/exposition_formats and https://prometheus.io/docs/practices/naming

How many series there are is bounded: the games with most rows in bronze have series of their own, all others one
together, with `game="other"` and an empty `table` (which no game has): sums, of ages the greatest, of times the
earliest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from demux.core.control.freshness import QUANTILES, merge
from demux.operations.status.model import GameHealth, GameStatus, Status

KIND = "text/plain; version=0.0.4; charset=utf-8"
MOST_GAMES = 500

Labels = tuple[tuple[str, str], ...]
Sample = tuple[Labels, float]


@dataclass(frozen=True, slots=True)
class ServerCounts:
    """The server's counts since its start."""

    reads: int = 0
    failed_reads: int = 0
    read_s: float = 0.0


def metrics(status: Status, counts: ServerCounts, most_games: int = MOST_GAMES) -> str:
    """Return all metrics; `most_games` games have series of their own."""
    return "".join(
        [*_of_root(status, counts), *_of_games(_groups(status.games, most_games), status.at), *_of_clusters(status)]
    )


def _of_root(status: Status, counts: ServerCounts) -> Iterator[str]:
    yield _family("demux_status_reads_total", "Times that the tables were read.", [((), counts.reads)], "counter")
    yield _family(
        "demux_status_read_failures_total", "Times that reading failed.", [((), counts.failed_reads)], "counter"
    )
    yield _family("demux_status_read_duration_seconds", "How long reading took last.", [((), counts.read_s)])
    yield _family("demux_status_timestamp_seconds", "When the tables were read.", [((), status.at.timestamp())])
    states = [((("state", state.value),), games) for state, games in status.states.items()]
    yield _family("demux_games", "Games by state.", states)
    unreadable = "Notes on tables that cannot be read without Spark, whose metrics are missing."
    yield _family("demux_unreadable_tables", unreadable, [((), len(status.notes))])
    if status.rounds:
        last = status.rounds[-1]
        yield _family("demux_last_round_timestamp_seconds", "When a round ended last.", [((), last.at.timestamp())])
        yield _family("demux_last_round_work_seconds", "Work of the tasks of the last round.", [((), last.seconds)])
        yield _family("demux_last_round_rows", "Rows of bronze that it read.", [((), last.rows)])
    quarantined = sorted((stage.value, cause, rows) for (stage, cause), rows in status.quarantined.items())
    by_cause = [((("stage", stage), ("cause", cause)), rows) for stage, cause, rows in quarantined]
    yield _family("demux_quarantined_rows", "Rows in quarantine by stage and cause.", by_cause)


@dataclass(frozen=True, slots=True)
class _SeriesGroup:
    """Games that share their series."""

    labels: Labels
    games: Sequence[GameStatus]


def _groups(games: Sequence[GameStatus], most: int) -> list[_SeriesGroup]:
    """Return a group for each of the games with most rows in bronze, and one for all others."""
    ordered = sorted(games, key=lambda game: (-(game.bronze or 0), game.key))
    own = [_SeriesGroup((("game", game.game), ("table", game.key)), (game,)) for game in ordered[:most]]
    others = ordered[most:]
    return [*own, _SeriesGroup((("game", "other"), ("table", "")), others)] if others else own


@dataclass(frozen=True, slots=True)
class _GameMetric:
    """A metric of games: `value` is None where unknown, `together` makes one value of those of several games."""

    name: str
    text: str
    value: Callable[[GameStatus, datetime], float | None]
    together: Callable[[Iterable[float]], float] = sum

    def samples(self, groups: Iterable[_SeriesGroup], now: datetime) -> Iterator[Sample]:
        for group in groups:
            known = [value for game in group.games if (value := self.value(game, now)) is not None]
            if known:
                yield group.labels, self.together(known)


_ROWS = (
    _GameMetric("demux_game_bronze_rows", "Rows in bronze.", lambda game, _: game.bronze),
    _GameMetric(
        "demux_game_silver_rows", "Rows in the game's table.", lambda game, _: game.table.rows if game.table else 0
    ),
    _GameMetric(
        "demux_game_quarantined_rows",
        "Rows of the game that did not decode.",
        lambda game, _: sum(game.quarantined.values()),
    ),
    _GameMetric("demux_game_lag_rows", "Rows in bronze that are not decoded yet.", lambda game, _: game.lag_rows),
    _GameMetric(
        "demux_game_lag_seconds", "How long the oldest of them has waited.", lambda game, now: game.lag_s(now), max
    ),
)
_TASKS = (
    _GameMetric(
        "demux_game_late",
        "1 where the game misses games.fresh_within; of several games, how many.",
        lambda game, now: None if game.fresh_within_s is None else game.is_late(now),
    ),
    _GameMetric(
        "demux_game_failed",
        "1 where the game's last task failed; of several games, how many.",
        lambda game, _: game.state is GameHealth.FAILED,
    ),
    _GameMetric(
        "demux_game_last_success_timestamp_seconds",
        "When a task of the game ended well last.",
        lambda game, _: game.last_success.timestamp() if game.last_success else None,
        min,
    ),
    _GameMetric("demux_game_last_task_seconds", "How long the game's last task worked.", lambda game, _: game.seconds),
    _GameMetric(
        "demux_game_table_bytes", "Size of the game's table.", lambda game, _: game.table.bytes if game.table else 0
    ),
    _GameMetric(
        "demux_game_table_files", "Files of the game's table.", lambda game, _: game.table.files if game.table else 0
    ),
)


def _of_games(groups: Sequence[_SeriesGroup], now: datetime) -> Iterator[str]:
    yield from (_family(one.name, one.text, [*one.samples(groups, now)]) for one in _ROWS)
    text = "How long rows of the last hour took from the timestamp of their record to the game's table."
    yield _family("demux_game_freshness_seconds", text, [*_freshness(groups)])
    yield from (_family(one.name, one.text, [*one.samples(groups, now)]) for one in _TASKS)


def _freshness(groups: Iterable[_SeriesGroup]) -> Iterator[Sample]:
    for group in groups:
        merged = merge(game.freshness for game in group.games)
        for quantile in QUANTILES:
            if (age := merged.quantile_s(quantile)) is not None:
                yield (*group.labels, ("quantile", f"{quantile}")), age


def _of_clusters(status: Status) -> Iterator[str]:
    named = [((("cluster", one.name),), one) for one in status.clusters]
    lag, work = "Rows of the cluster's games that wait.", "Work of the last tasks of the cluster's games."
    yield _family("demux_cluster_games", "Games of the cluster.", [(label, one.games) for label, one in named])
    yield _family("demux_cluster_lag_rows", lag, [(label, one.lag_rows) for label, one in named])
    yield _family("demux_cluster_last_tasks_seconds", work, [(label, one.seconds) for label, one in named])


def _family(name: str, text: str, samples: Sequence[Sample], kind: str = "gauge") -> str:
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    lines += [f"{name}{_labels(dict(labels))} {_number(value)}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{inside}}}" if inside else ""


def _escaped(value: str) -> str:
    # a surrogate has no form in UTF-8, and no game has one in its name
    text = value.encode("utf-8", "backslashreplace").decode()
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
