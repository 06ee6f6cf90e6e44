"""Which offsets of Kafka a stream still needs and the broker no longer has, and the stream's own log of offsets. Pure.

The log is Spark's. One file a batch: `v1`, a line of JSON about the batch, then one line for each source in the order
of the query, `-` for a source that has no offset yet. Before the first batch there is one file of the source alone:
a zero byte, `v1`, and the line.
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
_START_HEAD = "\0v1\n"


class Loss(Enum):
    """Why records that were not read yet are gone; the value is what the gap table says."""

    EXPIRED = "expired"
    MADE_AGAIN = "topic made again"
    CUT_OFF = "cut off"
    GONE = "topic gone"


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as the broker has it now.

    Attributes:
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
        topic_id: the id of the topic that had them; None when it is not known.
        end: one behind the last lost offset; None when their number is unknown.
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


def gaps(
    needed: Offsets, begun: Offsets, now: Mapping[str, TopicState], known_ids: Mapping[str, str]
) -> tuple[Gap, ...]:
    """Return the offsets that the stream needs and the broker does not have, in order of topic and partition.

    Args:
        begun: where the batch ends that was begun and must come again; nothing when there is none.
        known_ids: the id of each topic when it was read last.
    """
    return tuple(
        gap
        for name in sorted(needed)
        for gap in _of_topic(name, needed[name], begun.get(name, {}), now.get(name), known_ids.get(name))
    )


def _of_topic(
    name: str, needed: Mapping[int, int], begun: Mapping[int, int], topic: TopicState | None, known_id: str | None
) -> Iterator[Gap]:
    if topic is None or known_id not in (None, topic.topic_id):
        # the end of the old one is unknown, even if the stream is at its beginning
        loss = Loss.GONE if topic is None else Loss.MADE_AGAIN
        yield from (Gap(name, known_id, partition, needed[partition], None, loss) for partition in sorted(needed))
        return
    # a partition that was added since is needed from its beginning
    for partition in sorted({*needed, *topic.earliest}):
        first, latest = topic.earliest.get(partition, 0), topic.latest.get(partition, 0)
        at = needed.get(partition, 0)
        if max(at, begun.get(partition, 0)) > latest:
            yield Gap(name, topic.topic_id, partition, latest, max(at, begun.get(partition, 0)), Loss.CUT_OFF)
        if at < first:
            yield Gap(name, topic.topic_id, partition, at, first, Loss.EXPIRED)


def begins(needed: Offsets, now: Mapping[str, TopicState], left: Mapping[tuple[str, int], int]) -> Offsets:
    """Return where topics begin that are new to the stream; those that begin at 0 throughout are left out.

    Args:
        left: by topic id and partition, the offset of the stream when it stopped reading the topic.
    """
    found = {
        name: {at: max(first, left.get((topic.topic_id, at), 0)) for at, first in topic.earliest.items()}
        for name, topic in now.items()
        if name not in needed
    }
    return {name: by for name, by in found.items() if any(by.values())}


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


def start_line(text: str) -> str:
    """Return the line of the file that says where the first batch begins."""
    return text.removeprefix(_START_HEAD)


def text_of(offsets: Offsets) -> str:
    """Return a Kafka source's line."""
    as_text = {name: {str(partition): offset for partition, offset in by.items()} for name, by in offsets.items()}
    return json.dumps(as_text, separators=(",", ":"))


def with_line(text: str, source: int, line: str) -> str:
    """Return the file of the log with another line of the source."""
    lines = text.splitlines()
    lines[_HEAD_LINES + source] = line
    return "\n".join(lines)


def start_with_line(line: str) -> str:
    """Return the file that says where the first batch begins."""
    return _START_HEAD + line


def past_gaps(offsets: Offsets, lost: Iterable[Gap], now: Mapping[str, TopicState]) -> Offsets:
    """Return the offsets behind these gaps: of where a batch begins, and as well of where it ends.

    A topic that was made again is read from its beginning, a log that was cut off from its end; a topic that is gone
    is forgotten. For the same gaps, a second time changes nothing.
    """
    moved = {name: dict(by) for name, by in offsets.items()}
    for gap in lost:
        match gap.loss:
            case Loss.EXPIRED:
                assert gap.end is not None
                by = moved.setdefault(gap.topic, {})
                by[gap.partition] = max(gap.end, by.get(gap.partition, 0))
            case Loss.CUT_OFF:
                by = moved.setdefault(gap.topic, {})
                by[gap.partition] = min(gap.first, by.get(gap.partition, 0))
            case Loss.MADE_AGAIN:
                moved[gap.topic] = dict(now[gap.topic].earliest)
            case Loss.GONE:
                moved.pop(gap.topic, None)
    return moved
