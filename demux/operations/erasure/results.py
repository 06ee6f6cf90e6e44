"""Numbers of rows that a search found in a game, and that a request removed. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from demux.core.errors import PredicateMatchesAll
from demux.core.text import first_few, printable
from demux.operations.predicate.ast import Predicate, paths_in

# a batch behind all others: the game has read whatever bronze has
ALL_READ = 2**62


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The numbers of a search in a game.

    Attributes:
        game: the exact name; None for records that never became a row of bronze, and so have no game.
        silver: rows of its table that match.
        bronze: rows of bronze that go with these, and with those of quarantine.
        quarantine: rows of quarantine that match.
        unreadable: rows of quarantine that cannot be decided.
        suspect: of these, those whose bytes have one of the texts that are sought.
        unsearched: rows of bronze that could not be searched, as the game has not read them.
        table_rows: rows in its table.
        lacks: the columns of the predicate that its table has not; then nothing was searched.
    """

    game: str | None
    silver: int = 0
    bronze: int = 0
    quarantine: int = 0
    unreadable: int = 0
    suspect: int = 0
    unsearched: int = 0
    table_rows: int = 0
    lacks: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows go, in all places."""
        return self.silver + self.bronze + self.quarantine

    @property
    def is_everything(self) -> bool:
        """Whether all rows of its table match, and that is more than one."""
        return 1 < self.table_rows == self.silver


@dataclass(frozen=True, slots=True)
class RemovedRows:
    """The rows of a game that a request removed, by table; `game` as in `SearchResult`."""

    request: str
    game: str | None
    silver: int
    bronze: int
    quarantine: int


def require_some(predicate: Predicate, results: Iterable[SearchResult]) -> None:
    """Check that a predicate selects a person.

    Raises:
        PredicateMatchesAll: it names no column, or selects all rows of a table.
    """
    if not any(paths_in(predicate)):
        raise PredicateMatchesAll(
            "The predicate names no column, so it means all rows or none.",
            "Name a column that tells one person from the others; --force if all is really meant. Nothing was removed.",
        )
    whole = [printable(one.game or "") for one in results if one.is_everything]
    if whole:
        raise PredicateMatchesAll(
            f"The predicate means every row of {first_few(whole)}.",
            "See whether a quote or a % is in the wrong place; --force if all is really meant. Nothing was removed.",
            games=tuple(whole),
        )


# Delta's `userMetadata` of the commit
FORGOTTEN_ROWS = "demux: rows that were forgotten on request"
