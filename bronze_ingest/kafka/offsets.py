"""Which offsets of Kafka a stream still needs and the broker no longer has, and the stream's own log of offsets. Pure.

The log is Spark's: one file a batch, `v1`, a line of JSON about the batch, then one line for each source in the order
of the query, `-` for a source that has no offset yet.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

# by topic, then by partition: the offset of the next record
Offsets = Mapping[str, Mapping[int, int]]

_HEAD_LINES = 2
_NO_OFFSET = "-"


class Loss(Enum):
    """Why records that were not read yet are gone; the value is what the gap table says."""

    EXPIRED = "expired"
    MADE_AGAIN = "topic made again"
    GONE = "topic gone"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the broker has it now.

    Attributes:
        name: its name.
        topic_id: the broker's own id of it; a topic that is deleted and made again has another one.
        earliest: by partition, the first offset that can be read.
        latest: by partition, the offset that the next record will get.
    """

    name: str
    topic_id: str
    earliest: Mapping[int, int]
    latest: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets of one partition that cannot be read any more.

    Attributes:
        topic: the topic.
        topic_id: the id of the topic that had them; None when it is not known.
        partition: the partition.
        first: the first lost offset.
        end: one behind the last lost offset; None when nobody knows how many there were.
        loss: why they are gone.
    """

    topic: str
    topic_id: str | None
    partition: int
    first: int
    end: int | None
    loss: Loss

    def __str__(self) -> str:
        if self.end is None:
            return f"topic {self.topic}, partition {self.partition}: everything from offset {self.first} on"
        count = self.end - self.first
        span = f"offset {self.first}" if count == 1 else f"offsets {self.first} to {self.end - 1}"
        return f"topic {self.topic}, partition {self.partition}: {span} ({count:,} record{'s'[: count != 1]})"


def gaps(needed: Offsets, now: Mapping[str, Topic], known_ids: Mapping[str, str]) -> tuple[Gap, ...]:
    """Return the offsets that the stream needs and the broker does not have, in order of topic and partition.

    Args:
        needed: where the stream stands.
        now: the topics that the broker has, by name.
        known_ids: the id of each topic when it was read last.
    """
    return tuple(
        gap
        for name in sorted(needed)
        for partition in sorted(needed[name])
        for gap in _gap(name, partition, needed[name][partition], now.get(name), known_ids.get(name))
    )


def _gap(name: str, partition: int, needed: int, topic: Topic | None, known_id: str | None) -> Iterator[Gap]:
    if topic is None:
        yield Gap(name, known_id, partition, needed, None, Loss.GONE)
    elif known_id not in (None, topic.topic_id) or needed > topic.latest.get(partition, -1):
        # one that stands at the new topic's beginning has been repaired already, or never got any further
        if needed != topic.earliest.get(partition):
            yield Gap(name, known_id, partition, needed, None, Loss.MADE_AGAIN)
    elif needed < topic.earliest[partition]:
        yield Gap(name, topic.topic_id, partition, needed, topic.earliest[partition], Loss.EXPIRED)


def kafka_offsets(line: str) -> Offsets | None:
    """Return the offsets of a Kafka source's line; None when it is another source's."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    if not isinstance(found, dict) or not all(isinstance(value, dict) for value in found.values()):
        return None
    return {topic: {int(partition): offset for partition, offset in found[topic].items()} for topic in found}


def source_line(text: str, source: int) -> str | None:
    """Return the line of a source in a file of the log; None where the source has no offset yet."""
    lines = text.splitlines()[_HEAD_LINES:]
    return None if source >= len(lines) or lines[source] == _NO_OFFSET else lines[source]


def past_gaps(text: str, source: int, lost: Iterable[Gap], now: Mapping[str, Topic]) -> str:
    """Return a file of the log in which the Kafka source stands behind these gaps.

    A topic that was made again is read from its beginning; one that is gone is forgotten.
    """
    lines = text.splitlines()
    offsets = {name: dict(by) for name, by in (kafka_offsets(lines[_HEAD_LINES + source]) or {}).items()}
    for gap in lost:
        match gap.loss:
            case Loss.EXPIRED:
                assert gap.end is not None
                offsets[gap.topic][gap.partition] = gap.end
            case Loss.MADE_AGAIN:
                offsets[gap.topic] = dict(now[gap.topic].earliest)
            case Loss.GONE:
                offsets.pop(gap.topic, None)
    as_text = {name: {str(partition): offset for partition, offset in by.items()} for name, by in offsets.items()}
    lines[_HEAD_LINES + source] = json.dumps(as_text, separators=(",", ":"))
    return "\n".join(lines)
