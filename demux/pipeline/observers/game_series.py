"""Which games have series of their own, and what is known of each: bounded, however many games a root has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

# the status page's metrics have the same
MOST_GAMES = 500
OTHER = "other"


class GameSeries:
    """The games of one root, as one process has seen them; the first ones keep series of their own."""

    def __init__(self, most: int = MOST_GAMES) -> None:
        """Prepare for so many games with series of their own."""
        self._most = most
        self._own: set[str] = set()
        self._lag_rows: dict[str, int] = {}
        self._fresh_at: dict[str, datetime] = {}

    def label(self, game: str) -> str:
        """Return the value of the game's attribute: its exact name, or `other` where there are too many."""
        if game not in self._own and len(self._own) < self._most:
            self._own.add(game)
        return game if game in self._own else OTHER

    def left(self, game: str, rows: int) -> None:
        """Remember how many rows of the game wait."""
        self._lag_rows[game] = rows

    def fresh(self, games: Iterable[str], at: datetime) -> None:
        """Remember that these games have all that bronze had at a time."""
        self._fresh_at.update(dict.fromkeys(games, at))

    def lag_rows(self) -> Mapping[str, int]:
        """Return the rows that wait, by label; the sum for `other`."""
        found: dict[str, int] = {}
        for game, rows in tuple(self._lag_rows.items()):
            label = self.label(game)
            found[label] = found.get(label, 0) + rows
        return found

    def age_s(self, now: datetime) -> Mapping[str, float]:
        """Return how old the state of bronze is that a game has, by label; the oldest for `other`."""
        found: dict[str, float] = {}
        for game, at in tuple(self._fresh_at.items()):
            label = self.label(game)
            found[label] = max(found.get(label, 0.0), (now - at).total_seconds())
        return found
