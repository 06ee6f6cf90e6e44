"""Which placed games should change clusters because one carries too much. Pure, and few at a time.

The rule and its bounds: docs/decisions/0012.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count, islice
from math import ceil
from statistics import median

from demux.core.control.games_and_rounds import Load
from demux.core.errors import PlanRefused


def pack(
    games: Iterable[str],
    placed: Mapping[str, str],
    per_cluster: int,
    pinned: Mapping[str, str] | None = None,
    weights_ms: Mapping[str, int] | None = None,
) -> dict[str, str]:
    """Return a cluster for each game, no cluster with more than `per_cluster` games, and no more new ones than needed.

    A pinned game is on its cluster. Any other placed game keeps its cluster while that has room; the rest goes, the
    heaviest first, to the lightest cluster that has room. Without weights it goes to the fullest one, so that few
    clusters are needed. The order of the arguments does not matter; the time grows as n log n.

    Args:
        pinned: cluster by game; pins of other games do not matter.
        weights_ms: weight of each of the games; empty when nothing is known.

    Raises:
        PlanRefused: more games are pinned to a cluster than it may have.
    """
    games = set(games)
    result = {game: cluster for game, cluster in (pinned or {}).items() if game in games}
    _require_room(result, per_cluster)
    taken = Counter(result.values())
    homeless: list[str] = []
    for game in sorted(games - result.keys()):
        cluster = placed.get(game)
        if cluster is not None and taken[cluster] < per_cluster:
            result[game] = cluster
            taken[cluster] += 1
        else:
            homeless.append(game)
    if weights_ms:
        return result | _spread(homeless, result, taken, per_cluster, weights_ms)
    return result | dict(zip(homeless, _fullest_first(taken, per_cluster), strict=False))


def _require_room(pinned: Mapping[str, str], per_cluster: int) -> None:
    cluster, games = max(Counter(pinned.values()).items(), key=lambda item: (item[1], item[0]), default=("", 0))
    if games > per_cluster:
        raise PlanRefused(
            f"games.pinned puts {games} games on {cluster}, and run.streams_per_cluster is {per_cluster}.",
            "Pin some of them to another cluster, or raise run.streams_per_cluster.",
            cluster=cluster,
            games=tuple(sorted(game for game, where in pinned.items() if where == cluster)),
        )


def _fullest_first(taken: Counter[str], per_cluster: int) -> Iterator[str]:
    """Yield a cluster for each game to come, without end: the fullest first, then new ones."""
    for cluster in sorted(taken, key=lambda name: (taken[name], name), reverse=True):
        yield from [cluster] * (per_cluster - taken[cluster])
    for cluster in _new_names(taken):
        yield from [cluster] * per_cluster


def _spread(
    homeless: Iterable[str],
    settled: Mapping[str, str],
    taken: Counter[str],
    per_cluster: int,
    weights_ms: Mapping[str, int],
) -> dict[str, str]:
    """Return a cluster for each homeless game: longest processing time first, with a limit on the number."""
    waiting = sorted(homeless, key=lambda game: (-weights_ms[game], game))
    missing = len(waiting) - sum(per_cluster - games for games in taken.values())
    carried = dict.fromkeys((*taken, *islice(_new_names(taken), max(0, ceil(missing / per_cluster)))), 0)
    for game, cluster in settled.items():
        carried[cluster] += weights_ms[game]
    room = [(ms, name, per_cluster - taken[name]) for name, ms in carried.items() if taken[name] < per_cluster]
    heapify(room)
    result: dict[str, str] = {}
    for game in waiting:
        ms, cluster, free = room[0]
        result[game] = cluster
        if free == 1:
            heappop(room)
        else:
            heapreplace(room, (ms + weights_ms[game], cluster, free - 1))
    return result


def _new_names(taken: Mapping[str, int]) -> Iterator[str]:
    return (name for number in count(1) if (name := f"cluster_{number:03d}") not in taken)


class Balance(Enum):
    """Whether games may move for the sake of balance.

    KEEP: none does. MOVE: those do that an overloaded cluster gives away.
    """

    KEEP = "keep"
    MOVE = "move"


@dataclass(frozen=True, slots=True)
class GameMove:
    """Where a game goes for the sake of balance, and the sentence why."""

    cluster: str
    reason: str


@dataclass(slots=True)
class _ClusterLoad:
    """A cluster while games move: what it carries, how many games, and those that may still leave, lightest first."""

    name: str
    weight_ms: int
    games: int
    movable: list[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class _LoadMeasure:
    """The limits above which a cluster is overloaded; whole numbers, so that no sum depends on its order."""

    total_ms: int
    heaviest_ms: int
    clusters: int
    per_cluster: int

    def is_overloaded(self, weight_ms: int) -> bool:
        """Over 1.5 times the mean, and over mean and heaviest game together, which a packing from scratch never is."""
        above_mean = self.clusters * (weight_ms - self.heaviest_ms) > self.total_ms
        return above_mean and 2 * self.clusters * weight_ms > 3 * self.total_ms

    def may_take(self, weight_ms: int) -> bool:
        """Whether a cluster carries no more than the mean."""
        return self.clusters * weight_ms <= self.total_ms

    def is_heavy(self, game_ms: int) -> bool:
        """Over 1.5 times the mean of a place: every overloaded cluster has such a game."""
        return 2 * self.clusters * self.per_cluster * game_ms > 3 * self.total_ms

    def is_light(self, game_ms: int) -> bool:
        """At most the mean of a place: every full cluster that may take has such a game."""
        return self.clusters * self.per_cluster * game_ms <= self.total_ms


def most_moves(games: int) -> int:
    """Return how many of so many games one plan may move for the sake of balance: one in 20, and at least 2."""
    return max(2, games // 20)


def balance(
    packed: Mapping[str, str], movable: Container[str], weights_ms: Mapping[str, int], per_cluster: int
) -> dict[str, GameMove]:
    """Return where games move to, at most `most_moves` of them; nothing when no cluster is overloaded.

    The heaviest cluster gives its heaviest game to the lightest, which gives a light one back when it is full. No
    cluster becomes overloaded by what it takes, and none gets more games than `per_cluster`. When all games may move,
    repeating it ends with no cluster overloaded. The time grows as n log n.

    Args:
        weights_ms: weight of each game; empty when nothing is known.
    """
    if not weights_ms or not packed:
        return {}
    clusters = _clusters(packed, movable, weights_ms)
    measure = _LoadMeasure(
        sum(cluster.weight_ms for cluster in clusters),
        max(weights_ms[game] for game in packed),
        len(clusters),
        per_cluster,
    )
    moves: dict[str, GameMove] = {}
    for step in _steps(clusters, measure):
        if len(moves) + len(step) > most_moves(len(packed)):
            break
        moves |= step
    return moves


def _clusters(
    packed: Mapping[str, str], movable: Container[str], weights_ms: Mapping[str, int]
) -> tuple[_ClusterLoad, ...]:
    games: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for game, cluster in packed.items():
        games[cluster].append((weights_ms[game], game))
    return tuple(
        _ClusterLoad(
            name, sum(ms for ms, _ in held), len(held), sorted((ms, game) for ms, game in held if game in movable)
        )
        for name, held in games.items()
    )


def _steps(clusters: tuple[_ClusterLoad, ...], measure: _LoadMeasure) -> Iterator[dict[str, GameMove]]:
    """Yield the moves of one game after the other, with the game that makes room for it."""
    # no cluster is in both: who gives carries more than the mean throughout, who takes at most the mean before
    givers = [(-each.weight_ms, each.name, each) for each in clusters if measure.is_overloaded(each.weight_ms)]
    takers = [(each.weight_ms, each.name, each) for each in clusters if measure.may_take(each.weight_ms)]
    heapify(givers)
    heapify(takers)
    while givers and takers:
        giver, taker = givers[0][2], takers[0][2]
        if not giver.movable or not measure.is_heavy(giver.movable[-1][0]):
            heappop(givers)
        elif taker.games == measure.per_cluster and not (taker.movable and measure.is_light(taker.movable[0][0])):
            heappop(takers)
        else:
            heappop(givers)
            heappop(takers)
            yield _exchange(giver, taker, measure)
            if measure.is_overloaded(giver.weight_ms):
                heappush(givers, (-giver.weight_ms, giver.name, giver))
            if measure.may_take(taker.weight_ms):
                heappush(takers, (taker.weight_ms, taker.name, taker))


def _exchange(giver: _ClusterLoad, taker: _ClusterLoad, measure: _LoadMeasure) -> dict[str, GameMove]:
    carried = f"moved from {giver.name}, which carries {giver.weight_ms / 1000:.1f} seconds a round"
    moves = {_pass_on(giver, taker, -1): GameMove(taker.name, carried)}
    if taker.games > measure.per_cluster:
        moves[_pass_on(taker, giver, 0)] = GameMove(giver.name, f"moved from {taker.name}, which takes a heavier game")
    return moves


def _pass_on(source: _ClusterLoad, target: _ClusterLoad, position: int) -> str:
    """Return the game that was passed on; it may not leave its new cluster in the same plan."""
    weight_ms, game = source.movable.pop(position)
    source.weight_ms -= weight_ms
    source.games -= 1
    target.weight_ms += weight_ms
    target.games += 1
    return game


# only the ratios of weights matter where no game was timed
_SECONDS_PER_ROW = 0.001


def weights_ms(games: Iterable[str], loads: Mapping[str, Load]) -> dict[str, int]:
    """Return each game's weight in milliseconds a round, at least 1; empty when nothing is known of any of them.

    That is its seconds; where only its rows are known, as many rows of a usual game; else the median of the others, so
    that a new game counts as a usual one. Whole numbers: their sums are the same in any order.
    """
    games = set(games)
    known = {game: load for game, load in loads.items() if game in games}
    rate = _seconds_per_row(known.values())
    seconds = {game: load.rows * rate if load.seconds is None else load.seconds for game, load in known.items()}
    if not seconds:
        return {}
    usual = median(seconds.values())
    return {game: max(1, round(1000 * seconds.get(game, usual))) for game in games}


def _seconds_per_row(loads: Iterable[Load]) -> float:
    rates = [load.seconds / load.rows for load in loads if load.seconds is not None and load.rows]
    return median(rates) if rates else _SECONDS_PER_ROW
