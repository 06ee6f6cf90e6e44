"""All rows that wait for a fleet, not one share of them: rounds, as a job's task has no next one soon."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace

from demux.core.control.freshness import merge
from demux.core.reports import GameReport
from demux.pipeline.engines import Decode
from demux.pipeline.task_pool import TaskEnd
from install_workflow.planning.plan import Task


def drain(tasks: tuple[Task, ...], decode: Decode, stop: threading.Event) -> Iterator[TaskEnd[GameReport]]:
    """Yield how each task ended, once the rows that waited at its first look are read.

    Every game has its share of each round, so that one with many rows holds up no other. What comes to bronze meanwhile
    is for the next call, as a stream leaves it. A task that was not begun when `stop` was set is left out; one that was
    stopped on its way says how many rows wait.

    Args:
        decode: decodes a round of them.
        stop: once set, no further round begins.
    """
    sums: dict[str, TaskEnd[GameReport]] = {}
    left: dict[str, int] = {}
    due = tasks
    while due and not stop.is_set():
        for end in decode(due):
            game = end.task.game
            sums[game] = _sum(sums.get(game), end)
            left[game] = _left(left, end)
            if not left[game]:
                yield sums[game]
        due = tuple(task for task in due if left.get(task.game))
    yield from (sums[task.game] for task in due if task.game in sums)


def _left(before: Mapping[str, int], end: TaskEnd[GameReport]) -> int:
    """Return about how many of the rows of the first look wait still; 0 where another round would not read them."""
    report, earlier = end.report, before.get(end.task.game)
    if report is None or not report.rows_in:
        return 0
    return report.rows_waiting if earlier is None else max(0, min(report.rows_waiting, earlier - report.rows_in))


def _sum(before: TaskEnd[GameReport] | None, end: TaskEnd[GameReport]) -> TaskEnd[GameReport]:
    """Return both rounds of a task as one; where the later one failed, the task has."""
    if before is None:
        return end
    seconds = before.seconds + end.seconds
    if before.report is None or end.report is None:
        return replace(end, seconds=seconds)
    one, other = before.report, end.report
    report = GameReport(
        one.game,
        one.rows_in + other.rows_in,
        one.rows_silver + other.rows_silver,
        one.rows_quarantined + other.rows_quarantined,
        tuple(sorted({*one.schema_ids, *other.schema_ids})),
        other.rows_waiting,
        one.bytes_in + other.bytes_in,
        merge((one.freshness, other.freshness)),
    )
    return TaskEnd(end.task, report, None, seconds, end.commit)
