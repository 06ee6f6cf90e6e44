"""Makes the `Status` of a root from its facts. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate

from demux.core.control.freshness import RECENT, Freshness, merge
from demux.core.control.games_and_rounds import TaskOutcome, TaskRecord
from demux.core.names import names_of
from demux.core.schemas.subject_choice import GameSchemas
from demux.core.settings.games import SubjectRule
from demux.core.text import duration_text
from demux.operations.status.facts import BronzeFile, Facts
from demux.operations.status.model import (
    LATE,
    WAITING,
    ClusterStatus,
    Failure,
    GameHealth,
    GameRound,
    GameStatus,
    Problem,
    RoundStatus,
    Status,
)

_RATE_OVER = timedelta(minutes=15)
_ROUNDS = 120
# points of all games' plots together: what keeps a page of 10,000 games small
_PARTS = 100_000
_PARTS_OF_GAME = 40


def status_of(
    root: str,
    facts: Facts,
    now: datetime,
    reasons: Mapping[str, str] | None = None,
    schemas_of: Callable[[str], GameSchemas] = lambda game: GameSchemas("default", SubjectRule(game)),
    fresh_within_s: Callable[[str], float | None] = lambda game: None,
) -> Status:
    """Return the status that the facts make.

    Args:
        reasons: why a game is not admitted, by name.
        fresh_within_s: a game's limit of freshness, in seconds.
    """
    history = _RecordHistory.of(facts.records)
    quarantined = _by_game(facts)
    total_s = sum(record.seconds for record in facts.records)
    names = sorted({*facts.games, *(facts.bronze or ()), *(facts.retired or ()), *history.by_game, *quarantined})
    parts = max(1, min(_PARTS_OF_GAME, _PARTS // max(1, len(names))))
    games = tuple(
        _game(
            name,
            facts,
            _GameHistory(history.by_game.get(name, ()), history.numbers, parts, total_s),
            quarantined.get(name, {}),
            now,
            (reasons or {}).get(name),
            schemas_of(name),
            fresh_within_s(name),
        )
        for name in names
    )
    return Status(
        root,
        now,
        games,
        _rounds(history, facts, games),
        _clusters(games),
        _problems(games, now),
        _no_bronze(facts),
        facts.notes,
        len(facts.records),
    )


@dataclass(frozen=True, slots=True)
class _RecordHistory:
    """The records by game and by round, each in order of time; `numbers` by round id, -1 for those no longer shown."""

    by_game: Mapping[str, Sequence[TaskRecord]]
    rounds: Sequence[Sequence[TaskRecord]]
    numbers: Mapping[str, int]

    @staticmethod
    def of(records: Iterable[TaskRecord]) -> _RecordHistory:
        by_game: dict[str, list[TaskRecord]] = defaultdict(list)
        by_round: dict[str, list[TaskRecord]] = defaultdict(list)
        for record in records:
            by_game[record.game].append(record)
            by_round[record.round_id].append(record)
        shown = list(by_round)[-_ROUNDS:]
        return _RecordHistory(by_game, [by_round[one] for one in shown], {one: at for at, one in enumerate(shown)})


@dataclass(frozen=True, slots=True)
class _GameHistory:
    """One game's records in order of time, with what is needed to compare them."""

    records: Sequence[TaskRecord]
    numbers: Mapping[str, int]
    parts: int
    total_s: float

    @property
    def last(self) -> TaskRecord | None:
        return self.records[-1] if self.records else None

    @property
    def last_success(self) -> datetime | None:
        return next((one.finished_at for one in reversed(self.records) if one.outcome is not TaskOutcome.FAILED), None)

    @property
    def last_failure(self) -> Failure | None:
        found = next((one for one in reversed(self.records) if one.outcome is TaskOutcome.FAILED), None)
        return None if found is None else Failure(found.condition or "", found.sentence or "", found.finished_at)

    @property
    def schema_ids(self) -> set[int]:
        return {schema_id for record in self.records for schema_id in record.schema_ids}

    @property
    def share(self) -> float | None:
        return sum(record.seconds for record in self.records) / self.total_s if self.total_s else None

    @property
    def recent(self) -> tuple[GameRound, ...]:
        shown = [record for record in self.records if record.round_id in self.numbers][-self.parts :]
        return tuple(GameRound(self.numbers[one.round_id], one.rows_in, one.seconds) for one in shown)

    def freshness(self, now: datetime) -> Freshness:
        return merge(record.freshness for record in self.records if now - record.finished_at <= RECENT)

    def rate(self, now: datetime) -> float:
        rows = sum(record.rows_in for record in self.records if now - record.finished_at <= _RATE_OVER)
        return rows / _RATE_OVER.total_seconds()


def _game(
    name: str,
    facts: Facts,
    past: _GameHistory,
    quarantined: Mapping[str, int],
    now: datetime,
    reason: str | None,
    schemas: GameSchemas,
    fresh_within_s: float | None,
) -> GameStatus:
    known, table = facts.games.get(name), facts.silver.get(name)
    came = None if facts.bronze is None else facts.bronze.get(name, ())
    bronze = None if came is None else sum(one.rows for one in came)
    done = _done(facts, name, quarantined)
    lag = None if bronze is None or done is None else max(0, bronze - done)
    failed = past.last is not None and past.last.outcome is TaskOutcome.FAILED
    admitted = known is not None and known.cluster is not None
    uses = (facts.uses.get((schemas.registry, one)) for one in past.schema_ids)
    seen = {schemas.version_of(known) for known in uses if known}
    return GameStatus(
        game=name,
        key=names_of(name).key,
        state=_state(failed, admitted, lag, past.last),
        reason=None if admitted else reason or "no plan has it yet: the next round makes one",
        cluster=known.cluster if known else None,
        bronze=bronze,
        quarantined=quarantined,
        lag_rows=lag,
        waiting_since=waiting_since(came or (), done) if lag and done is not None else None,
        rate=past.rate(now),
        last_success=past.last_success,
        failure=past.last_failure if failed else None,
        last_failure=past.last_failure,
        versions=tuple(sorted(seen)),
        table=table,
        seconds=past.last.seconds if past.last else None,
        share=past.share,
        recent=past.recent,
        dropped=(facts.dropped or {}).get(name, 0),
        retired=(facts.retired or {}).get(name, 0),
        freshness=past.freshness(now),
        fresh_within_s=fresh_within_s,
    )


def _done(facts: Facts, name: str, quarantined: Mapping[str, int]) -> int | None:
    """Return how many rows of bronze are in silver or quarantine, or were dropped; None where that is not known.

    Those that bronze has no more do not count.
    """
    if facts.quarantine is None or facts.dropped is None or facts.retired is None or name in facts.unreadable:
        return None
    table = facts.silver.get(name)
    rows = 0 if table is None else table.rows
    if rows is None:
        return None
    return max(0, rows + sum(quarantined.values()) + facts.dropped.get(name, 0) - facts.retired.get(name, 0))


def _state(failed: bool, admitted: bool, lag: int | None, last: TaskRecord | None) -> GameHealth:
    if failed:
        return GameHealth.FAILED
    if not admitted:
        return GameHealth.WAITING
    left = last is not None and last.outcome is TaskOutcome.BEHIND
    return GameHealth.BEHIND if lag or (lag is None and left) else GameHealth.CURRENT


def waiting_since(came: Sequence[BronzeFile], done: int) -> datetime | None:
    """Return when the first row came that is not among the first `done` ones; None when all are.

    Rows are read in the order in which they came, about: what a replay adds counts as read in that order too.
    """
    counts = list(accumulate(one.rows for one in came))
    at = bisect_right(counts, done)
    return came[at].at if at < len(came) else None


def _by_game(facts: Facts) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for one in facts.quarantine or ():
        if one.game is not None:
            found[one.game][one.cause] = found[one.game].get(one.cause, 0) + one.rows
    return found


def _no_bronze(facts: Facts) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for one in facts.quarantine or ():
        if one.game is None:
            counts[one.cause] += one.rows
    return dict(counts)


def _rounds(history: _RecordHistory, facts: Facts, games: Collection[GameStatus]) -> tuple[RoundStatus, ...]:
    """Return the rounds; what waited when each ended is counted back from what waits now."""
    ends = [max(record.finished_at for record in one) for one in history.rounds]
    rows = [sum(record.rows_in for record in one) for one in history.rounds]
    known = [game.lag_rows for game in games if game.lag_rows is not None]
    lags = _lags_at(ends, rows, sum(known), facts.bronze) if known and facts.bronze is not None else [None] * len(ends)
    found = []
    for number, records in enumerate(history.rounds):
        seconds = sum(record.seconds for record in records)
        apart = (ends[number] - ends[number - 1]).total_seconds() if number else 0.0
        found.append(
            RoundStatus(
                ends[number],
                len(records),
                sum(record.outcome is TaskOutcome.FAILED for record in records),
                rows[number],
                seconds,
                lags[number],
                rows[number] / apart if apart > 0 else None,
            )
        )
    return tuple(found)


def _lags_at(
    ends: Sequence[datetime], rows: Sequence[int], lag: int, bronze: Mapping[str, Sequence[BronzeFile]]
) -> list[int | None]:
    came = sorted((one.at, one.rows) for files in bronze.values() for one in files)
    times, sums = [at for at, _ in came], [0, *accumulate(count for _, count in came)]
    found: list[int | None] = []
    read_since = 0
    for end, count in zip(reversed(ends), reversed(rows), strict=True):
        came_since = sums[-1] - sums[bisect_right(times, end)]
        found.append(max(0, lag - came_since + read_since))
        read_since += count
    return found[::-1]


def _clusters(games: Iterable[GameStatus]) -> tuple[ClusterStatus, ...]:
    by_name: dict[str, list[GameStatus]] = defaultdict(list)
    for game in games:
        if game.cluster is not None:
            by_name[game.cluster].append(game)
    return tuple(
        ClusterStatus(
            name,
            len(these),
            sum(game.state is GameHealth.FAILED for game in these),
            sum(game.state is GameHealth.BEHIND for game in these),
            sum(game.lag_rows or 0 for game in these),
            sum(game.seconds or 0.0 for game in these),
        )
        for name, these in sorted(by_name.items())
    )


def _problems(games: Iterable[GameStatus], now: datetime) -> tuple[Problem, ...]:
    failed: dict[tuple[str, str], list[str]] = defaultdict(list)
    waiting: dict[tuple[str, str], list[str]] = defaultdict(list)
    late: dict[tuple[str, str], list[str]] = defaultdict(list)
    for game in games:
        if game.failure is not None:
            failed[game.failure.condition, game.failure.sentence].append(game.game)
        elif game.reason is not None:
            waiting[WAITING, game.reason].append(game.game)
        elif game.fresh_within_s is not None and game.is_late(now):
            late[LATE, _lateness(game.fresh_within_s)].append(game.game)
    kinds = [sorted(kind.items(), key=lambda item: (-len(item[1]), item[0])) for kind in (failed, waiting, late)]
    return tuple(Problem(*what, tuple(names)) for kind in kinds for what, names in kind)


def _lateness(fresh_within_s: float) -> str:
    return (
        f"Rows come later than `games.fresh_within` allows, {duration_text(fresh_within_s)}: 5 of 100 rows of the last "
        "hour, or the oldest row that waits. Run rounds more often (`demux run --every`), give them more cores, or "
        "allow a longer time."
    )
