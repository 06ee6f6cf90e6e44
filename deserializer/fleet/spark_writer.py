"""One game's share of a round by Spark's own reader and writer; in several threads, each with one game at a time.

The order is that of the files' way: bad rows first, then the good ones with the game's position. What decodes and what
adds columns are the functions that streams use.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import Empty, SimpleQueue

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.core.columns.map_in_arrow import batches_within_memory
from demux.core.delta import batch_commit as commits
from demux.core.delta.app_transactions import Batch
from demux.core.delta.batch_commit import REFUSED, RowSelection
from demux.core.error_mapping import named
from demux.core.errors import DemuxError
from demux.core.names import names_of
from demux.core.reports import GameReport
from demux.core.root.lock import TableLock
from demux.core.streaming.session import POOL
from deserializer.decoders.arrow import INPUT
from deserializer.decoders.batch_contents import contents_of
from deserializer.decoders.schema_decision import Decisions
from deserializer.fleet.game_state import GameResult, GameStates, PendingGame
from deserializer.offsets.bronze_files import file_session, rows_in, without
from deserializer.silver.backend import QuarantineTable
from deserializer.silver.evolve import examined_rows, silver_rows
from deserializer.silver.file_quarantine import transaction_id
from deserializer.silver.spark_table import SilverBySpark

_LOG = logging.getLogger("demux")


class BySpark:
    """Decodes games whose tables only Spark can write."""

    def __init__(
        self,
        spark: SparkSession,
        games: GameStates,
        quarantine: QuarantineTable,
        app_id: str,
        threads: int,
        lock: TableLock,
    ) -> None:
        """Prepare; `lock` keeps other processes away while quarantine is written."""
        self._spark = spark
        self._games = games
        self._quarantine = quarantine
        self._app_id = app_id
        self._threads = threads
        self._lock = lock
        # a table that is not there yet can be made by one at a time
        self._alone = threading.Lock()
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
            _LOG.exception("%s failed", names_of(due.game).task_key)
            error = named(failure)
            self._games.forget(due.game)
        return GameResult(due.game, None if error else report, error, time.monotonic() - began)

    def _report(self, spark: SparkSession, due: PendingGame) -> GameReport:
        """Return what was done with the game's rows: all are in silver or in quarantine."""
        rows = without(rows_in(spark, due.game, [path for path, _ in self._games.files(due)], INPUT), due.settled)
        contents = contents_of(rows)
        decisions = self._games.decisions(due, contents.refs)
        ids = self._games.schema_ids(due, contents.refs)
        with batches_within_memory(rows, contents.sizes):
            rows_bad = self._bad(rows, decisions, due)
            good = silver_rows(rows, decisions).where(~F.col(REFUSED)).drop(REFUSED)
            assert isinstance(due.table, SilverBySpark), "Spark writes it"
            due.table.append(good, self._app_id, self._games.version(due))
        return GameReport(due.game, contents.rows, contents.rows - rows_bad, rows_bad, ids, due.rows_waiting)

    def _bad(self, rows: DataFrame, decisions: Decisions, due: PendingGame) -> int:
        """Return how many rows do not decode, once they are in quarantine."""
        batch = Batch(self._app_id, due.after.number, retried=False)
        bad = examined_rows(rows, decisions, due.game, batch, RowSelection.REFUSED).persist()
        try:
            found = bad.count()
            if found:
                self.append_bad(bad, due)
            return found
        finally:
            bad.unpersist()

    def append_bad(self, bad: DataFrame, due: PendingGame) -> None:
        """Append a game's bad rows to quarantine, with the position up to which they are there then."""
        key = names_of(due.game).key
        before = self._quarantine.position(key)
        # Spark would take an older version for a write that was done already; what is there says enough then
        transaction = Batch(transaction_id(self._app_id, key), due.after.number, retried=False)
        done = before is not None and before >= due.after
        with self._alone, self._lock(self._quarantine.path):
            commits.append(bad, self._quarantine.path, None if done else transaction)

    @contextmanager
    def _session(self, game: str) -> Iterator[SparkSession]:
        """Hold a session of this thread's own, whose jobs go to the game's own pool."""
        self._spark.sparkContext.setLocalProperty(POOL, names_of(game).task_key)
        try:
            session = self._sessions.get_nowait()
        except Empty:
            session = file_session(self._spark)
        try:
            yield session
        finally:
            self._sessions.put(session)
