"""The Kafka offsets of the bronze stream, read from its checkpoint and changed there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bronze_ingest.kafka.lost_offsets import (
    Offsets,
    kafka_offsets,
    source_line,
    start_line,
    start_with_line,
    text_of,
    with_line,
)
from demux.core.storage.files import Storage
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


def position(storage: Storage, checkpoint: str) -> StreamPosition:
    """Return the offsets of the stream."""
    found = read_checkpoint(storage, checkpoint)
    needed = _in_log(storage, checkpoint, found.done) if found.done >= 0 else _start(storage, checkpoint)
    return StreamPosition(needed, {} if found.unfinished is None else _in_log(storage, checkpoint, found.unfinished))


def records_in(storage: Storage, checkpoint: str, batch_id: int) -> int:
    """Return how many offsets a batch that was begun has; of a topic that is new to it, all up to its end."""
    before = _in_log(storage, checkpoint, batch_id - 1) if batch_id else _start(storage, checkpoint)
    ends = _in_log(storage, checkpoint, batch_id)
    return sum(end - before.get(name, {}).get(at, 0) for name, by in ends.items() for at, end in by.items())


def move(storage: Storage, checkpoint: str, change: Callable[[Offsets], Offsets]) -> None:
    """Change where the next batch begins, and where it ends if it was begun already.

    After a crash in between, the same change must be made again: the end comes first.
    """
    found = read_checkpoint(storage, checkpoint)
    for batch in (found.unfinished, found.done):
        if batch is None:
            continue
        if batch < 0:
            storage.write_text(
                f"{checkpoint}/{_START}/0", start_with_line(text_of(change(_start(storage, checkpoint))))
            )
            continue
        file = f"{checkpoint}/offsets/{batch}"
        offsets = _in_log(storage, checkpoint, batch)
        storage.write_text(file, with_line(storage.read_text(file), KAFKA, text_of(change(offsets))))


def _in_log(storage: Storage, checkpoint: str, batch: int) -> Offsets:
    line = source_line(storage.read_text(f"{checkpoint}/offsets/{batch}"), KAFKA)
    return (kafka_offsets(line) if line is not None else None) or {}


def _start(storage: Storage, checkpoint: str) -> Offsets:
    if "0" not in storage.names(f"{checkpoint}/{_START}"):
        return {}
    return kafka_offsets(start_line(storage.read_text(f"{checkpoint}/{_START}/0"))) or {}
