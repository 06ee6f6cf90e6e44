"""Which topics of a cluster this producer made: a compacted topic of marks, from topic name to topic id."""

from __future__ import annotations

from confluent_kafka import Producer

from demux.core.errors import StorageFailed
from demux.core.kafka.cluster import KafkaCluster
from producer.kafka.sender import Reports

MARKS = "demux-producer-marks"


class ClusterMarks:
    """The marks of one cluster.

    A mark holds for the topic of that name *and id*: a later topic of the same name is not marked by
    it. A crash between the making of a topic and its mark leaves a topic without one, which no command removes.

    Args:
        cluster: where the topics are.
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
