"""The jobs and streaming queries of a piece of work, counted by Spark itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener


@dataclass(slots=True)
class Count:
    """How many jobs and queries began."""

    jobs: int = 0
    queries: int = 0


class _Queries(StreamingQueryListener):
    """Counts queries that start; Spark tells of a start before `start` returns."""

    def __init__(self, count: Count) -> None:
        self._count = count

    def onQueryStarted(self, event: Any) -> None:
        self._count.queries += 1

    def onQueryProgress(self, event: Any) -> None:
        pass

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryTerminated(self, event: Any) -> None:
        pass


@contextmanager
def counted(spark: SparkSession, count: Count) -> Iterator[None]:
    """Add to the count what begins while the block runs."""
    listener, before = _Queries(count), _jobs(spark)
    spark.streams.addListener(listener)
    try:
        yield
    finally:
        spark.streams.removeListener(listener)
        count.jobs += _jobs(spark) - before


def _jobs(spark: SparkSession) -> int:
    # the status tracker forgets, and knows no jobs outside of a group by their number; the scheduler's own counter does
    scheduler: Any = spark.sparkContext._jsc.sc().dagScheduler()
    return int(scheduler.numTotalJobs())
