"""Reads the facts of a root: control tables, quarantine's causes, and the logs of all tables.

By `deltalake`, without Spark: no row of bronze or silver is read. Writes nothing. What is known of a file that was read
once is kept, as files of a Delta table never change; so a second reading costs what is new.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timezone
from itertools import accumulate
from typing import Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from demux.core.causes import RemovalReason, Stage
from demux.core.columns.arrow import python_rows, table_of
from demux.core.control.games_and_rounds import KnownGame, TaskRecord, task_record
from demux.core.delta.live_files import live_files
from demux.core.errors import DemuxError
from demux.core.extras import deltalake
from demux.core.names import names_of
from demux.core.registry.protocol import SubjectVersion
from demux.core.root.layout import Layout
from demux.core.schemas.subject_choice import uses_by_id
from demux.core.tables import ROUNDS
from demux.core.text import printable
from demux.operations.status.facts import BronzeFile, Facts, QuarantinedRows, TableFacts

_LOG = logging.getLogger("demux")
_THREADS = 4
_SETTLED_NS = 2_000_000_000
# so that rounds of years, or of 10,000 games, fit into memory
_MOST_RECORDS = 200_000
_QUARANTINE = ["stage", "cause", "game_name"]

_NO_BRONZE: Mapping[str, Sequence[BronzeFile]] = {}
_NO_QUARANTINE: Sequence[QuarantinedRows] = ()
_NO_ROWS: Mapping[str, int] = {}

Found = TypeVar("Found")


class StatusReader:
    """Reads one root, again and again; not from several threads at the same time."""

    def __init__(self, layout: Layout, now_ns: Callable[[], int] = time.time_ns) -> None:
        """Prepare for a root that is reached without Spark; reads nothing yet."""
        self._layout = layout
        self._storage = layout.storage
        self._now_ns = now_ns
        self._records: dict[str, tuple[TaskRecord, ...]] = {}
        self._silver: dict[str, tuple[int, TableFacts]] = {}
        self._kept: dict[str, tuple[str, Any]] = {}
        # in this reading
        self._open: dict[str, deltalake.DeltaTable] = {}
        # by sentence, in order: there may be one for each game
        self._notes: dict[str, None] = {}
        self._reported: set[str] = set()

    def read(self) -> Facts:
        """Return the facts as they are now.

        Bronze is read last: what comes in meanwhile counts as waiting, and never as decoded before it came.
        """
        layout = self._layout
        is_there = self._storage.state(layout.root) is not None
        self._open = {}
        self._notes = {} if is_there else {f"There is no folder {layout.root} (yet).": None}
        games = self._table(layout.games, _games)
        records = self._table(layout.rounds, self._read_records)
        names = {*(games or ()), *(record.game for record in records or ()), *(self._bronze() or ())}
        silver, unreadable = self._tables(names)
        return Facts(
            games=games or {},
            records=records or (),
            silver=silver,
            unreadable=unreadable,
            uses=self._table(layout.schemas, _uses) or {},
            quarantine=self._table(layout.quarantine, _quarantined, _NO_QUARANTINE),
            # what is dropped is written down before it goes
            dropped=self._table(layout.dropped, _dropped, _NO_ROWS),
            # and so is what goes from bronze
            retired=self._table(layout.removed, _retired, _NO_ROWS),
            bronze=self._bronze(),
            notes=tuple(self._notes),
        )

    def _table(
        self, path: str, read: Callable[[deltalake.DeltaTable], Found], nothing: Found | None = None
    ) -> Found | None:
        """Return a table's content, read again only if it changed; `nothing` without one, None if it is unreadable."""
        try:
            table = self._open.get(path)
            if table is None:
                table = self._open[path] = self._storage.table(path)
            else:
                table.update_incremental()
            # one that was made again counts its versions from 0 again
            now = f"{table.metadata().id}/{table.version()}"
            kept = self._kept.get(path)
            if kept is None or kept[0] != now:
                kept = self._kept[path] = now, read(table)
            found: Found = kept[1]
        except deltalake.exceptions.TableNotFoundError:
            return nothing
        except Exception as error:  # one table that asks too much must not hide the others
            self._note(path, error)
            return None
        return found

    def _bronze(self) -> Mapping[str, Sequence[BronzeFile]] | None:
        return self._table(self._layout.bronze, _arrivals, _NO_BRONZE)

    def _note(self, path: str, error: Exception) -> None:
        sentence = (
            f"The table {path} cannot be read without Spark ({type(error).__name__}); "
            "`demux reconcile --spark` counts it."
        )
        if sentence not in self._reported:
            self._reported.add(sentence)
            _LOG.warning("%s: %s", path, printable(str(error)))
        self._notes[sentence] = None

    def _read_records(self, table: deltalake.DeltaTable) -> Sequence[TaskRecord]:
        """Return the newest records, in order of time."""
        files = sorted(_actions(table).to_pylist(), key=lambda file: file["modification_time"], reverse=True)
        before = accumulate((file.get("num_records") or 0 for file in files), initial=0)
        paths = [unquote(file["path"]) for file, rows in zip(files, before, strict=False) if rows < _MOST_RECORDS]
        if len(paths) < len(files):
            self._notes[f"Only the newest {_MOST_RECORDS:,} tasks on record are shown."] = None
        unknown = [path for path in paths if path not in self._records]
        known = self._records | dict(zip(unknown, self._each(self._records_in, unknown), strict=True))
        self._records = {path: known[path] for path in paths}
        found = (one for path in reversed(paths) for one in known[path])
        return tuple(sorted(found, key=lambda one: one.finished_at))

    def _records_in(self, path: str) -> tuple[TaskRecord, ...]:
        # a file of one round is small: one request
        data = pa.BufferReader(self._storage.read(f"{self._layout.rounds}/{path}"))
        rows = python_rows(pq.ParquetFile(data).read([column.name for column in ROUNDS.columns]))
        return tuple(task_record(row) for row in rows if row["game_name"] is not None)

    def _tables(self, games: Iterable[str]) -> tuple[dict[str, TableFacts], frozenset[str]]:
        """Return the silver tables by game, and the games whose table cannot be read."""
        names = sorted(games)
        looked = dict(zip(names, self._each(self._silver_table, names), strict=True))
        for name, found in looked.items():
            if isinstance(found, Exception):
                self._note(self._layout.silver(names_of(name).key), found)
        unreadable = frozenset(name for name, found in looked.items() if isinstance(found, Exception))
        return {name: found for name, found in looked.items() if isinstance(found, TableFacts)}, unreadable

    def _each(self, read: Callable[[str], Found], names: Sequence[str]) -> list[Found]:
        beside = self._storage.side_by_side(self._layout.root)
        if beside == 1:  # a folder answers at once: threads would wait for each other
            return [read(name) for name in names]
        with ThreadPoolExecutor(_THREADS * beside, thread_name_prefix="status") as pool:
            return list(pool.map(read, names))

    def _silver_table(self, game: str) -> TableFacts | Exception | None:
        path = self._layout.silver(names_of(game).key)
        try:
            # each commit is a new file in this folder
            log = self._storage.state(f"{path}/_delta_log")
        except DemuxError as error:
            return error
        if log is None:
            return None
        kept = self._silver.get(game)
        if kept is not None and kept[0] == log.stamp:
            return kept[1]
        try:
            found = self._size(path, log.names)
        except deltalake.exceptions.TableNotFoundError:
            return None
        except Exception as error:  # as in `_table`
            return error
        # a file system tells times of some milliseconds: another commit may have the same one
        if self._now_ns() - log.stamp > _SETTLED_NS:
            self._silver[game] = log.stamp, found
        return found

    def _size(self, path: str, log: Sequence[str]) -> TableFacts:
        """Return a table's size by the names in its log; `deltalake` asks a store seven times for it."""
        with suppress(FileNotFoundError):  # a checkpoint came, and old commits went
            files = live_files(self._storage, path, log)
            if files is not None:
                rows = [file.rows for file in files if file.rows is not None]
                size = sum(file.bytes for file in files)
                return TableFacts(len(files), size, sum(rows) if len(rows) == len(files) else None)
        return _sizes(_actions(self._storage.table(path)))


def _actions(table: deltalake.DeltaTable) -> pa.Table:
    """Return the table's files: path, size_bytes, modification_time (ms), num_records, partition values."""
    found = table_of(table.get_add_actions(flatten=True))
    # bounds of all columns are many, and of no use here
    wanted = ("path", "size_bytes", "modification_time", "num_records")
    return found.select([name for name in found.column_names if name in wanted or name.startswith("partition.")])


def _sizes(files: pa.Table) -> TableFacts:
    counts = files.column("num_records") if "num_records" in files.column_names else None
    known = counts is not None and counts.null_count == 0
    return TableFacts(
        len(files), pc.sum(files.column("size_bytes")).as_py() or 0, (pc.sum(counts).as_py() or 0) if known else None
    )


def _arrivals(table: deltalake.DeltaTable) -> Mapping[str, Sequence[BronzeFile]]:
    found: dict[str, list[BronzeFile]] = defaultdict(list)
    files = _actions(table)
    if len(files):
        files = files.select(["modification_time", "num_records", "partition.game_name"]).sort_by("modification_time")
        for at, rows, game in zip(*(column.to_pylist() for column in files.columns), strict=True):
            if game is not None:
                found[game].append(BronzeFile(datetime.fromtimestamp(at / 1000, timezone.utc), rows or 0))
    return {game: tuple(files) for game, files in found.items()}


def _games(table: deltalake.DeltaTable) -> Mapping[str, KnownGame]:
    rows = _select(table, "SELECT * FROM rows")
    return {row["game_name"]: KnownGame(row["game_name"], row["cluster"], row["plan_id"], row["since"]) for row in rows}


def _uses(table: deltalake.DeltaTable) -> Mapping[tuple[str, int], Sequence[SubjectVersion]]:
    return uses_by_id(_select(table, "SELECT registry, schema_id, subject, version, message FROM rows"))


def _quarantined(table: deltalake.DeltaTable) -> Sequence[QuarantinedRows]:
    """Return the counts."""
    counts: Counter[tuple[str, str | None]] = Counter()
    for row in _counted(table, _QUARANTINE):
        # a name that was refused is not a game: only silver's rows count by game
        game = row["game_name"] if row["stage"] == Stage.SILVER.value else None
        counts[row["cause"], game] += row["count_all"]
    return tuple(QuarantinedRows(cause, game, rows) for (cause, game), rows in counts.items())


def _dropped(table: deltalake.DeltaTable) -> Mapping[str, int]:
    return _by_game(table, "stage", Stage.SILVER.value)


def _retired(table: deltalake.DeltaTable) -> Mapping[str, int]:
    return _by_game(table, "reason", RemovalReason.RETIRED.value)


def _by_game(table: deltalake.DeltaTable, column: str, value: str) -> Mapping[str, int]:
    """Return how many rows each game has with this value in a column."""
    counts: Counter[str] = Counter()
    for row in _counted(table, [column, "game_name"]):
        if row[column] == value:
            counts[row["game_name"]] += row["count_all"]
    return counts


def _counted(table: deltalake.DeltaTable, columns: list[str]) -> list[dict[str, Any]]:
    names = ", ".join(columns)
    return _select(table, f"SELECT {names}, count(*) AS count_all FROM rows GROUP BY {names}")


def _select(table: deltalake.DeltaTable, query: str) -> list[dict[str, Any]]:
    """Return the rows of a query in DataFusion's SQL: unlike pyarrow's datasets, it does not import pandas."""
    return python_rows(table_of(deltalake.QueryBuilder().register("rows", table).execute(query)))
