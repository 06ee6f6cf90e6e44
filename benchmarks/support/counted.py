"""What a piece of work made Spark do, counted by Spark, and what this process and all below it used, by /proc."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from tools.servers.process import stat_fields


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


def tree_cpu_s(pid: int) -> float:
    """Return the seconds of CPU of a process and all that it began, also of those that have ended."""
    # proc(5): utime, stime, and both of children that have ended
    ticks = sum(int(tick) for stat in _tree(pid).values() for tick in stat[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def children_mib() -> float:
    """Return the memory of all processes that this one began, shared pages by their share: the JVM and its workers."""
    found = 0
    for pid in _tree(os.getpid()).keys() - {os.getpid()}:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8")
        except OSError:
            continue
        found += sum(map(int, re.findall(r"^Pss: +([0-9]+) kB", text, re.MULTILINE)))
    return found / 1024


def _tree(root: int) -> dict[int, list[str]]:
    """Return the fields of /proc/PID/stat after the name, of a process and all below it."""
    stats: dict[int, list[str]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            stats[int(file.parent.name)] = stat_fields(file)
        except OSError:
            continue
    wanted = {root}
    while more := {pid for pid, stat in stats.items() if int(stat[1]) in wanted} - wanted:
        wanted |= more
    return {pid: stats[pid] for pid in wanted}
