"""One query, its trigger, and its failure as one of our errors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from demux.core.delta.app_transactions import Batch
from demux.core.error_mapping import as_demux_error
from demux.core.spark.classic import is_classic
from demux.core.spark.connect import Handover
from demux.core.storage.files import Storage
from demux.core.streaming.checkpoints import read_checkpoint
from demux.core.streaming.progress_log import ProgressLog

_LOOK_S = 0.5
_LOOK_REMOTE_S = 0.05

OnFrame = Callable[[DataFrame, int], None]


@dataclass(frozen=True, slots=True)
class AvailableNow:
    """Take what is there now, then end."""


@dataclass(frozen=True, slots=True)
class Every:
    """Repeat until `stop` is set; a batch under way finishes.

    Attributes:
        seconds: a batch begins at most so often.
        stop: ends the query.
    """

    seconds: float
    stop: threading.Event = field(compare=False)


Trigger = AvailableNow | Every
TAKE_ALL = AvailableNow()


class _Enough(Exception):
    """No further batch is to begin; not a failure."""


def run_query(
    storage: Storage,
    source: DataFrame,
    checkpoint: str,
    query_name: str,
    on_batch: Callable[[DataFrame, Batch], None],
    trigger: Trigger = TAKE_ALL,
) -> None:
    """Run the query until its trigger is through, with every batch through `on_batch`.

    A second run continues where the checkpoint says; an unfinished batch comes again with `retried`, alone at first:
    Kafka's source fails for ever at an unfinished batch whose topic got a partition since (SPARK-53560).

    Args:
        query_name: shown in logs and the Spark UI.
        on_batch: writes one micro-batch; what it writes must be safe to write again for the same `Batch`.

    Raises:
        DemuxError: what `on_batch` raised, or the query's own failure in our words.
    """
    unfinished = read_checkpoint(storage, checkpoint).unfinished
    raised: list[Exception] = []

    def each(frame: DataFrame, batch_id: int) -> None:
        # spark has written the query's id there before its first batch
        query_id = read_checkpoint(storage, checkpoint).query_id
        assert query_id is not None
        try:
            # between two batches of a backlog the query is hardly ever seen idle
            if written and isinstance(trigger, Every) and trigger.stop.is_set():
                raise _Enough
            on_batch(frame, Batch(query_id, batch_id, retried=batch_id == unfinished))
            written.append(batch_id)
        except Exception as error:
            raised.append(error)
            raise

    written: list[int] = []
    try:
        if unfinished is not None:
            _run(source, each, written, checkpoint, query_name, None, once=True)
        if not isinstance(trigger, Every):
            _run(source, each, written, checkpoint, query_name, None, availableNow=True)
        elif not trigger.stop.is_set():
            every = f"{int(trigger.seconds * 1000)} milliseconds"
            _run(source, each, written, checkpoint, query_name, trigger.stop, processingTime=every)
    except Exception as error:
        if raised and isinstance(raised[0], _Enough):
            return
        # the query wraps what our own code raised into text; the original says more
        raise as_demux_error(raised[0] if raised else error) from error


def _run(
    source: DataFrame,
    each: OnFrame,
    written: Sequence[int],
    checkpoint: str,
    name: str,
    stop: threading.Event | None,
    **trigger: Any,
) -> None:
    """Start the query, and return when it has ended; `stop` ends it between two batches.

    Args:
        written: the batches that `each` has written.
    """
    log = ProgressLog()
    handover = None if is_classic(source.sparkSession) else Handover(source.sparkSession, each)
    function = each if handover is None else handover.offer()
    writer = source.writeStream.foreachBatch(function).option("checkpointLocation", checkpoint).queryName(name)
    with nullcontext() if handover is None else handover.beating():
        query: Any = writer.trigger(**trigger).start()
        # raises what made the query fail
        while not query.awaitTermination(_LOOK_S if handover is None else _LOOK_REMOTE_S):
            if handover is not None:
                handover.look()
            if written and log.last < written[-1]:
                log.write(query)
            if stop is not None and stop.is_set() and not query.status["isTriggerActive"]:
                query.stop()
        log.write(query)
