"""What Spark itself tells of a streaming query after each micro-batch, as a line of our log.

The fleet has no query of its own for the games: of these, `control/rounds` tells.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

_LOG = logging.getLogger("demux")


class ProgressLog(StreamingQueryListener):
    """Writes a line for each micro-batch that had rows."""

    def onQueryStarted(self, event: Any) -> None:
        """Say nothing: the command says what it does."""

    def onQueryProgress(self, event: Any) -> None:
        """Write the line."""
        log_progress(json.loads(event.progress.json))

    def onQueryIdle(self, event: Any) -> None:
        """Say nothing; Spark 3.4 never asks."""

    def onQueryTerminated(self, event: Any) -> None:
        """Say nothing: a failure reaches the caller of the query."""


def log_progress(progress: Mapping[str, Any]) -> None:
    """Write the line of a micro-batch that had rows."""
    line = progress_line(progress)
    if line is not None:
        _LOG.info("%s", line, extra={"batch": progress.get("batchId"), "rows": progress["numInputRows"]})


def progress_line(progress: Mapping[str, Any]) -> str | None:
    """Return a micro-batch's progress in a line; None where it had no rows.

    Args:
        progress: Spark's `StreamingQueryProgress`, as its JSON has it; times in milliseconds. It counts rows as
            often as they were read, which for a game's batch is two or three times.
    """
    rows = int(progress.get("numInputRows") or 0)
    if not rows:
        return None
    took: Mapping[str, int] = progress.get("durationMs") or {}
    seconds = took.get("triggerExecution", 0) / 1000
    slowest = sorted(((ms, step) for step, ms in took.items() if step != "triggerExecution"), reverse=True)[:3]
    steps = ", ".join(f"{step} {ms / 1000:.1f} s" for ms, step in slowest)
    rate = f" ({rows / seconds:,.0f} rows/s)" if seconds else ""
    query = progress.get("name") or progress.get("id")
    line = f"query {query}, batch {progress.get('batchId')}: {rows:,} rows read in {seconds:.1f} s{rate}"
    return f"{line}: {steps}" if steps else line
