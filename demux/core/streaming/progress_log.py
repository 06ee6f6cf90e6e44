"""What Spark itself tells of a streaming query after each micro-batch, as a line of our log.

The fleet has no query of its own for the games: of these, `control/rounds` tells.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from demux.core.spark.classic import progress_since

_LOG = logging.getLogger("demux")


class ProgressLog:
    """Writes a line for each micro-batch of one query that had rows.

    Asks the query, and is no listener: PySpark's takes 15 % of the JVM's time at a batch each second, for names that it
    looks up in all jars.

    Attributes:
        last: the newest batch whose progress was seen; -1 before the first.
    """

    def __init__(self) -> None:
        """Prepare; no line is written yet."""
        self.last = -1

    def write(self, query: Any) -> None:
        """Write the lines of the batches that ended since the last call, as far as Spark keeps them."""
        for text in progress_since(query, self.last):
            progress = json.loads(text)
            # without new rows Spark tells of the batch that is to come
            if "addBatch" in progress["durationMs"]:
                self.last = progress["batchId"]
            if line := progress_line(progress):
                _LOG.info("%s", line, extra={"batch": progress["batchId"], "rows": progress["numInputRows"]})


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
