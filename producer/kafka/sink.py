"""The producer's Kafka target: a topic that the producer creates and marks."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from demux.core.errors import DemuxError, NotAcknowledged, SettingsInvalid, StorageFailed
from demux.core.kafka.cluster import KafkaCluster, KafkaTopic
from demux.core.kafka.reasons import KafkaReason
from demux.core.settings.source import KafkaSettings
from producer.records import Records, TargetPosition

_NO_POSITION = TargetPosition({})
# as org.apache.kafka.common.internals.Topic has it
_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}", re.ASCII)


class KafkaSink:
    """The first topic under `kafka.topics`.

    Each record has the key, partition and time (milliseconds) that it is given, and the header `made-by`.

    The broker acknowledges each record and keeps it once, also when it goes away in between. But records are not
    written all or none: after an error, or a crash in the middle of `write`, the topic has some of them. As the
    position is how many records the topic ever had, whoever continues from there sends some events of that batch twice
    and leaves out others.

    The user needs these permissions on the topic and on the one of marks: Create, Describe, Read, Write, Delete; with
    DescribeConfigs batches are cut to the topic's `max.message.bytes`. No group is joined.
    """

    def __init__(self, kafka: KafkaSettings, environ: Mapping[str, str], partitions: int = 4) -> None:
        self._topic = kafka.topics[0]
        if self._topic == MARKS:
            raise SettingsInvalid(f"The topic {MARKS} is the producer's own.", "Name another under kafka.topics.")
        if not _NAME.fullmatch(self._topic):
            raise SettingsInvalid(
                f"No topic can be called {self._topic!r}.",
                "Use letters, digits, '.', '_' and '-' under kafka.topics, at most 249 of them.",
                topic=self._topic,
            )
        self._bootstrap = kafka.bootstrap_servers
        self._partitions = partitions
        self._cluster = KafkaCluster(kafka, environ)
        self._marks = ClusterMarks(self._cluster)
        self._known: KafkaTopic | None = None
        self._position: TargetPosition | None = None
        self._producer: Producer | None = None

    def position(self) -> TargetPosition:
        """Return the topic's end offsets; 0 without a topic."""
        topic = self._cluster.topic(self._topic)
        if topic is not None and self._marks.topic_id(self._topic) != topic.topic_id:
            raise SettingsInvalid(
                f"The topic {self._topic} at {self._bootstrap} was not made by the producer.",
                "Name a topic that is not there yet under kafka.topics, as simulated events do not belong among real "
                "ones; an empty topic that an interrupted `demux produce` left behind can be deleted by hand.",
                topic=self._topic,
            )
        self._known = topic
        self._position = _NO_POSITION if topic is None else self._end(topic)
        return self._position

    def write(self, records: Records) -> None:
        """Append the records; returns when the broker has acknowledged each of them. Not safe to repeat.

        Raises:
            NotAcknowledged: the broker does not have all of them.
            KafkaRefused: it lets us write none of them.
            SettingsInvalid: a record wants a partition that the topic has not.
            StorageFailed: another producer is at work, or the topic was deleted or made again.
        """
        before = self.position() if self._position is None else self._position
        topic = self._checked(before)
        wanted = np.bincount(records.partitions)
        if len(wanted) > topic.partitions:
            raise SettingsInvalid(
                f"The topic {self._topic} has {topic.partitions} partitions, and the events want {len(wanted)}.",
                "Ask for fewer partitions, or for another topic under kafka.topics.",
                topic=self._topic,
            )
        # unknown until every record is acknowledged
        self._position = None
        if self._producer is None:
            self._producer = self._cluster.producer(self._cluster.max_batch_bytes(self._topic))
        reports = send(self._producer, self._topic, records)
        if reports.acknowledged != len(records.values):
            # what it still holds must not be sent later
            self._producer = None
            raise self._failure(reports, records)
        after = dict(before.next_offsets)
        for partition, count in enumerate(wanted.tolist()):
            if count:
                after[partition] = after.get(partition, 0) + count
        self._position = TargetPosition(after)

    def newest(self, count: int) -> Records:
        """Return the newest records by timestamp, at most `count`, oldest first; within a millisecond by partition."""
        self.position()
        if self._known is None or count <= 0:
            return Records([], [], np.empty(0, np.int32), np.empty(0, np.int64))
        found = sorted(
            (message.timestamp()[1], message.partition(), message.offset(), message.value(), message.key() or b"")
            for message in self._cluster.read(self._topic, self._known.partitions, count)
        )[-count:]
        return Records(
            [row[3] for row in found],
            [row[4] for row in found],
            np.array([row[1] for row in found], np.int32),
            np.array([row[0] for row in found], np.int64) * 1000,
        )

    def remove(self) -> bool:
        """Delete the topic if it carries the mark, then the mark; a second call can finish what the first began."""
        topic = self._cluster.topic(self._topic)
        made = self._marks.topic_id(self._topic)
        ours = topic is not None and topic.topic_id == made
        if ours:
            self._cluster.delete(self._topic)
        self._marks.drop(self._topic)
        self._known, self._position, self._producer = None, None, None
        return ours

    def _checked(self, before: TargetPosition) -> KafkaTopic:
        """Return the topic, created if missing; checks that no one else has changed it."""
        if self._known is None:
            self._known = self._made()
            return self._known
        topic = self._cluster.topic(self._topic)
        if topic is None or topic.topic_id != self._known.topic_id:
            raise StorageFailed(f"The topic {self._topic} was deleted while events were sent.", "Run again.")
        if self._end(topic) != before:
            raise StorageFailed(f"Another producer wrote to topic {self._topic}.", "Run again when it has ended.")
        return topic

    def _made(self) -> KafkaTopic:
        # first what else could fail: a topic without a mark is not removed
        self._marks.prepare()
        topic = self._cluster.create(self._topic, self._partitions)
        if topic is None:
            raise StorageFailed(f"Another producer made topic {self._topic}.", "Run again when it has ended.")
        self._marks.add(self._topic, topic.topic_id)
        return topic

    def _end(self, topic: KafkaTopic) -> TargetPosition:
        ends = self._cluster.end_offsets(self._topic, topic.partitions)
        return TargetPosition({partition: end for partition, end in ends.items() if end})

    def _failure(self, reports: Reports, records: Records) -> DemuxError:
        total, error = len(records.values), reports.error
        reason = KafkaReason("", "no answer came") if error is None else self._cluster.reason(error)
        if error is not None and reason.is_permission and reports.acknowledged == 0:
            return self._cluster.failure(f"write to topic {self._topic}", error)
        sentence = reason.sentence
        remedy = "Run again when the broker is well; some events of this batch may come twice then, and others not."
        if reports.refused_bytes:
            limit = self._cluster.max_batch_bytes(self._topic)
            sentence = (
                f"a record of {reports.refused_bytes:,} bytes is above "
                f"{'the limit' if limit is None else f'the {limit:,} bytes'} of the topic's max.message.bytes"
            )
            remedy = (
                "Raise max.message.bytes of the topic, or message.max.bytes of the broker, or send smaller records."
            )
        return NotAcknowledged(
            f"Of {total:,} records the broker acknowledged {reports.acknowledged:,}: {sentence}.",
            remedy,
            topic=self._topic,
            records=total,
            acknowledged=reports.acknowledged,
            reason=reason.text,
            record_bytes=reports.refused_bytes or None,
        )


_HEADERS: list[tuple[str, str | bytes | None]] = [("made-by", b"demux producer")]
# delivery reports are served this often; until then the queue holds the records
_AT_ONCE = 1000
_STEP_S = 0.5
_LAST_ANSWERS_S = 5.0
_OURS = frozenset({"_PURGE_QUEUE", "_PURGE_INFLIGHT"})


class Reports:
    """The delivery reports of some records.

    Attributes:
        refused_bytes: the size of the largest record that was too large for the broker; 0 when none was.
    """

    __slots__ = ("acknowledged", "error", "refused_bytes")

    def __init__(self) -> None:
        self.acknowledged = 0
        self.error: KafkaError | None = None
        self.refused_bytes = 0

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        """Count one report; called by the client for each record."""
        if error is None:
            self.acknowledged += 1
        elif error.name() not in _OURS:
            self.fail(error, len(message.value() or b"") + len(message.key() or b""))

    def fail(self, error: KafkaError, record_bytes: int) -> None:
        """Count one record that was not acknowledged."""
        self.error = self.error or error
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            self.refused_bytes = max(self.refused_bytes, record_bytes)


def send(producer: Producer, topic: str, records: Records) -> Reports:
    """Return the reports of the records once the broker has all of them, or one of them failed.

    With the first failure no further record is sent; those behind it may be in the topic or not.
    """
    reports = Reports()
    partitions = records.partitions.tolist()
    timestamps = (records.timestamps_us // 1000).tolist()
    for start in range(0, len(partitions), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        rows = zip(records.values[some], records.keys[some], partitions[some], timestamps[some], strict=True)
        for value, key, partition, timestamp in rows:
            _enqueue(producer, reports, topic, value, key, partition, timestamp)
        producer.poll(0)
        if reports.error:
            break
    while producer.flush(_STEP_S) and not reports.error:
        pass
    if reports.error:
        producer.purge(in_queue=True, in_flight=False)
        producer.flush(_LAST_ANSWERS_S)
    return reports


def _enqueue(
    producer: Producer,
    reports: Reports,
    topic: str,
    value: bytes | None,
    key: bytes,
    partition: int,
    timestamp: int,
) -> None:
    while not reports.error:
        try:
            producer.produce(topic, value, key, partition, on_delivery=reports, timestamp=timestamp, headers=_HEADERS)
            return
        except BufferError:
            if not len(producer):
                # larger than the whole queue
                reports.fail(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), len(value or b"") + len(key))
            producer.poll(_STEP_S)
        except KafkaException as error:
            reports.fail(error.args[0], len(value or b"") + len(key))


MARKS = "demux-producer-marks"


class ClusterMarks:
    """The marks of one cluster.

    A mark holds for the topic of that name *and id*: a later topic of the same name is not marked by
    it. A crash between the making of a topic and its mark leaves a topic without one, which no command removes.
    """

    def __init__(self, cluster: KafkaCluster) -> None:
        self._cluster = cluster

    def prepare(self) -> None:
        """Make the topic of marks if it is not there; it is marked itself."""
        if self._cluster.topic(MARKS) is None:
            made = self._cluster.create(MARKS, 1, {"cleanup.policy": "compact"})
            if made is not None:
                self.add(MARKS, made.topic_id)

    def topic_id(self, name: str) -> str | None:
        """Return the id of the topic that the producer made under this name, if it did."""
        return self._read().get(name)

    def add(self, name: str, topic_id: str) -> None:
        """Mark the topic."""
        self._write(name, topic_id)

    def drop(self, name: str) -> None:
        """Take the mark away; with the last one goes the topic of marks, if the producer made it."""
        left = self._read()
        if left.pop(name, None) is None:
            return
        self._write(name, None)
        marks = self._cluster.topic(MARKS)
        if marks is not None and left == {MARKS: marks.topic_id}:
            self._cluster.delete(MARKS)

    def _read(self) -> dict[str, str]:
        if self._cluster.topic(MARKS) is None:
            return {}
        found: dict[str, str] = {}
        for message in self._cluster.read(MARKS, 1):
            name, topic_id = (message.key() or b"").decode(errors="replace"), message.value()
            found.pop(name, None)
            if topic_id is not None:
                found[name] = topic_id.decode(errors="replace")
        return found

    def _write(self, name: str, topic_id: str | None) -> None:
        reports = Reports()
        producer: Producer = self._cluster.producer()
        producer.produce(MARKS, topic_id, name, 0, on_delivery=reports)
        producer.flush()
        if reports.error is not None:
            raise self._cluster.failure(f"write to topic {MARKS}", reports.error)
        if reports.acknowledged != 1:
            raise StorageFailed(f"Topic {name} could not be marked.", "Run again.")
