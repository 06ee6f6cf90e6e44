"""All games of a round whose tables take files: one Spark job that writes them, then the commits, by the driver."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from pyspark.sql import SparkSession

from demux.core.delta.parquet_writer import TableFile, remove_files
from demux.core.error_mapping import named
from demux.core.errors import DemuxError, TaskFailed
from demux.core.names import names_of
from demux.core.reports import GameReport, Period
from demux.core.storage.files import Storage
from deserializer.fleet.game_state import GameResult, GameStates, PendingGame
from deserializer.fleet.spark_job import run_job
from deserializer.fleet.worker import WrittenGame
from deserializer.silver.backend import QuarantineTable
from deserializer.silver.file_quarantine import Quarantine
from deserializer.silver.file_table import SilverTable
from deserializer.silver.rewrite import in_columns

# the first finds out which schemas the rows have
_MOST_WAVES = 3


class ByFiles:
    """Decodes games whose tables take files that Spark has not written."""

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
        games = sorted(due, key=lambda game: not _table_of(due[game]).needs_upkeep)
        with ThreadPoolExecutor(self._threads, thread_name_prefix="commit") as pool:
            yield from pool.map(lambda game: self._commit(due[game], written[game], refused), games)

    def _written(
        self, due: Mapping[str, PendingGame], now: datetime
    ) -> tuple[dict[str, list[WrittenGame]], list[TableFile]]:
        """Return what became of each game's files, by game, and the files for quarantine."""
        written: defaultdict[str, list[WrittenGame]] = defaultdict(list)
        bad: list[TableFile] = []
        works = [self._games.work(one) for one in due.values()]
        for _ in range(_MOST_WAVES):
            done, files = run_job(self._spark, self._storage, works, self._quarantine.path, self._app_id, now)
            bad += files
            unknown: defaultdict[str, list[WrittenGame]] = defaultdict(list)
            for part in done:
                (unknown if part.unknown else written)[part.game].append(part)
            failed = self._learnt(unknown, due, written)
            for game, error in failed.items():
                written[game].append(WrittenGame(game, error=error))
            works = [
                self._games.work(due[game], frozenset(path for part in parts for path in part.paths))
                for game, parts in unknown.items()
                if game not in failed
            ]
            if not works:
                break
        for work in works:
            written[work.game].append(WrittenGame(work.game, error=_unsettled(work.game)))
        return written, bad

    def _learnt(
        self,
        unknown: Mapping[str, Sequence[WrittenGame]],
        due: Mapping[str, PendingGame],
        written: dict[str, list[WrittenGame]],
    ) -> dict[str, DemuxError]:
        """Decide about the refs that were unknown; return why that was not possible for some games.

        Where columns become wider for them, what the game has written so far is rewritten.
        """
        before = {game: self._games.known(game).columns for game in unknown}
        refs = {game: sum((Counter(part.unknown) for part in parts), Counter()) for game, parts in unknown.items()}
        failed = self._games.learn(refs, due)
        for game in unknown.keys() - failed.keys():
            known = self._games.known(game)
            if not known.widened:
                continue
            path = due[game].table.path
            try:
                written[game] = [
                    replace(part, silver=in_columns(self._storage, part.silver, path, before[game], known.columns))
                    for part in written[game]
                ]
            except Exception as error:  # one game's failure must not stop its neighbours
                failed[game] = named(error)
        return failed

    def _quarantined(
        self, due: Mapping[str, PendingGame], written: Mapping[str, Sequence[WrittenGame]], bad: Sequence[TableFile]
    ) -> DemuxError | None:
        """Commit the bad rows of all games, those too that fail later; return why that was not possible."""
        if not bad:
            return None
        positions = {
            names_of(game).key: due[game].after
            for game, parts in written.items()
            if any(part.rows_bad for part in parts)
        }
        try:
            assert isinstance(self._quarantine, Quarantine), "or no game's table takes files"
            self._quarantine.append(bad, positions)
        except Exception as error:
            return named(error)
        return None

    def _commit(self, due: PendingGame, parts: Sequence[WrittenGame], refused: DemuxError | None) -> GameResult:
        """Commit a game's good rows and return how it ended; on a failure nothing of it is in its table."""
        began = time.time()
        table = _table_of(due)
        files = [file for part in parts for file in part.silver]
        rows_bad = sum(part.rows_bad for part in parts)
        error = next((part.error for part in parts if part.error is not None), refused if rows_bad else None)
        ids: tuple[int, ...] = ()
        if error is None:
            try:
                ids = self._games.schema_ids(due, {ref for part in parts for ref in part.refs})
                table.append(files, self._app_id, due.after.number)
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


def _table_of(due: PendingGame) -> SilverTable:
    assert isinstance(due.table, SilverTable), "it takes files"
    return due.table


def _unsettled(game: str) -> DemuxError:
    return TaskFailed(
        f"Rows of {game} still had unknown schemas after {_MOST_WAVES} looks.", "Run the same command again.", game=game
    )
