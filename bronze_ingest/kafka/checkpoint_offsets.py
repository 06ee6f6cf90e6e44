"""The Kafka offsets of the bronze stream, read from its checkpoint and changed there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from bronze_ingest.kafka.lost_offsets import (
    Offsets,
    kafka_offsets,
    source_line,
    start_line,
    start_with_line,
    text_of,
    with_line,
)
from demux.core.storage import file_names, read_text, replace_text
from demux.core.streaming.checkpoints import read_checkpoint

# Kafka comes first in the query
KAFKA = 0
_START = f"sources/{KAFKA}"


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """The offsets of a stream.

    Attributes:
        needed: where its next batch begins; nothing when Spark has not decided yet.
        begun: where the batch ends that was begun and must come again; nothing when there is none.
    """

    needed: Offsets
    begun: Offsets


def position(spark: SparkSession, checkpoint: str) -> StreamPosition:
    """Return the offsets of the stream."""
    found = read_checkpoint(spark, checkpoint)
    needed = _in_log(spark, checkpoint, found.done) if found.done >= 0 else _start(spark, checkpoint)
    return StreamPosition(needed, {} if found.unfinished is None else _in_log(spark, checkpoint, found.unfinished))


def move(spark: SparkSession, checkpoint: str, change: Callable[[Offsets], Offsets]) -> None:
    """Change where the next batch begins, and where it ends if it was begun already.

    After a crash in between, the same change must be made again: the end comes first.
    """
    found = read_checkpoint(spark, checkpoint)
    for batch in (found.unfinished, found.done):
        if batch is None:
            continue
        if batch < 0:
            replace_text(spark, f"{checkpoint}/{_START}/0", start_with_line(text_of(change(_start(spark, checkpoint)))))
            continue
        file = f"{checkpoint}/offsets/{batch}"
        offsets = _in_log(spark, checkpoint, batch)
        replace_text(spark, file, with_line(read_text(spark, file), KAFKA, text_of(change(offsets))))


def _in_log(spark: SparkSession, checkpoint: str, batch: int) -> Offsets:
    line = source_line(read_text(spark, f"{checkpoint}/offsets/{batch}"), KAFKA)
    return (kafka_offsets(line) if line is not None else None) or {}


def _start(spark: SparkSession, checkpoint: str) -> Offsets:
    if "0" not in file_names(spark, f"{checkpoint}/{_START}"):
        return {}
    return kafka_offsets(start_line(read_text(spark, f"{checkpoint}/{_START}/0"))) or {}
