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

from demux.core.control.freshness import QUANTILES, Freshness, merge
from demux.operations.status.model import GameHealth, GameStatus, Status

KIND = "text/plain; version=0.0.4; charset=utf-8"
MOST_GAMES = 500

Labels = tuple[tuple[str, str], ...]
Sample = tuple[Labels, float]


@dataclass(frozen=True, slots=True)
class ServerCounts:
    """What the server did since it started."""

    reads: int = 0
    failed_reads: int = 0
    read_s: float = 0.0


def metrics(status: Status, counts: ServerCounts, most_games: int = MOST_GAMES) -> str:
    """Return all metrics.

    Args:
        most_games: how many games have series of their own.
    """
    return "".join(
        [*_of_root(status, counts), *_of_games(_groups(status.games, most_games), status.at), *_of_clusters(status)]
    )


def _of_root(status: Status, counts: ServerCounts) -> Iterator[str]:
    yield _family("demux_status_reads_total", "counter", "Times that the tables were read.", [((), counts.reads)])
    yield _family(
        "demux_status_read_failures_total", "counter", "Times that reading failed.", [((), counts.failed_reads)]
    )
    yield _family("demux_status_read_duration_seconds", "gauge", "How long reading took last.", [((), counts.read_s)])
    yield _family(
        "demux_status_timestamp_seconds", "gauge", "When the tables were read.", [((), status.at.timestamp())]
    )
    yield _family(
        "demux_games",
        "gauge",
        "Games by state.",
        [((("state", state.value),), games) for state, games in status.states.items()],
    )
    yield _family(
        "demux_unreadable_tables",
        "gauge",
        "Notes on tables that cannot be read without Spark, whose metrics are missing.",
        [((), len(status.notes))],
    )
    if status.rounds:
        last = status.rounds[-1]
        yield _family(
            "demux_last_round_timestamp_seconds", "gauge", "When a round ended last.", [((), last.at.timestamp())]
        )
        yield _family(
            "demux_last_round_work_seconds", "gauge", "Work of the tasks of the last round.", [((), last.seconds)]
        )
        yield _family("demux_last_round_rows", "gauge", "Rows of bronze that it read.", [((), last.rows)])
    yield _family("demux_quarantined_rows", "gauge", "Rows in quarantine by stage and cause.", _quarantined(status))


def _quarantined(status: Status) -> list[Sample]:
    found = ((stage.value, cause, rows) for (stage, cause), rows in status.quarantined.items())
    return [((("stage", stage), ("cause", cause)), rows) for stage, cause, rows in sorted(found)]


@dataclass(frozen=True, slots=True)
class _SeriesGroup:
    """Games that share their series."""

    labels: Labels
    games: Sequence[GameStatus]

    def summed(self, value: Callable[[GameStatus], float | None]) -> float | None:
        known = [one for one in map(value, self.games) if one is not None]
        return sum(known) if known else None

    def greatest(self, value: Callable[[GameStatus], float | None]) -> float | None:
        return max((one for one in map(value, self.games) if one is not None), default=None)

    def earliest(self, value: Callable[[GameStatus], float | None]) -> float | None:
        return min((one for one in map(value, self.games) if one is not None), default=None)

    def freshness(self) -> Freshness:
        return merge(game.freshness for game in self.games)


def _groups(games: Sequence[GameStatus], most: int) -> list[_SeriesGroup]:
    """Return a group for each of the games with most rows in bronze, and one for all others."""
    ordered = sorted(games, key=lambda game: (-(game.bronze or 0), game.key))
    own = [_SeriesGroup((("game", game.game), ("table", game.key)), (game,)) for game in ordered[:most]]
    others = ordered[most:]
    return [*own, _SeriesGroup((("game", "other"), ("table", "")), others)] if others else own


def _of_games(groups: Iterable[_SeriesGroup], now: datetime) -> Iterator[str]:
    groups = list(groups)

    def family(name: str, text: str, value: Callable[[_SeriesGroup], float | None]) -> str:
        found = ((group.labels, value(group)) for group in groups)
        return _family(name, "gauge", text, [(labels, one) for labels, one in found if one is not None])

    yield family("demux_game_bronze_rows", "Rows in bronze.", lambda group: group.summed(lambda game: game.bronze))
    yield family(
        "demux_game_silver_rows",
        "Rows in the game's table.",
        lambda group: group.summed(lambda game: game.table.rows if game.table else 0),
    )
    yield family(
        "demux_game_quarantined_rows",
        "Rows of the game that did not decode.",
        lambda group: group.summed(lambda game: sum(game.quarantined.values())),
    )
    yield family(
        "demux_game_lag_rows",
        "Rows in bronze that are not decoded yet.",
        lambda group: group.summed(lambda game: game.lag_rows),
    )
    yield family(
        "demux_game_lag_seconds",
        "How long the oldest of them has waited.",
        lambda group: group.greatest(lambda game: game.lag_s(now)),
    )
    yield _family(
        "demux_game_freshness_seconds",
        "gauge",
        "How long rows of the last hour took from the timestamp of their record to the game's table.",
        [
            ((*group.labels, ("quantile", f"{quantile}")), age)
            for group, fresh in [(group, group.freshness()) for group in groups]
            for quantile in QUANTILES
            if (age := fresh.quantile_s(quantile)) is not None
        ],
    )
    yield family(
        "demux_game_late",
        "1 where the game misses games.fresh_within; of several games, how many.",
        lambda group: group.summed(lambda game: None if game.fresh_within_s is None else game.is_late(now)),
    )
    yield family(
        "demux_game_failed",
        "1 where the game's last task failed; of several games, how many.",
        lambda group: group.summed(lambda game: game.state is GameHealth.FAILED),
    )
    yield family(
        "demux_game_last_success_timestamp_seconds",
        "When a task of the game ended well last.",
        lambda group: group.earliest(lambda game: game.last_success.timestamp() if game.last_success else None),
    )
    yield family(
        "demux_game_last_task_seconds",
        "How long the game's last task worked.",
        lambda group: group.summed(lambda game: game.seconds),
    )
    yield family(
        "demux_game_table_bytes",
        "Size of the game's table.",
        lambda group: group.summed(lambda game: game.table.bytes if game.table else 0),
    )
    yield family(
        "demux_game_table_files",
        "Files of the game's table.",
        lambda group: group.summed(lambda game: game.table.files if game.table else 0),
    )


def _of_clusters(status: Status) -> Iterator[str]:
    named = [((("cluster", one.name),), one) for one in status.clusters]
    yield _family("demux_cluster_games", "gauge", "Games of the cluster.", [(label, one.games) for label, one in named])
    yield _family(
        "demux_cluster_lag_rows",
        "gauge",
        "Rows of the cluster's games that wait.",
        [(label, one.lag_rows) for label, one in named],
    )
    yield _family(
        "demux_cluster_last_tasks_seconds",
        "gauge",
        "Work of the last tasks of the cluster's games.",
        [(label, one.seconds) for label, one in named],
    )


def _family(name: str, kind: str, text: str, samples: Sequence[Sample]) -> str:
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
