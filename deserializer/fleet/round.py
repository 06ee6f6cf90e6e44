"""The fleet's flow: the offset of each game, what it has still to read, one Spark job for all, then the commits.

The job's tasks write files with the rows of all games. The driver commits the files of a table that takes them. Of any
other, Spark's writer copies the rows, and the files are removed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime

from pyspark.sql import SparkSession

from demux.core.control.freshness import merge
from demux.core.delta.bronze_games import metadata_of
from demux.core.delta.parquet_writer import TableFile, remove_files
from demux.core.error_mapping import as_demux_error
from demux.core.errors import DemuxError, TableUnsuited
from demux.core.names import names_of
from demux.core.reports import GameReport, Period
from demux.core.root.layout import Layout
from demux.core.root.lock import TableLock, no_lock
from demux.core.schemas.store import SchemaStore
from demux.core.settings.settings import Sink
from deserializer.fleet.game_state import GameResult, GameStates, PendingGame
from deserializer.fleet.spark_job import run_job
from deserializer.fleet.waves import error_of, write_in_waves
from deserializer.fleet.worker import WrittenGame
from deserializer.silver.backend import tables_of
from deserializer.silver.file_table import SilverTable
from deserializer.silver.spark_table import SilverBySpark

_LOG = logging.getLogger("demux")

# the least that Spark copies at the same time: it waits more than it works
_COPIES = 4


class Fleet:
    """Decodes many games together; keeps what it learnt of their tables from round to round.

    For one process: the root's lock sees to it.
    """

    def __init__(
        self,
        spark: SparkSession,
        layout: Layout,
        schemas: SchemaStore,
        most_rows: int,
        threads: int,
        tables: TableLock = no_lock,
        sink: Sink = Sink.AUTO,
    ) -> None:
        """Prepare; bronze must be there.

        Args:
            spark: the session.
            layout: where the tables are.
            schemas: the schemas in use.
            most_rows: of a game in one round, about; the rest waits.
            threads: that look and commit at the same time.
            tables: keeps processes apart that write the quarantine table.
            sink: who writes the tables.

        Raises:
            SettingsInvalid, TableUnsuited: as `tables_of`.
            TableUnsuited: the names of bronze's columns are not those in its files.
        """
        app_id, properties = metadata_of(spark, layout)
        if properties.get("delta.columnMapping.mode", "none") != "none":
            raise TableUnsuited(
                f"The table {layout.bronze} has columns with other names in its files (column mapping).",
                "Set run.engine: stream.",
                table=layout.bronze,
            )
        opened_by = tables_of(spark, layout, app_id, sink)
        self._games = GameStates(spark, opened_by, schemas, most_rows)
        self._quarantine = opened_by.quarantine(tables)
        self._threads = max(threads, layout.storage.side_by_side(layout.root))
        self._spark = spark
        self._layout = layout
        self._app_id = app_id

    def decode(self, games: Iterable[str], now: datetime) -> Iterator[GameResult]:
        """Yield how each game ended, in order of time: its rows are in silver or in quarantine, up to its share.

        A second call takes what is new; after a crash anywhere, each game continues where its own table says. One
        game's failure stops no other.

        Args:
            games: exact names.
            now: the time of decoding.
        """
        self._quarantine.refresh()
        due, failed = self._games.due(games, self._quarantine, self._threads)
        for game, error in failed.items():
            yield GameResult(game, None, error)
        for one in due.values():
            if not one.pieces:
                yield GameResult(one.game, GameReport(one.game, 0, 0, 0, (), one.rows_waiting), None)
        active = {game: one for game, one in due.items() if one.pieces}
        written, bad = self._written(active, now)
        refused = self._commit_quarantine(active, written, bad)
        # upkeep takes as long as several commits: it begins while the others commit
        by_files = sorted(_games_of_kind(SilverTable, active), key=lambda game: not active[game].table.needs_upkeep)
        copies = max(_COPIES, self._threads)
        for names, threads in ((by_files, self._threads), (_games_of_kind(SilverBySpark, active), copies)):
            with ThreadPoolExecutor(threads, thread_name_prefix="commit") as pool:
                yield from pool.map(lambda game: self._commit(active[game], written[game], refused, now), names)

    def _written(
        self, due: Mapping[str, PendingGame], now: datetime
    ) -> tuple[dict[str, list[WrittenGame]], list[TableFile]]:
        """Return what became of each game's files, by game, and the files for quarantine."""
        games, quarantine = self._games, self._quarantine.path
        return write_in_waves(
            self._layout.storage,
            [games.work(one) for one in due.values()],
            lambda works: run_job(self._spark, self._layout.storage, works, quarantine, self._app_id, now),
            games.known,
            lambda refs: games.learn(refs, due),
            lambda game, paths: games.work(due[game], paths),
        )

    def _commit_quarantine(
        self, due: Mapping[str, PendingGame], written: Mapping[str, Sequence[WrittenGame]], bad: Sequence[TableFile]
    ) -> DemuxError | None:
        """Commit the bad rows of all games, those too that fail later; return why that was not possible."""
        if not bad:
            return None
        positions = {game: due[game].after for game, parts in written.items() if any(part.rows_bad for part in parts)}
        try:
            self._quarantine.append(bad, positions)
        except Exception as error:
            return as_demux_error(error)
        return None

    def _commit(
        self, due: PendingGame, parts: Sequence[WrittenGame], refused: DemuxError | None, now: datetime
    ) -> GameResult:
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
                table.append(files, self._app_id, due.after.number)
                self._games.done(due)
            except Exception as failure:  # one game's failure must not stop its neighbours
                if not isinstance(failure, DemuxError):
                    _LOG.exception("%s failed", names_of(due.game).task_key, extra={"game": due.game})
                error = as_demux_error(failure)
        else:
            # what cannot be removed now is in no table, and VACUUM removes it
            with suppress(OSError, DemuxError):
                remove_files(self._layout.storage, table.path, [file.path for file in files])
        commit = Period(began, time.time())
        seconds = sum(part.seconds for part in parts) + max(0.0, commit.ended_s - commit.began_s)
        if error is not None:
            self._games.forget(due.game)
            return GameResult(due.game, None, error, seconds, commit)
        rows_in = sum(part.rows_in for part in parts)
        fresh = merge(part.ages for part in parts).later(commit.ended_s - now.timestamp())
        report = GameReport(due.game, rows_in, rows_in - rows_bad, rows_bad, ids, due.rows_waiting, due.bytes, fresh)
        return GameResult(due.game, report, None, seconds, commit)


def _games_of_kind(kind: type[object], due: Mapping[str, PendingGame]) -> list[str]:
    return [game for game, one in due.items() if isinstance(one.table, kind)]
