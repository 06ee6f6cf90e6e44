"""One Spark job that writes the files of many games; the driver gets what was written, and commits it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime

from pyspark.sql import SparkSession

from demux.core.delta.parquet_writer import TableFile
from demux.core.error_mapping import as_demux_error
from demux.core.spark.tasks import parallel_tasks, run_tasks_over
from demux.core.storage.files import Storage
from deserializer.fleet.task_split import spread
from deserializer.fleet.worker import GameFiles, WrittenGame, write_games

_LOG = logging.getLogger("demux")

Results = tuple[list[WrittenGame], list[TableFile]]


def run_job(
    spark: SparkSession, storage: Storage, works: Sequence[GameFiles], quarantine: str, query_id: str, now: datetime
) -> Results:
    """Return what became of each part, and the files for quarantine; nothing is committed.

    What ends a worker, or its Spark job, is looked for by halves: the games that do it fail, and no others.

    Args:
        spark: the session.
        storage: how files are reached, in the tasks too.
        works: what to read and how.
        quarantine: the path of the quarantine table.
        query_id: what bad rows carry there.
        now: the time of decoding.
    """
    tasks = spread(works, parallel_tasks(spark))
    try:
        return _run(spark, storage, tasks, quarantine, query_id, now)
    except Exception as error:
        games = sorted({work.game for work in works})
        _LOG.warning("a job over %d games failed: %s", len(games), as_demux_error(error).message)
        if len(games) == 1:
            return [WrittenGame(games[0], error=as_demux_error(error))], []
        first = frozenset(games[: len(games) // 2])
        halves = [[work for work in works if (work.game in first) is mine] for mine in (True, False)]
        done = [run_job(spark, storage, half, quarantine, query_id, now) for half in halves]
        return [one for written, _ in done for one in written], [file for _, files in done for file in files]


def _run(
    spark: SparkSession,
    storage: Storage,
    tasks: Sequence[Sequence[GameFiles]],
    quarantine: str,
    query_id: str,
    now: datetime,
) -> Results:
    def work(part: Sequence[GameFiles]) -> Iterator[WrittenGame | TableFile]:
        return write_games(storage, part, quarantine, query_id, now)

    found = run_tasks_over(spark, tasks, work)
    return [one for one in found if isinstance(one, WrittenGame)], [one for one in found if isinstance(one, TableFile)]
