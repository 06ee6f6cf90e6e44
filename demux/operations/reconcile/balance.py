"""The arithmetic of the ledger: how often each record is in which table, and what that means. Pure.

Counting is the engine's (`duckdb_engine.py`): it gives tallies, one for all records that are in the same tables. What
they mean is decided here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum


class LedgerFault(Enum):
    """The kind of a difference; the value is the one in `demux reconcile --json`."""

    NOT_TAKEN_IN = "not taken in"
    TAKEN_TWICE = "taken twice"
    LOST = "lost"
    DOUBLED = "doubled"
    IN_BOTH = "in both"
    STRAY = "stray"


MEANING = {
    LedgerFault.NOT_TAKEN_IN: "in the source before bronze's offset, and neither in bronze nor in quarantine",
    LedgerFault.TAKEN_TWICE: "more often in bronze and quarantine than the source has it",
    LedgerFault.LOST: "in bronze before the game's offset, and neither in silver nor in quarantine",
    LedgerFault.DOUBLED: "more often in silver, or in quarantine, than in bronze",
    LedgerFault.IN_BOTH: "in silver and in quarantine; a replay under way or interrupted looks the same: run it again",
    LedgerFault.STRAY: "in silver or quarantine of a game of which bronze has no such record",
}


class Grain(Enum):
    """The grain of an account: a game, or each round (batch of bronze) of a game."""

    GAME = "game"
    ROUND = "round"


@dataclass(frozen=True, slots=True, order=True)
class RecordLocations:
    """How often one record of a game is in which table.

    Attributes:
        due: of these, how often before the offset of the game in bronze: this often it must be in silver or quarantine.
        quarantine: in quarantine at stage silver, read before silver.
        quarantine_now: the same, read after silver: what a replay moves in between is in one of the two at least.
        dropped: dropped from there, read after that: what is dropped in between is in one of the two at least. What
            is forgotten counts here too: bronze's row goes last.
        retired: of `bronze`, how often it was taken out of it since, being old.
    """

    bronze: int
    due: int
    silver: int
    quarantine: int
    quarantine_now: int
    dropped: int = 0
    retired: int = 0

    @property
    def kind(self) -> LedgerFault | None:
        """The difference of the record; None where it balances."""
        extra = self.silver + self.quarantine_now - self.bronze
        if extra > 0:
            if not self.bronze:
                return LedgerFault.STRAY
            return LedgerFault.IN_BOTH if self.silver and self.quarantine_now else LedgerFault.DOUBLED
        return LedgerFault.LOST if self.due > self.silver + self.quarantine + self.dropped else None

    @property
    def surplus(self) -> int:
        """How many of its rows are too many."""
        return max(0, self.silver + self.quarantine_now - self.bronze)

    @property
    def missing(self) -> int:
        """How many of its rows are lost."""
        return self.due - self.silver - self.quarantine - self.dropped if self.kind is LedgerFault.LOST else 0

    @property
    def quarantined(self) -> int:
        """How many of its rows count as quarantined: what came or went while silver was read does not."""
        return self.quarantine_now if self.surplus else min(self.quarantine, self.quarantine_now)

    @property
    def removed(self) -> int:
        """How many of its rows count as dropped: one that is in silver or quarantine too counts there."""
        return 0 if self.surplus else min(self.dropped, self.bronze - self.silver - self.quarantined)

    @property
    def waiting(self) -> int:
        """How many of its rows are unread."""
        return 0 if self.surplus else self.bronze - self.silver - self.quarantined - self.removed - self.missing


@dataclass(frozen=True, slots=True, order=True)
class SourceLocations:
    """How often one record of the source is in which table.

    Attributes:
        before: in the source, before bronze's offset; 0 where the source cannot say.
        now: in the source, at the end of the reading.
        is_unique: whether the source never gives a record twice; a table may hold one as often as it likes.
        forgotten: taken out of all tables on request.
        retired: of `bronze`, how often it was taken out of it since, being old.
    """

    bronze: int
    quarantine: int
    before: int
    now: int
    is_unique: bool
    dropped: int = 0
    forgotten: int = 0
    retired: int = 0

    @property
    def surplus(self) -> int:
        """How many of its rows are too many."""
        return max(0, self.bronze + self.quarantine - self._most) if self._most else 0

    @property
    def missing(self) -> int:
        """How many of its rows never came in."""
        return max(0, self.before - self.bronze - self.quarantine - self.dropped - self.forgotten)

    @property
    def removed(self) -> int:
        """How many of its rows count as dropped: one that is in bronze or quarantine too counts there."""
        return min(self.dropped, self._room) if self._most else self.dropped

    @property
    def erased(self) -> int:
        """How many of its rows count as forgotten: one that is somewhere else too counts there."""
        return min(self.forgotten, self._room - self.removed) if self._most else self.forgotten

    @property
    def _room(self) -> int:
        return max(0, self._most - self.bronze - self.quarantine)

    @property
    def _most(self) -> int:
        """How often it can have come in; 0 where it is unknown: what the source has no more was there once."""
        return 1 if self.is_unique else self.now

    @property
    def kind(self) -> LedgerFault | None:
        """The difference of the record; None where it balances."""
        if self.surplus:
            return LedgerFault.TAKEN_TWICE
        return LedgerFault.NOT_TAKEN_IN if self.missing else None


@dataclass(frozen=True, slots=True)
class Tally:
    """How many records are in the same places.

    Attributes:
        game: the exact name; None where no game is known, as with records that never became a bronze row.
        places: the tables that have each of them.
        first_batch: the first batch of bronze that has one; None where none has.
    """

    game: str | None
    places: RecordLocations | SourceLocations
    records: int
    first_batch: int | None
    last_batch: int | None


@dataclass(frozen=True, slots=True)
class Account:
    """Where a game's records are.

    `bronze + retired + surplus == silver + quarantined + dropped + waiting + missing`.

    Attributes:
        batch: the batch of bronze; None: all of them.
        quarantined: rows in quarantine at stage silver.
        waiting: rows of bronze that the game has not read yet.
        missing: rows of bronze that it has read and that are nowhere.
        surplus: rows of silver and quarantine that bronze does not have, or not so often.
        dropped: rows that were dropped from quarantine (`demux quarantine drop`), or are just being forgotten.
        retired: rows that were in bronze, and taken out of it since, being old (`demux maintain`).
    """

    game: str
    batch: int | None
    bronze: int
    silver: int
    quarantined: int
    waiting: int
    missing: int
    surplus: int
    dropped: int = 0
    retired: int = 0

    @property
    def balances(self) -> bool:
        """Whether `bronze + retired == silver + quarantined + dropped + waiting`, record for record."""
        return not self.missing and not self.surplus


@dataclass(frozen=True, slots=True)
class SourceAccount:
    """Where the records of the source are.

    Attributes:
        bronze: rows in bronze.
        quarantined: rows in quarantine at stage bronze.
        source: records in the source before bronze's offset; None where it cannot be counted.
        dropped: rows that were dropped from quarantine at stage bronze.
        retired: rows that were in bronze, and taken out of it since, being old.
        forgotten: rows that were taken out of all tables on request.
    """

    bronze: int
    quarantined: int
    source: int | None
    dropped: int = 0
    retired: int = 0
    forgotten: int = 0


@dataclass(frozen=True, slots=True)
class DifferenceExample:
    """One record that does not balance.

    Attributes:
        record_id: its position: topic/partition/offset, file#byte, or the number that bronze gave it.
        batch: the batch of bronze that took it in; None where bronze has no such record.
        owner: the game that has it in bronze, where that is another one.
    """

    record_id: str
    batch: int | None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class LedgerDifference:
    """Records of a game with which the same is wrong.

    Attributes:
        game: the exact name; None where no game is known.
        rows: how many rows are too many, or are not there.
        first_batch: the first batch of bronze with such a record; None where bronze has none of them.
        examples: the first of them, by batch and position.
    """

    kind: LedgerFault
    game: str | None
    rows: int
    first_batch: int | None
    last_batch: int | None
    examples: tuple[DifferenceExample, ...] = ()


@dataclass(frozen=True, slots=True)
class OffsetHole:
    """Offsets of a Kafka partition that are neither in bronze nor in quarantine, nor given up.

    They may be no records: a transaction's markers, and what compaction removed, have offsets too. Only the broker
    knows.

    Attributes:
        log: the topic; `name@2` for the second topic of this name.
        partition: the partition.
        offsets: how many are not there.
        ranges: the first of them, each the first offset and the one behind the last.
    """

    log: str
    partition: int
    offsets: int
    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Ledger:
    """The result of one reading of the tables.

    Attributes:
        intake: of the source; None where it was not looked at.
        accounts: one for each game, or for each round of each game; in this order.
        differences: what does not balance, by kind and game.
    """

    intake: SourceAccount | None
    accounts: tuple[Account, ...]
    differences: tuple[LedgerDifference, ...]
    holes: tuple[OffsetHole, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def balances(self) -> bool:
        """Whether every record is in exactly one place; holes are not counted, as they may be none."""
        return not self.differences


def accounts(tallies: Iterable[Tally], grain: Grain) -> tuple[Account, ...]:
    """Return the accounts of the tallies' games, by name, and by round if so asked; strays have no round."""
    together: defaultdict[tuple[str, int | None], list[Tally]] = defaultdict(list)
    for tally in tallies:
        if tally.game is not None:
            together[tally.game, tally.first_batch if grain is Grain.ROUND else None].append(tally)
    order = sorted(together, key=lambda key: (key[0], -1 if key[1] is None else key[1]))
    return tuple(_account(game, batch, together[game, batch]) for game, batch in order)


def _account(game: str, batch: int | None, tallies: Sequence[Tally]) -> Account:
    found = [(tally.places, tally.records) for tally in tallies if isinstance(tally.places, RecordLocations)]
    return Account(
        game,
        batch,
        sum((places.bronze - places.retired) * records for places, records in found),
        sum(places.silver * records for places, records in found),
        sum(places.quarantined * records for places, records in found),
        sum(places.waiting * records for places, records in found),
        sum(places.missing * records for places, records in found),
        sum(places.surplus * records for places, records in found),
        sum(places.removed * records for places, records in found),
        sum(places.retired * records for places, records in found),
    )


def differences(tallies: Iterable[Tally]) -> tuple[LedgerDifference, ...]:
    """Return the differences, without examples, in the order of the kinds and then of the games."""
    together: defaultdict[tuple[LedgerFault, str | None], list[Tally]] = defaultdict(list)
    for tally in tallies:
        if tally.places.kind is not None:
            together[tally.places.kind, tally.game].append(tally)
    kinds = list(LedgerFault)
    order = sorted(together, key=lambda key: (kinds.index(key[0]), key[1] or ""))
    return tuple(_difference(kind, game, together[kind, game]) for kind, game in order)


def _difference(kind: LedgerFault, game: str | None, tallies: Sequence[Tally]) -> LedgerDifference:
    rows = sum((tally.places.surplus or tally.places.missing) * tally.records for tally in tallies)
    first = [tally.first_batch for tally in tallies if tally.first_batch is not None]
    last = [tally.last_batch for tally in tallies if tally.last_batch is not None]
    return LedgerDifference(kind, game, rows, min(first, default=None), max(last, default=None))


def intake(tallies: Iterable[Tally], numbered: int | None) -> SourceAccount:
    """Return where the source's records are.

    Args:
        tallies: of all records with a position.
        numbered: how many records the source has besides, before bronze's offset; None where it cannot be asked.
    """
    found = [(tally.places, tally.records) for tally in tallies if isinstance(tally.places, SourceLocations)]
    before = sum(taken.before * records for taken, records in found)
    return SourceAccount(
        sum((taken.bronze - taken.retired) * records for taken, records in found),
        sum(taken.quarantine * records for taken, records in found),
        None if numbered is None else numbered + before,
        sum(taken.removed * records for taken, records in found),
        sum(taken.retired * records for taken, records in found),
        sum(taken.erased * records for taken, records in found),
    )


def keep_confirmed(first: Ledger, second: Ledger) -> Ledger:
    """Return the second reading with the differences that the first one has too, by kind and game."""
    known = {(one.kind, one.game) for one in first.differences}
    return replace(second, differences=tuple(one for one in second.differences if (one.kind, one.game) in known))
