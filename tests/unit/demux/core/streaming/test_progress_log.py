"""A micro-batch's progress, as Spark tells it, in a line of the log."""

from __future__ import annotations

import json
import logging
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from demux.core.streaming.progress_log import ProgressLog, progress_line

# as Spark 4.0 and 3.4 write it, but for what is not looked at
PROGRESS: dict[str, Any] = {
    "id": "87ac62d9-…",
    "name": "bronze",
    "batchId": 12,
    "numInputRows": 3400,
    "durationMs": {"addBatch": 500, "triggerExecution": 800, "walCommit": 100, "commitOffsets": 20, "getBatch": 0},
}


def test_rows_rate_and_the_slowest_steps_are_told() -> None:
    assert progress_line(PROGRESS) == (
        "query bronze, batch 12: 3,400 rows read in 0.8 s (4,250 rows/s): "
        "addBatch 0.5 s, walCommit 0.1 s, commitOffsets 0.0 s"
    )


def test_a_query_without_a_name_is_told_by_its_id_and_one_without_times_has_no_rate() -> None:
    assert (
        progress_line({**PROGRESS, "name": None, "durationMs": {}})
        == "query 87ac62d9-…, batch 12: 3,400 rows read in 0.0 s"
    )


def query(*progress: dict[str, Any]) -> SimpleNamespace:
    """Return what stands for a query of classic Spark: its JVM's object gives each progress as JSON."""
    kept = [SimpleNamespace(batchId=partial(each.get, "batchId"), json=partial(json.dumps, each)) for each in progress]
    return SimpleNamespace(_jsq=SimpleNamespace(recentProgress=lambda: kept))


@pytest.mark.parametrize("rows", [0, None])
def test_a_batch_without_rows_is_no_news(rows: int | None, caplog: pytest.LogCaptureFixture) -> None:
    assert progress_line({**PROGRESS, "numInputRows": rows}) is None
    with caplog.at_level(logging.INFO, "demux"):
        ProgressLog().write(query({**PROGRESS, "numInputRows": rows}))
        assert caplog.messages == []


def test_each_batch_is_told_once_and_an_idle_query_speaks_of_the_batch_to_come(
    caplog: pytest.LogCaptureFixture,
) -> None:
    idle = {"id": "87ac62d9-…", "batchId": 13, "numInputRows": 0, "durationMs": {"latestOffset": 2}}
    log = ProgressLog()
    with caplog.at_level(logging.INFO, "demux"):
        log.write(query(PROGRESS, idle))
        log.write(query(PROGRESS, idle))
        assert (log.last, caplog.messages) == (12, [progress_line(PROGRESS)])
        log.write(query(PROGRESS, idle, {**PROGRESS, "batchId": 13}))
    assert (log.last, len(caplog.messages)) == (13, 2)
