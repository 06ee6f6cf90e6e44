"""Files of bronze to files of silver and quarantine, one game after the other, in a Spark worker; nothing is committed.

One game's failure is its own: what it wrote is removed, and the next one begins.
"""

from __future__ import annotations

import shlex
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from demux.core.columns.arrow import conform_table
from demux.core.columns.types import Struct
from demux.core.control.freshness import NO_FRESHNESS, Freshness, merge
from demux.core.delta.parquet_writer import TableFile, TableWriter, remove_files
from demux.core.delta.scan import batch_rows
from demux.core.error_mapping import as_demux_error
from demux.core.errors import BronzeRewritten, DemuxError
from demux.core.schemas.ref import SchemaRef
from demux.core.storage.files import Storage
from demux.core.tables import QUARANTINE, SILVER_ORIGIN
from deserializer.decoders.arrow import INPUT, REF, bad_rows, good_rows, parts_of
from deserializer.decoders.schema_decision import Decisions, UnknownRef
from deserializer.fleet.replaced_rows import ReplacedRows, RowsByDay
from deserializer.fleet.row_ages import ages_of
from deserializer.offsets.days import DayCounts, among

# opens the files of a game, one after the other
_Reader = Callable[[], Iterator[Any]]
# of a game, before its turn
_READ_NOW_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class GameFiles:
    """Some files of a game, and what to do with their rows.

    Attributes:
        storage: how the files and the table are reached.
        game: the exact name.
        paths: of the files, absolute.
        sizes: of the files, in bytes.
        table: the path of the silver table.
        decisions: for every schema ref that is known of.
        batch_id: the number that its bad rows carry in quarantine.
        settled: ids of records that are left out: they are in silver or quarantine already, or are to be forgotten.
        replaces: the rows of silver that its rows replace; None: they are appended.
    """

    storage: Storage
    game: str
    paths: tuple[str, ...]
    sizes: tuple[int, ...]
    table: str
    decisions: Decisions
    batch_id: int
    settled: frozenset[str] = frozenset()
    replaces: ReplacedRows | None = None


@dataclass(frozen=True, slots=True)
class WrittenGame:
    """What became of a `GameFiles`.

    Attributes:
        game: the exact name.
        paths: of the files that were read.
        rows_in: how many rows they have.
        rows_bad: how many of them went to quarantine.
        refs: the schema refs of the rows.
        silver: the files for silver.
        unknown: rows by ref without a decision: nothing was written.
        error: why nothing was written.
        seconds: how long it took.
        removed: where rows are replaced, the files of silver that go.
        days: where rows are replaced, what became of those of each day.
        ages: of the decoded rows, at the time of decoding.
    """

    game: str
    paths: tuple[str, ...] = ()
    rows_in: int = 0
    rows_bad: int = 0
    refs: frozenset[SchemaRef] = frozenset()
    silver: tuple[TableFile, ...] = ()
    unknown: Mapping[SchemaRef, int] = field(default_factory=dict)
    error: DemuxError | None = None
    seconds: float = 0.0
    removed: tuple[str, ...] = ()
    days: Mapping[date, DayCounts] = field(default_factory=dict)
    ages: Freshness = NO_FRESHNESS


def write_games(
    storage: Storage, works: Iterable[GameFiles], quarantine: str, query_id: str, now: datetime
) -> Iterator[WrittenGame | TableFile]:
    """Yield what became of each, and then the files for quarantine, which hold the bad rows of all of them.

    Args:
        storage: how the quarantine table is reached.
        works: what to do.
        quarantine: the path of the quarantine table.
        query_id: what bad rows carry there.
        now: the time of decoding.
    """
    width = storage.side_by_side(quarantine)
    with TableWriter(storage, quarantine, QUARANTINE) as bad, ThreadPoolExecutor(width, "send") as senders:
        task = _WriterTask(quarantine, query_id, now)
        sent: deque[_SendingGame] = deque()
        for work, opened in _read_ahead(works, width):
            sent.append(task.decode(work, opened, senders))
            if len(sent) > width:
                yield from sent.popleft().finish(bad)
        for game in sent:
            yield from game.finish(bad)
        yield from bad.close()


def _read_ahead(works: Iterable[GameFiles], width: int) -> Iterator[tuple[GameFiles, Future[_Reader]]]:
    """Yield what opens the files of each game, of so many games read at the same time."""
    with ThreadPoolExecutor(width, "read") as pool:
        waiting: deque[tuple[GameFiles, Future[_Reader]]] = deque()
        for work in works:
            waiting.append((work, pool.submit(_reader, work)))
            if len(waiting) > width:
                yield waiting.popleft()
        yield from waiting


@dataclass(frozen=True, slots=True)
class _SendingGame:
    """A game whose rows are decoded, and whose files are sent.

    Attributes:
        work: what was to do.
        written: what became of it, but for its files.
        files: those for silver, once they are sent.
        bad: its bad rows.
    """

    work: GameFiles
    written: WrittenGame
    files: Future[list[TableFile]] | None = None
    bad: TableWriter | None = None

    def finish(self, bad: TableWriter) -> Iterator[WrittenGame | TableFile]:
        """Yield what became of the game, and files of its own for quarantine, where it has many bad rows."""
        if self.files is None or self.bad is None:
            yield self.written
            return
        files: list[TableFile] = []
        try:
            files = self.files.result()
            with self.bad as own:
                further = own.hand_over(bad)
        except Exception as failure:  # one game's failure must not stop its neighbours
            # what cannot be removed now is in no table, and VACUUM removes it
            with suppress(OSError, DemuxError):
                remove_files(self.work.storage, self.work.table, [file.path for file in files])
            yield _failed(self.work, failure)
            return
        yield replace(self.written, silver=tuple(files))
        yield from further


@dataclass(frozen=True, slots=True)
class _WriterTask:
    """What the games of a task have in common.

    One thread decodes them one after the other, so that memory is used again; others wait for the store.
    """

    quarantine: str
    query_id: str
    now: datetime

    def decode(self, work: GameFiles, opened: Future[_Reader], senders: ThreadPoolExecutor) -> _SendingGame:
        """Decode a game's rows; its files are sent later."""
        try:
            return self._decode(work, opened.result(), senders)
        except Exception as failure:  # one game's failure must not stop its neighbours
            return _SendingGame(work, _failed(work, failure))

    def _decode(self, work: GameFiles, opened: _Reader, senders: ThreadPoolExecutor) -> _SendingGame:
        columns = Struct((*work.decisions.columns, *SILVER_ORIGIN))
        rows_in = rows_bad = 0
        refs: set[SchemaRef] = set()
        ages: list[Freshness] = []
        replaces, removed = work.replaces, dict[str, bool]()
        days = None if replaces is None else RowsByDay(Counter(), Counter())
        began = time.monotonic()
        if replaces is not None:
            # before a table gets columns for these rows
            removed = replaces.files_with_rows(work.storage, work.table, work.game, opened(), work.settled)
        with ExitStack() as stack:
            silver = stack.enter_context(TableWriter(work.storage, work.table, columns))
            own = TableWriter(work.storage, self.quarantine, QUARANTINE)
            stack.push(own)
            try:
                for part in parts_of(_rows(work, opened()), work.decisions):
                    rows_in, rows_bad = rows_in + len(part.rows), rows_bad + len(part.bad)
                    refs.add(part.ref)
                    if part.good:
                        silver.add(good_rows(part, columns, self.now))
                        ages.append(ages_of(part, self.now))
                    if part.bad:
                        own.add(bad_rows(part, work.game, self.query_id, work.batch_id, self.now))
                    if days is not None:
                        days.add(part)
                if replaces is not None:
                    for rows in replaces.other_rows(work.storage, work.table, removed, columns):
                        silver.add(rows)
                silver.encode()
            except UnknownRef:
                return _SendingGame(
                    work, WrittenGame(work.game, work.paths, unknown=unknown_refs(opened(), work.decisions))
                )
            written = WrittenGame(
                work.game,
                work.paths,
                rows_in,
                rows_bad,
                frozenset(refs),
                seconds=time.monotonic() - began,
                removed=tuple(removed),
                days={} if days is None else days.counts(),
                ages=merge(ages),
            )
            return _SendingGame(work, written, senders.submit(_sent, stack.pop_all(), silver), own)


def _sent(stack: ExitStack, silver: TableWriter) -> list[TableFile]:
    with stack:
        return silver.close()


def _failed(work: GameFiles, failure: Exception) -> WrittenGame:
    """Return why nothing was written of a game."""
    if isinstance(failure, FileNotFoundError):
        failure = BronzeRewritten(
            f"A file of bronze was removed before it was read: {failure.filename or failure}.",
            f"Make the game's table again from bronze: `demux rebuild --game {shlex.quote(work.game)}`; and let no "
            "VACUUM of bronze remove files that a game has still to read.",
        )
    return WrittenGame(work.game, work.paths, error=as_demux_error(failure))


def _rows(work: GameFiles, opened: Iterator[Any]) -> Iterator[pa.RecordBatch]:
    for rows in bronze_rows(opened, work.settled):
        yield rows if work.replaces is None else rows.filter(among(rows.column("timestamp"), work.replaces.span))


def _reader(work: GameFiles) -> _Reader:
    """Return what opens the files, one after the other; small ones in a store are read now."""
    if work.storage.is_folder(work.table) or sum(work.sizes) > _READ_NOW_BYTES:
        return lambda: _opened(work)
    data = [work.storage.read(path) for path in work.paths]
    return lambda: (pq.ParquetFile(pa.BufferReader(each)) for each in data)


def _opened(work: GameFiles) -> Iterator[Any]:
    for path, size in zip(work.paths, work.sizes, strict=True):
        with work.storage.open(path, size) as file:
            yield pq.ParquetFile(file)


def unknown_refs(files: Iterable[Any], decisions: Decisions) -> dict[SchemaRef, int]:
    """Return how many rows of open files of bronze have each schema ref without a decision; reads only its columns."""
    names = [column.name for column in REF]
    found: Counter[SchemaRef] = Counter()
    for file in files:
        counted = (
            conform_table(file.read(columns=_columns_in(file, REF)), REF).group_by(names).aggregate([([], "count_all")])
        )
        for row in counted.to_pylist():
            found[SchemaRef(*(row[name] for name in names))] += row["count_all"]
    return {ref: rows for ref, rows in found.items() if ref not in decisions.by_ref}


def bronze_rows(files: Iterable[Any], without: frozenset[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of open Parquet files of bronze in the columns of `INPUT`, but the records with these ids."""
    settled = pa.array(sorted(without), pa.string()) if without else None
    for file in files:
        # the other cores have tasks of their own: threads would only wait for one another
        for batch in file.iter_batches(batch_rows(file.metadata), columns=_columns_in(file, INPUT), use_threads=False):
            table = conform_table(pa.Table.from_batches([batch]), INPUT)
            if settled is not None:
                table = table.filter(pc.invert(pc.is_in(table.column("record_id"), settled)))
            yield from table.to_batches()


def _columns_in(file: Any, columns: Struct) -> list[str]:
    # files are older than some columns
    names = set(file.schema_arrow.names)
    return [column.name for column in columns if column.name in names]
