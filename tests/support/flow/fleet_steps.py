"""How far a round of the fleet has come, as its tables say it from outside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import count, takewhile
from pathlib import Path

from demux.core.names import names_of
from tests.support.flow.fleet_driver import DriverReports
from tests.support.flow.root import Root

# a transaction that is a position
_POSITION = '{"txn":{"appId":"demux/'


class Landmark(Enum):
    """What can be seen of a round while it runs, in order."""

    BEGIN = "its begin"
    BRONZE = "bronze's commit"
    FILES = "the first file for silver"
    QUARANTINE = "the commit of bad rows"
    SILVER = "the first commit of good rows"


class Step(Enum):
    """What a round had done last, in order."""

    NOTHING = "nothing"
    BRONZE = "bronze committed"
    PLAN = "games planned"
    FILES = "files written"
    QUARANTINE = "bad rows committed"
    SOME_GAMES = "some games committed"
    GAMES = "all games committed"
    ROUND = "the round closed"


@dataclass(frozen=True, slots=True)
class Before:
    """The tables as they were before a round."""

    bronze: Path
    quarantine: Path
    rounds: Path
    silver: tuple[Path, ...]
    versions: Mapping[Path, int]
    changed: Mapping[Path, int]

    @staticmethod
    def of(root: Root, games: Iterable[str]) -> Before:
        """Look at the root; `games` are all that may have a table after the round."""
        below = root.folder / "silver"
        silver = tuple(below / names_of(game).key for game in games)
        bronze, quarantine, rounds = map(Path, (root.here.bronze, root.here.quarantine, root.here.rounds))
        versions = {table: _version(table) for table in (bronze, quarantine, rounds, *silver)}
        return Before(bronze, quarantine, rounds, silver, versions, {table: _changed(table) for table in silver})

    def reached(self, landmark: Landmark) -> bool:
        """Return whether the round has come so far."""
        match landmark:
            case Landmark.BEGIN:
                return True
            case Landmark.BRONZE:
                return self._grown(self.bronze)
            case Landmark.FILES:
                return any(_changed(table) != self.changed[table] for table in self.silver)
            case Landmark.QUARANTINE:
                return self._by_fleet(self.quarantine)
            case Landmark.SILVER:
                return any(map(self._by_fleet, self.silver))

    def step(self, reports: DriverReports, games: int) -> Step:
        """Return what the round has done last; of a driver that reported nothing, `games` had new rows."""
        committed = sum(map(self._by_fleet, self.silver))
        if reports.rounds or self._grown(self.rounds):
            return Step.ROUND
        if committed:
            return Step.GAMES if committed >= (reports.due or games) else Step.SOME_GAMES
        if self.reached(Landmark.QUARANTINE):
            return Step.QUARANTINE
        if self.reached(Landmark.FILES):
            return Step.FILES
        if reports.due is not None:
            return Step.PLAN
        return Step.BRONZE if self.reached(Landmark.BRONZE) else Step.NOTHING

    def _grown(self, table: Path) -> bool:
        return _commit(table, self.versions[table] + 1).exists()

    def _by_fleet(self, table: Path) -> bool:
        """Return whether one of the table's new commits is a fleet's; others only change its columns."""
        commits = (_commit(table, version) for version in count(self.versions[table] + 1))
        return any(_POSITION in commit.read_text(encoding="utf-8") for commit in takewhile(Path.exists, commits))


def _commit(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020}.json"


def _version(table: Path) -> int:
    found = (int(path.stem) for path in (table / "_delta_log").glob("*.json") if path.stem.isdigit())
    return max(found, default=-1)


def _changed(table: Path) -> int:
    """Return when a file came to the table's folder or left it; 0 where there is none."""
    return table.stat().st_mtime_ns if table.exists() else 0
