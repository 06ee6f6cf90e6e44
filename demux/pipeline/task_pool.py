"""Runs a plan's tasks on this driver: bounded parallelism, each in a FAIR pool of its own, each failure isolated."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Generic, TypeVar

from pyspark.sql import SparkSession
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from demux.core.error_mapping import as_demux_error
from demux.core.errors import DemuxError, ErrorKind
from demux.core.reports import Period
from demux.core.settings.settings import RunSettings
from demux.core.spark.classic import choose_pool
from install_workflow.planning.plan import Task

_LOG = logging.getLogger("demux")

Report = TypeVar("Report")


@dataclass(frozen=True, slots=True)
class TaskEnd(Generic[Report]):
    """How a task ended: with a report or with an error.

    Attributes:
        report: what it did; None when it failed.
        error: why it failed; None when it did not.
        seconds: how long it took, waits between tries included.
        commit: when the game's table was written; None where that is not apart from the rest.
    """

    task: Task
    report: Report | None
    error: DemuxError | None
    seconds: float
    commit: Period | None = None


def run_tasks(
    spark: SparkSession,
    tasks: Iterable[Task],
    work: Callable[[Task], Report],
    settings: RunSettings,
    stop: threading.Event,
) -> Iterator[TaskEnd[Report]]:
    """Yield how each task ended, in order of time; a task that was not begun when `stop` was set is left out.

    Args:
        work: does one task; called from several threads.
        stop: once set, tasks under way finish and no other begins.
    """

    def one(task: Task) -> TaskEnd[Report] | None:
        if stop.is_set():
            return None
        choose_pool(spark, task.key)
        started = time.monotonic()
        try:
            report = _with_retries(lambda: work(task), settings, stop)
        except Exception as error:  # one game's failure must not stop its neighbours
            _LOG.exception("task %s failed", task.key, extra={"game": task.game})
            return TaskEnd(task, None, as_demux_error(error), time.monotonic() - started)
        return TaskEnd(task, report, None, time.monotonic() - started)

    with ThreadPoolExecutor(max_workers=settings.parallelism, thread_name_prefix="game") as pool:
        for future in as_completed([pool.submit(one, task) for task in tasks]):
            result = future.result()
            if result is not None:
                yield result


def _with_retries(work: Callable[[], Report], settings: RunSettings, stop: threading.Event) -> Report:
    def wait(seconds: float) -> None:
        # a stop ends the wait as well
        stop.wait(seconds)

    retrying = Retrying(
        stop=stop_after_attempt(settings.retries + 1),
        wait=wait_exponential(multiplier=settings.retry_wait_s),
        retry=retry_if_exception(lambda error: as_demux_error(error).kind is ErrorKind.TRANSIENT),
        sleep=wait,
        reraise=True,
    )
    return retrying(work)
