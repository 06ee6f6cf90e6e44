"""Bronze beside the rounds: one query in a thread of its own, which takes in the next batch while games are decoded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from demux.core.reports import IngestReport, total
from demux.core.streaming.query import Every

OnBatch = Callable[[IngestReport], None]

# a query asks for topics and secrets when it begins
_RENEWED_AFTER_S = 300.0


class BronzeStream:
    """Runs the bronze stage until it is stopped, and tells each round what came in since the last one.

    `take`, `wait` and `stop` are for one thread, that of the rounds.
    """

    def __init__(
        self,
        ingest: Callable[[Every, OnBatch], object],
        every_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing runs before the first `take`.

        Args:
            ingest: runs the bronze stage with this trigger until that ends; calls back after each batch.
            every_s: a batch begins at most so often.
            clock: gives seconds that never go back.
        """
        self._ingest = ingest
        self._every_s = every_s
        self._clock = clock
        self._news = threading.Condition()
        self._batches: list[IngestReport] = []
        self._failure: BaseException | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._under_way = False
        self._began_s = 0.0

    def take(self, on_batch: OnBatch) -> IngestReport:
        """Return what came in since the last call, and let bronze run on; never waits for a batch.

        A query that is older than five minutes is started again, so that it asks for topics and secrets again.

        Raises:
            Exception: what ended the query, once; the next call starts another one.
        """
        with self._news:
            batches, self._batches = self._batches, []
            failure = self._failure
            if not batches and failure is not None:
                self._failure = None
                raise failure
        for report in batches:
            on_batch(report)
        if failure is None:
            if self._clock() - self._began_s > _RENEWED_AFTER_S:
                self.stop()
            self._start()
        return total(batches)

    def wait(self, timeout_s: float) -> bool:
        """Return whether there is something to take: a batch came in, or the query failed."""
        with self._news:
            return self._news.wait_for(lambda: bool(self._batches) or self._failure is not None, timeout_s)

    def stop(self) -> None:
        """Return when no batch is under way, and none begins before the next `take`; a second call does nothing."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    @contextmanager
    def running(self) -> Iterator[BronzeStream]:
        """Give it, and stop it when the block ends; where a second signal ends that, the batch is left as it is."""
        try:
            yield self
        except KeyboardInterrupt:
            self._stop.set()
            raise
        except BaseException:
            self.stop()
            raise
        self.stop()

    def _start(self) -> None:
        with self._news:
            # a failure is reported before another query begins, or that one's end would hide it
            if self._under_way or self._failure is not None:
                return
            self._under_way = True
        self._stop, self._began_s = threading.Event(), self._clock()
        # a daemon: a process that is told twice to stop does not wait for the batch
        self._thread = threading.Thread(target=self._run, args=(Every(self._every_s, self._stop),), daemon=True)
        self._thread.name = "bronze"
        self._thread.start()

    def _run(self, trigger: Every) -> None:
        failure: BaseException | None = None
        try:
            self._ingest(trigger, self._add)
        except BaseException as error:  # the rounds say it
            failure = error
        with self._news:
            self._failure, self._under_way = failure, False
            self._news.notify_all()

    def _add(self, report: IngestReport) -> None:
        with self._news:
            self._batches.append(report)
            self._news.notify_all()
