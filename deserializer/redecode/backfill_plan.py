"""Which days of which games are decoded again, what is done together, and what an earlier run has left. Pure.

A task is a game and a day: the records of which the source says that they are of this day (UTC).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from enum import Enum

from demux.core.errors import RangeInvalid
from deserializer.offsets.days import LAST_DAY, DayCounts, Span

_NOTHING = DayCounts()


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """What a backfill is asked to do: the same again is the same backfill.

    Attributes:
        games: exact names, sorted; none for all games.
        first: the first day; None where none is named.
        last: the last day; None where none is named.
    """

    games: tuple[str, ...]
    first: date | None
    last: date | None

    @property
    def span(self) -> Span:
        """The days of the range; where none is named, the first or the last that a calendar has."""
        return Span(self.first or date.min, self.last or LAST_DAY)

    def has(self, day: date) -> bool:
        """Return whether a day is asked for."""
        return (self.first is None or day >= self.first) and (self.last is None or day <= self.last)


class DayState(Enum):
    """How far a task is."""

    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Day:
    """A task and its state.

    Attributes:
        game: the exact name.
        day: the day.
        rows: how many rows bronze had of it when the backfill began.
        state: how far it is.
        counts: what was done.
        seconds: how long that took, as its share of what was done together.
        condition: of the error, where it failed.
        sentence: message and remedy.
    """

    game: str
    day: date
    rows: int
    state: DayState = DayState.WAITING
    counts: DayCounts = _NOTHING
    seconds: float = 0.0
    condition: str | None = None
    sentence: str | None = None


@dataclass(frozen=True, slots=True)
class BronzeDays:
    """What bronze has of some games.

    Attributes:
        days: those that are asked for, by game and day, with their rows.
        span: from which day to which one it has rows of these games; None where none says of which day it is.
        undated: rows that say of no day, by game.
    """

    days: tuple[Day, ...]
    span: Span | None
    undated: Mapping[str, int]

    @staticmethod
    def of(rows: Mapping[str, Mapping[date | None, int]], wanted: BackfillRequest) -> BronzeDays:
        """Return it, by how many rows each game has of each day; None: those that say of no day."""
        dated = sorted((game, day, n) for game, by_day in rows.items() for day, n in by_day.items() if day is not None)
        span = Span(min(day for _, day, _ in dated), max(day for _, day, _ in dated)) if dated else None
        days = tuple(Day(game, day, n) for game, day, n in dated if wanted.has(day))
        return BronzeDays(days, span, {game: by_day[None] for game, by_day in rows.items() if None in by_day})


@dataclass(frozen=True, slots=True)
class Backfill:
    """A backfill as the state table has it.

    Attributes:
        id: its own.
        asked: what it does.
        begun: when it began (UTC).
        days: its tasks.
    """

    id: str
    asked: BackfillRequest
    begun: datetime
    days: tuple[Day, ...]

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return all(day.state is DayState.DONE for day in self.days)

    def rows(self, *states: DayState) -> int:
        """Return how many rows the days have that are in one of these states."""
        return sum(day.rows for day in self.days if day.state in states)

    def seconds_left(self, parallelism: int) -> float | None:
        """Return about how long the rest takes, so many games at the same time; None where nothing is done yet."""
        done = [day for day in self.days if day.state is DayState.DONE and day.counts.rows_in]
        if not done:
            return None
        rate = sum(day.seconds for day in done) / sum(day.counts.rows_in for day in done)
        return _seconds(self.days, {}, rate, parallelism)


@dataclass(frozen=True, slots=True)
class BackfillChunk:
    """Days of one game that are done together, in one commit."""

    game: str
    days: tuple[Day, ...]

    @property
    def span(self) -> Span:
        """From its first day to its last."""
        return Span(self.days[0].day, self.days[-1].day)

    @property
    def rows(self) -> int:
        """How many rows it has, as far as is known."""
        return sum(day.rows for day in self.days)


def request_backfill(games: Iterable[str], since: datetime | None, until: datetime | None) -> BackfillRequest:
    """Return what is asked for: the days of these two times and those in between.

    Raises:
        RangeInvalid: the first time is of a later day than the last.
    """
    first, last = (None if one is None else _day(one) for one in (since, until))
    if first is not None and last is not None and first > last:
        raise RangeInvalid(
            f"The range begins on {first} and ends on {last}, before that.",
            "Give --from the earlier day and --to the later one; both days belong to the range.",
            first=first,
            last=last,
        )
    return BackfillRequest(tuple(sorted(set(games))), first, last)


def to_do(days: Sequence[Day], before: Backfill | None) -> tuple[Day, ...]:
    """Return the tasks of a backfill, by game and day.

    Args:
        days: the days that bronze has now.
        before: the same backfill as a run before has left it; None where it begins.
    """
    done = {(day.game, day.day): day for day in (() if before is None else before.days) if day.state is DayState.DONE}
    tasks = (done.get((day.game, day.day), day) for day in days)
    return tuple(sorted(tasks, key=lambda day: (day.game, day.day)))


def find_unfinished_backfill(backfills: Iterable[Backfill], wanted: BackfillRequest) -> Backfill | None:
    """Return the unfinished backfill of the same request, to continue it."""
    same = [each for each in backfills if each.asked == wanted]
    newest = max(same, key=lambda each: each.begun, default=None)
    return None if newest is None or newest.is_done else newest


def chunks(days: Sequence[Day], most_rows: int) -> dict[str, tuple[BackfillChunk, ...]]:
    """Return what is done together, by game: neighbours that are not done, up to so many rows; one day at least.

    Args:
        days: by game and day.
        most_rows: of a chunk that has more than one day.
    """
    found: defaultdict[str, list[list[Day]]] = defaultdict(list)
    last: Day | None = None
    for day in days:
        if day.state is not DayState.DONE:
            mine = found[day.game]
            follows = last is not None and last.game == day.game and last.state is not DayState.DONE
            if follows and sum(one.rows for one in mine[-1]) + day.rows <= most_rows:
                mine[-1].append(day)
            else:
                mine.append([day])
        last = day
    return {game: tuple(BackfillChunk(game, tuple(each)) for each in mine) for game, mine in found.items()}


def waves(by_game: Mapping[str, Sequence[BackfillChunk]], most: int, most_rows: int) -> list[tuple[BackfillChunk, ...]]:
    """Return what is done at the same time: of each game one chunk, as those of a game follow each other.

    The games with most chunks left come first.

    Args:
        by_game: what there is to do.
        most: chunks of a wave.
        most_rows: of a wave that has more than one chunk.
    """
    left = {game: list(mine) for game, mine in by_game.items() if mine}
    result: list[tuple[BackfillChunk, ...]] = []
    while left:
        wave: list[BackfillChunk] = []
        for game in sorted(left, key=lambda game: (-len(left[game]), game))[:most]:
            if wave and sum(chunk.rows for chunk in wave) + left[game][0].rows > most_rows:
                break
            wave.append(left[game].pop(0))
        result.append(tuple(wave))
        left = {game: mine for game, mine in left.items() if mine}
    return result


def complete_days(chunk: BackfillChunk, counts: Mapping[date, DayCounts], seconds: float) -> tuple[Day, ...]:
    """Return the days of a chunk that is done, those too that had no row when it was planned.

    Args:
        chunk: what was done.
        counts: by day.
        seconds: how long all of it took; a day has its share by rows.
    """
    known = {day.day: day for day in chunk.days}
    rows = max(1, sum(one.rows_in for one in counts.values()))
    found = (known.get(day) or Day(chunk.game, day, 0) for day in sorted({*known, *counts}))
    return tuple(_done(day, counts.get(day.day, DayCounts()), seconds, rows) for day in found)


def mark_failed(days: Iterable[Day], condition: str, sentence: str) -> tuple[Day, ...]:
    """Return days as they are when what they were done with has failed."""
    return tuple(replace(day, state=DayState.FAILED, condition=condition, sentence=sentence) for day in days)


def estimate(days: Iterable[Day], rates: Mapping[str, float], parallelism: int) -> float | None:
    """Return about how many seconds the days take; None where unknown.

    Args:
        days: the tasks.
        rates: seconds for a row, by game, in rounds of the past; a game without one is as the others are.
        parallelism: games at the same time.
    """
    if not rates:
        return None
    return _seconds(days, rates, sum(rates.values()) / len(rates), parallelism)


def require_found(days: Collection[Day], wanted: BackfillRequest, there: Span | None) -> None:
    """Check that bronze has a row of the range, of any game.

    Args:
        days: the days that it has.
        wanted: what is asked for.
        there: from which day to which one bronze has rows of these games; None where it has none with a time.

    Raises:
        RangeInvalid: it has none.
    """
    if days:
        return
    beginning = "without a first day" if wanted.first is None else f"from {wanted.first}"
    until = "without a last one" if wanted.last is None else f"to {wanted.last}"
    if there is None:
        raise RangeInvalid(
            "Bronze has no record of these games that says of which day it is.",
            "Records without a time are decoded again by `demux rebuild --game NAME` alone.",
        )
    raise RangeInvalid(
        f"Bronze has no record of these games in the range {beginning} {until}.",
        f"It has records from {there.first} to {there.last}: name a range in there.",
        first=there.first,
        last=there.last,
    )


def _done(day: Day, counts: DayCounts, seconds: float, all_rows: int) -> Day:
    return replace(day, state=DayState.DONE, counts=counts, seconds=seconds * counts.rows_in / all_rows)


def _seconds(days: Iterable[Day], rates: Mapping[str, float], usual: float, parallelism: int) -> float:
    by_game: defaultdict[str, float] = defaultdict(float)
    for day in days:
        if day.state is not DayState.DONE:
            by_game[day.game] += day.rows * rates.get(day.game, usual)
    # one game's commits follow each other
    return max(sum(by_game.values()) / parallelism, max(by_game.values(), default=0.0))


def _day(time: datetime) -> date:
    return min(time.astimezone(timezone.utc).date(), LAST_DAY)
