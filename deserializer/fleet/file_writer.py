"""All games of a round: one Spark job that writes their files, then the commits.

The driver commits the files of a table that takes them. Of any other, Spark's writer copies the rows, and the files are
removed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime

from pyspark.sql import SparkSession

from demux.core.delta.parquet_writer import TableFile, remove_files
from demux.core.error_mapping import named
from demux.core.errors import DemuxError
from demux.core.reports import GameReport, Period
from demux.core.storage.files import Storage
from deserializer.fleet.game_state import GameResult, GameStates, PendingGame
from deserializer.fleet.spark_job import run_job
from deserializer.fleet.waves import error_of, write_in_waves
from deserializer.fleet.worker import WrittenGame
from deserializer.silver.backend import QuarantineTable
from deserializer.silver.file_table import SilverTable
from deserializer.silver.spark_table import SilverBySpark

# the least that Spark copies at the same time: it waits more than it works
_COPIES = 4


class FileWriter:
    """Decodes games."""

    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        games: GameStates,
        quarantine: QuarantineTable,
        app_id: str,
        threads: int,
    ) -> None:
        """Prepare; `threads` commit at the same time."""
        self._spark = spark
        self._storage = storage
        self._games = games
        self._quarantine = quarantine
        self._app_id = app_id
        self._threads = threads

    def decode(self, due: Mapping[str, PendingGame], now: datetime) -> Iterator[GameResult]:
        """Yield how each game ended; on a failure nothing of it is in its table."""
        written, bad = self._written(due, now)
        refused = self._quarantined(due, written, bad)
        # upkeep takes as long as several commits: it begins while the others commit
        by_files = sorted(_with(SilverTable, due), key=lambda game: not _needs_upkeep(due[game]))
        for games, threads in ((by_files, self._threads), (_with(SilverBySpark, due), max(_COPIES, self._threads))):
            with ThreadPoolExecutor(threads, thread_name_prefix="commit") as pool:
                yield from pool.map(lambda game: self._commit(due[game], written[game], refused), games)

    def _written(
        self, due: Mapping[str, PendingGame], now: datetime
    ) -> tuple[dict[str, list[WrittenGame]], list[TableFile]]:
        """Return what became of each game's files, by game, and the files for quarantine."""
        games, quarantine = self._games, self._quarantine.path
        return write_in_waves(
            self._storage,
            [games.work(one) for one in due.values()],
            lambda works: run_job(self._spark, self._storage, works, quarantine, self._app_id, now),
            games.known,
            lambda refs: games.learn(refs, due),
            lambda game, paths: games.work(due[game], paths),
        )

    def _quarantined(
        self, due: Mapping[str, PendingGame], written: Mapping[str, Sequence[WrittenGame]], bad: Sequence[TableFile]
    ) -> DemuxError | None:
        """Commit the bad rows of all games, those too that fail later; return why that was not possible."""
        if not bad:
            return None
        positions = {game: due[game].after for game, parts in written.items() if any(part.rows_bad for part in parts)}
        try:
            self._quarantine.append(bad, positions)
        except Exception as error:
            return named(error)
        return None

    def _commit(self, due: PendingGame, parts: Sequence[WrittenGame], refused: DemuxError | None) -> GameResult:
        """Commit a game's good rows and return how it ended; on a failure nothing of it is in its table."""
        began = time.time()
        table = due.table
        files = [file for part in parts for file in part.silver]
        rows_bad = sum(part.rows_bad for part in parts)
        error = error_of(parts) or (refused if rows_bad else None)
        ids: tuple[int, ...] = ()
        if error is None:
            try:
                ids = self._games.schema_ids(due, {ref for part in parts for ref in part.refs})
                if isinstance(table, SilverTable):
                    table.append(files, self._app_id, due.after.number)
                else:
                    table.append_files(files, self._app_id, due.after.number)
                self._games.done(due)
            except Exception as failure:  # one game's failure must not stop its neighbours
                error = named(failure)
        else:
            # what cannot be removed now is in no table, and VACUUM removes it
            with suppress(OSError, DemuxError):
                remove_files(self._storage, table.path, [file.path for file in files])
        commit = Period(began, time.time())
        seconds = sum(part.seconds for part in parts) + max(0.0, commit.ended_s - commit.began_s)
        if error is not None:
            self._games.forget(due.game)
            return GameResult(due.game, None, error, seconds, commit)
        rows_in = sum(part.rows_in for part in parts)
        report = GameReport(due.game, rows_in, rows_in - rows_bad, rows_bad, ids, due.rows_waiting, due.bytes)
        return GameResult(due.game, report, None, seconds, commit)


def _with(kind: type[object], due: Mapping[str, PendingGame]) -> list[str]:
    return [game for game, one in due.items() if isinstance(one.table, kind)]


def _needs_upkeep(due: PendingGame) -> bool:
    return isinstance(due.table, SilverTable) and due.table.needs_upkeep
