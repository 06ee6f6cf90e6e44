"""Which cluster each game's task runs on. Pure, deterministic, and stable: no game moves without need.

The rule and its bounds: docs/decisions/0012.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heapreplace
from itertools import count, islice
from math import ceil

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
        games: the games to place.
        placed: where games run now.
        per_cluster: most games on one cluster, at least 1.
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
