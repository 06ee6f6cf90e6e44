"""Which cluster each game's task runs on. Pure, deterministic, and stable: nobody moves without need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import count


def pack(games: Iterable[str], placed: Mapping[str, str], per_cluster: int) -> dict[str, str]:
    """Return a cluster for each game, no cluster with more than `per_cluster` games.

    A placed game keeps its cluster while that has room; a new one goes to the fullest cluster that has room, so that
    few clusters are needed. The order of the arguments does not matter.

    Args:
        games: the games to place.
        placed: where games run now.
        per_cluster: most games on one cluster, at least 1.
    """
    load: Counter[str] = Counter()
    result: dict[str, str] = {}
    homeless: list[str] = []
    for game in sorted(games):
        cluster = placed.get(game)
        if cluster is not None and load[cluster] < per_cluster:
            result[game] = cluster
            load[cluster] += 1
        else:
            homeless.append(game)
    for game in homeless:
        cluster = _with_room(load, per_cluster)
        result[game] = cluster
        load[cluster] += 1
    return result


def _with_room(load: Counter[str], per_cluster: int) -> str:
    room = [cluster for cluster, games in load.items() if games < per_cluster]
    if room:
        return max(room, key=lambda cluster: (load[cluster], cluster))
    return next(name for number in count(1) if (name := f"cluster_{number:03d}") not in load)
