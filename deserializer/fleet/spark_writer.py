"""One game's share of a round by Spark's own reader and writer; in several threads, each with one game at a time."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import Empty, SimpleQueue

from pyspark.sql import SparkSession

from demux.core.error_mapping import named
from demux.core.errors import DemuxError
from demux.core.names import names_of
from demux.core.reports import GameReport
from demux.core.spark.classic import choose_pool
from demux.core.spark.map_in_arrow import batches_within_memory
from deserializer.decoders.arrow import INPUT
from deserializer.decoders.batch_contents import contents_of
from deserializer.fleet.game_state import GameResult, GameStates, PendingGame
from deserializer.offsets.bronze_files import file_session, rows_in
from deserializer.silver.append import Appending
from deserializer.silver.spark_table import SilverBySpark

_LOG = logging.getLogger("demux")


class BySpark:
    """Decodes games whose tables only Spark can write."""

    def __init__(self, spark: SparkSession, games: GameStates, appending: Appending, threads: int) -> None:
        """Prepare; `threads` games at the same time."""
        self._spark = spark
        self._games = games
        self._appending = appending
        self._threads = threads
        self._sessions: SimpleQueue[SparkSession] = SimpleQueue()

    def decode(self, due: Mapping[str, PendingGame]) -> Iterator[GameResult]:
        """Yield how each game ended; on a failure nothing of it is in its table."""
        with ThreadPoolExecutor(self._threads, thread_name_prefix="game") as pool:
            yield from pool.map(self._one, due.values())

    def _one(self, due: PendingGame) -> GameResult:
        began = time.monotonic()
        report: GameReport | None = None
        error: DemuxError | None = None
        try:
            with self._session(due.game) as spark:
                report = self._report(spark, due)
            self._games.done(due)
        except Exception as failure:  # one game's failure must not stop its neighbours
            _LOG.exception("%s failed", names_of(due.game).task_key, extra={"game": due.game})
            error = named(failure)
            self._games.forget(due.game)
        return GameResult(due.game, None if error else report, error, time.monotonic() - began)

    def _report(self, spark: SparkSession, due: PendingGame) -> GameReport:
        """Return what was done with the game's rows: all are in silver or in quarantine."""
        table = due.table
        assert isinstance(table, SilverBySpark), "Spark writes it"
        rows = rows_in(spark, due.game, [path for path, _ in self._games.files(due)], INPUT)
        rows = self._appending.unsettled(rows, due.game, table, due.before)
        contents = contents_of(rows)
        decisions = self._games.decisions(due, contents.refs)
        ids = self._games.schema_ids(due, contents.refs)
        with batches_within_memory(rows, contents.sizes):
            rows_bad = self._appending.append(rows, due.game, table, due.after, decisions)
        rows_good = contents.rows - rows_bad
        return GameReport(due.game, contents.rows, rows_good, rows_bad, ids, due.rows_waiting, due.bytes)

    @contextmanager
    def _session(self, game: str) -> Iterator[SparkSession]:
        """Hold a session of this thread's own, whose jobs go to the game's own pool."""
        choose_pool(self._spark, names_of(game).task_key)
        try:
            session = self._sessions.get_nowait()
        except Empty:
            session = file_session(self._spark)
        try:
            yield session
        finally:
            self._sessions.put(session)
