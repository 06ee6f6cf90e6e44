"""One number for each game, how heavy it is, made from what is known of its load. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median

from demux.core.control.game_load import Load

# only the ratios of weights matter where nobody was timed
_SECONDS_PER_ROW = 0.001


def weights_ms(games: Iterable[str], loads: Mapping[str, Load]) -> dict[str, int]:
    """Return each game's weight in milliseconds a round, at least 1; empty when nothing is known of any of them.

    That is its seconds; where only its rows are known, as many rows of a usual game; else the median of the others, so
    that a new game counts as a usual one. Whole numbers: their sums are the same in any order.

    Args:
        games: the games to weigh.
        loads: what is known, by game; other games do not matter.
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
