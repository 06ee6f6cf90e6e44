"""Days of many games decoded again in one Spark job, and put into place by a commit of each table, without Spark.

The order of writing is that of `redecode.py`, and so is what it refuses: a game of which anything is not plain is left
to Spark, which does it or says why not.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from demux.core.causes import RemovalReason, Stage
from demux.core.columns.arrow import table_of
from demux.core.columns.spark import columns_in_json
from demux.core.columns.types import Struct
from demux.core.delta.commit import Replacement
from demux.core.delta.log import file_path
from demux.core.delta.parquet_writer import TableFile, schema_json
from demux.core.delta.rewrite_rows import open_to_replace, replace_beside
from demux.core.delta.scan import table_rows
from demux.core.errors import DemuxError
from demux.core.extras import deltalake
from demux.core.names import names_of
from demux.core.schemas.ref import SchemaRef
from demux.core.settings.settings import Decoder, Sink
from demux.core.spark.tasks import parallel_tasks, run_tasks_over
from demux.core.storage.files import Storage
from demux.core.tables import SILVER_ORIGIN
from deserializer.decoders.schema_decision import UNDECIDED, Decisions
from deserializer.fleet.game_state import lasting
from deserializer.fleet.task_split import balanced
from deserializer.offsets.bronze_days import plain_bronze
from deserializer.redecode.backfill_plan import BackfillRequest, DayCounts, Span
from deserializer.redecode.backfill_worker import DaysWritten, GameDays, within, write_days
from deserializer.redecode.processed_rows import ReadState
from deserializer.redecode.replace_rows import Redecoder, RedecodeTask
from deserializer.silver.backend import tables_of
from deserializer.silver.file_quarantine import Quarantine
from deserializer.silver.file_table import SilverTable
from deserializer.silver.fit import fit
from deserializer.silver.rewrite import SAME_ROWS

_LOG = logging.getLogger("demux")
# the first finds out which schemas the rows have
_MOST_LOOKS = 3
# Spark writes bounds of times in milliseconds, cut off
_CUT = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A file of a table, as its log has it.

    Attributes:
        name: its path without folders: no two have the same.
        path: relative to the table, as the log has it.
        where: absolute.
        bytes: its size.
        first: no time of its rows is before; None where unknown.
        last: no time of its rows is after.
    """

    name: str
    path: str
    where: str
    bytes: int
    first: datetime | None
    last: datetime | None

    def may_have(self, span: Span | None) -> bool:
        """Return whether it may have a row of these days, or any row."""
        if span is None:
            return True
        begin, end = span.bounds
        return (self.last is None or self.last + _CUT >= begin) and (self.first is None or self.first < end)


@dataclass(frozen=True, slots=True)
class _TableWork:
    """What is to be done with a game, and its table as it is now: the sizes of the files that may have rows of it."""

    table: deltalake.DeltaTable
    sizes: Mapping[str, int]
    days: GameDays


class FileBackfill:
    """Decodes days of many games again; keeps what it learnt of their schemas.

    For one process, which holds the root's lock.
    """

    def __init__(self, redecoding: Redecoder, threads: int) -> None:
        """Prepare; `threads` look and commit at the same time."""
        self._redecoding = redecoding
        self._layout = redecoding.layout
        self._threads = threads
        self._decisions: dict[str, Decisions] = {}
        self._files: tuple[int, Mapping[str | None, Sequence[LoggedFile]]] = (-1, {})

    def decoded(self, wanted: Mapping[str, tuple[ReadState, Span]], request: str) -> dict[str, dict[date, DayCounts]]:
        """Return what became of the rows of these days, by game; a game that is not in it is left to Spark.

        Readers see one change of each table. A second call, also after a crash, does it again, and ends what the first
        one has begun.

        Args:
            wanted: by exact name, what the game has read, and the days.
            request: an id that no other call has.
        """
        works = self._works(wanted)
        now = datetime.now(timezone.utc)
        written, bad = self._written(works, request, now)
        if bad:
            layout, lock = self._layout, self._redecoding.lock
            Quarantine(layout.storage, layout.quarantine, layout.dropped, request, lock).append(bad, {})
        with ThreadPoolExecutor(self._threads, thread_name_prefix="commit") as pool:
            ended = list(pool.map(lambda one: _committed(works[one.game], one), written.values()))
        done = [one.game for one, is_there in zip(written.values(), ended, strict=True) if is_there]
        decoded = [game for game in done if written[game].counts]
        tasks = [RedecodeTask(game, wanted[game][0].version, wanted[game][1], request) for game in decoded]
        self._redecoding.clean(*tasks)
        self._decisions = {game: lasting(each) for game, each in self._decisions.items()}
        return {game: dict(written[game].counts) for game in done}

    def _written(
        self, works: dict[str, _TableWork], request: str, now: datetime
    ) -> tuple[dict[str, DaysWritten], list[TableFile]]:
        """Return what was written of each game that is not left to Spark, and the files for quarantine."""
        written: dict[str, DaysWritten] = {}
        bad: list[TableFile] = []
        left = dict(works)
        for _ in range(_MOST_LOOKS):
            done, files = run_days(self._redecoding, [work.days for work in left.values()], request, now)
            bad += files
            written |= {one.game: one for one in done if one.left is None and not one.unknown}
            for one in done:
                if one.left is not None:
                    _LOG.info("days of a game are left to Spark: %s", one.left)
            unknown = {one.game: one for one in done if one.unknown}
            learnt = self._learn({game: one.unknown for game, one in unknown.items()})
            left = self._with_tables([replace(works[game].days, replaced=unknown[game].replaced) for game in learnt])
            works |= left
            if not left:
                break
        return written, bad

    def _learn(self, refs: Mapping[str, Mapping[SchemaRef, int]]) -> list[str]:
        """Return the games of which it is decided what to do with these refs; their tables have the columns for it."""
        wanted = {game: {*self._known(game).by_ref, *more} for game, more in refs.items()}
        schemas, spark = self._redecoding.schemas, self._redecoding.spark
        found = schemas.lookup_all(wanted)

        def decide(game: str) -> bool:
            answers = found[game]
            if isinstance(answers, DemuxError):
                return False
            try:
                table = SilverTable.at(self._layout.storage, self._layout.silver(names_of(game).key))
                self._decisions[game] = fit(
                    spark, self._redecoding.layout.storage, table, answers, schemas.contract(game), refs[game]
                )
            except Exception as error:  # Spark says it
                _LOG.info("days of a game are left to Spark: %s", error)
                return False
            return True

        with ThreadPoolExecutor(self._threads, thread_name_prefix="learn") as pool:
            return [game for game, fits in zip(found, pool.map(decide, found), strict=True) if fits]

    def _known(self, game: str) -> Decisions:
        return self._decisions.get(game, UNDECIDED)

    def _works(self, wanted: Mapping[str, tuple[ReadState, Span]]) -> dict[str, _TableWork]:
        """Return what is to be done, by game, of those that are not left to Spark."""
        bronze = plain_bronze(self._layout)
        if bronze is None:
            return {}
        files = self._bronze_files(bronze)
        spans = {game: span for game, (_, span) in wanted.items()}
        layout, everything = self._layout, dict.fromkeys(wanted)
        aside = ids_by_game(layout.storage, layout.quarantine, "stage", Stage.SILVER.value, spans)
        forgotten = ids_by_game(layout.storage, layout.removed, "reason", RemovalReason.FORGOTTEN.value, everything)
        plain: list[GameDays] = []
        for game, (reading, span) in wanted.items():
            parts = files.get(game, ())
            names = {part.name for part in parts}
            waiting = {_name(path) for path in reading.waiting}
            # a file that waits and is not there was joined with others, which may be read
            if reading.version != bronze.version() or not waiting <= names:
                continue
            read = [part for part in parts if part.name not in waiting and part.may_have(span)]
            plain.append(
                GameDays(
                    game,
                    span,
                    self._layout.storage,
                    tuple(part.where for part in read),
                    sum(part.bytes for part in read),
                    self._layout.silver(names_of(game).key),
                    (),
                    UNDECIDED,
                    aside[game],
                    forgotten[game],
                    batch_id=reading.version,
                )
            )
        return self._with_tables(plain)

    def _with_tables(self, plain: Collection[GameDays]) -> dict[str, _TableWork]:
        """Return the same, by game, with the tables as they are now; those are left out that only Spark can write."""
        with ThreadPoolExecutor(self._threads, thread_name_prefix="open") as pool:
            return {work.days.game: work for work in pool.map(self._work, plain) if work is not None}

    def _work(self, days: GameDays) -> _TableWork | None:
        table = open_to_replace(self._layout.storage, days.table)
        if table is None:
            return None
        parts = parts_of_table(table, days.table, "_timestamp").get(None, ())
        sizes = {part.path: part.bytes for part in parts if part.may_have(days.span)}
        files = tuple(sizes)
        # its files changed since they were checked
        replaced = days.replaced if days.files == files else None
        decisions = self._known(days.game)
        if Struct((*decisions.columns, *SILVER_ORIGIN)) != columns_in_json(schema_json(table)):
            # another process had the root, and gave it other columns
            decisions = UNDECIDED
        return _TableWork(table, sizes, replace(days, files=files, decisions=decisions, replaced=replaced))

    def _bronze_files(self, bronze: deltalake.DeltaTable) -> Mapping[str | None, Sequence[LoggedFile]]:
        version, files = self._files
        if version != bronze.version():
            files = parts_of_table(bronze, self._layout.bronze, "timestamp")
            self._files = bronze.version(), files
        return files


def file_backfill(redecoding: Redecoder, sink: Sink, threads: int) -> FileBackfill | None:
    """Return what decodes many games together; None where all is for Spark: by the settings, or as it alone gets there.

    Args:
        redecoding: what decodes game by game.
        sink: who is to write silver.
        threads: that look and commit at the same time.
    """
    return None if bronze_of_files(redecoding, sink) is None else FileBackfill(redecoding, threads)


def bronze_of_files(redecoding: Redecoder, sink: Sink) -> deltalake.DeltaTable | None:
    """Return bronze if its files are decoded, and silver is written, without Spark; None where not, by settings too."""
    if redecoding.decoder is Decoder.FROM_PROTOBUF:
        return None
    if not tables_of(redecoding.spark, redecoding.layout, "", sink).takes_files:
        return None
    return plain_bronze(redecoding.layout)


def run_days(
    redecoding: Redecoder, works: Collection[GameDays], request: str, now: datetime
) -> tuple[list[DaysWritten], list[TableFile]]:
    """Return what became of each game, and the files for quarantine; where the job dies, all is left to Spark.

    Args:
        redecoding: what decodes.
        works: what to do; one Spark job does it all.
        request: what bad rows carry in quarantine.
        now: the time of decoding.
    """
    if not works:
        return [], []
    quarantine, storage = redecoding.layout.quarantine, redecoding.layout.storage

    def write(part: Sequence[GameDays]) -> Iterator[DaysWritten | TableFile]:
        return write_days(storage, part, quarantine, request, now)

    tasks = balanced([(days.bytes, days) for days in works], parallel_tasks(redecoding.spark))
    try:
        found = run_tasks_over(redecoding.spark, tasks, write)
    except Exception as error:  # Spark finds out which game does it
        return [DaysWritten(days.game, left=f"{type(error).__name__}: {error}") for days in works], []
    return [one for one in found if isinstance(one, DaysWritten)], [one for one in found if isinstance(one, TableFile)]


def parts_of_table(table: deltalake.DeltaTable, path: str, time_column: str) -> dict[str | None, list[LoggedFile]]:
    """Return the files of a table by the value of its partition, None without; with the bounds of a column of times."""
    actions = table_of(table.get_add_actions(flatten=True))
    names = table.metadata().partition_columns

    def column(name: str) -> list[Any]:
        return actions.column(name).to_pylist() if name in actions.column_names else [None] * actions.num_rows

    values = column(f"partition.{names[0]}") if names else [None] * actions.num_rows
    bounds = (map(_utc, column(f"{end}.{time_column}")) for end in ("min", "max"))
    found: defaultdict[str | None, list[LoggedFile]] = defaultdict(list)
    for value, entry, size, first, last in zip(values, column("path"), column("size_bytes"), *bounds, strict=True):
        found[value].append(LoggedFile(_name(entry), entry, file_path(path, unquote(entry)), size, first, last))
    return found


def _committed(work: _TableWork, written: DaysWritten) -> bool:
    """Return whether what was written is in the table now; whatever is not is in no table, and left to Spark."""
    if not written.counts:
        return True
    removed = {path: work.sizes[path] for path in written.replaced}
    replacement = Replacement("WRITE", removed, written.files, mark=SAME_ROWS)
    try:
        return replace_beside(work.days.storage, work.table, work.days.table, replacement)
    except Exception as error:  # Spark says what is wrong
        _LOG.info("days of a game are left to Spark: %s", error)
        return False


def ids_by_game(
    storage: Storage, path: str, column: str, value: str, spans: Mapping[str, Span | None]
) -> Mapping[str, frozenset[str]]:
    """Return ids of records by game, in a table that may not be there.

    Args:
        storage: how the table is reached.
        path: the table's.
        column: one that has the same value in all rows that count.
        value: this one.
        spans: the games that count, and of which days; None: all rows.
    """
    found: defaultdict[str, set[str]] = defaultdict(set)
    if storage.table_exists(path):
        names = pa.array(sorted(spans), pa.string())
        for batch in table_rows(storage, storage.table(path), path, ["game_name", "record_id", "timestamp", column]):
            mine = pc.and_(pc.equal(batch.column(column), value), pc.is_in(batch.column("game_name"), names))
            rows = batch.filter(pc.fill_null(mine, False))
            for game in pc.unique(rows.column("game_name")).to_pylist():
                own, span = rows.filter(pc.equal(rows.column("game_name"), game)), spans[game]
                own = own if span is None else own.filter(within(own.column("timestamp"), span))
                found[game].update(own.column("record_id").to_pylist())
    return defaultdict(frozenset, {game: frozenset(ids) for game, ids in found.items()})


def games_retired_of_files(
    storage: Storage, path: str, games: Collection[str], wanted: BackfillRequest
) -> frozenset[str]:
    """Return the games of which rows of the range were retired from bronze; they may be there a moment yet.

    Args:
        storage: how the table of removed rows is reached.
        path: the table's; there may be none.
        games: exact names.
        wanted: the range.
    """
    spans = dict.fromkeys(games, wanted.span)
    return frozenset(
        game for game, ids in ids_by_game(storage, path, "reason", RemovalReason.RETIRED.value, spans).items() if ids
    )


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _utc(at: datetime | None) -> datetime | None:
    return None if at is None else at.replace(tzinfo=timezone.utc) if at.tzinfo is None else at
