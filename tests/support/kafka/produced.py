"""What the producer sends, and what a topic then has, record by record."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import numpy as np
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

from demux.core.settings.source import KafkaSettings
from producer.kafka.sink import KafkaSink
from producer.records import Records, TargetPosition
from producer.run import MADE_BY, ProduceReport, ProduceRequest, produce
from tests.support.kafka.records import PATIENCE_S, SILENT
from tools.memory_registry import MemoryRegistry

# a topic forgets what is older than a week
NOW = datetime.now(timezone.utc).replace(microsecond=0)
SMALL = ProduceRequest(events=300, games=3, versions=2, fault_rate=0.2, batch_events=128)
# partition, time in milliseconds, key, value
Row = tuple[int, int, bytes, bytes | None]


class Recorder:
    """A sink that keeps what is written to it."""

    def __init__(self) -> None:
        self.written: list[Records] = []

    def position(self) -> TargetPosition:
        return TargetPosition({})

    def write(self, records: Records) -> None:
        self.written.append(records)

    def newest(self, count: int) -> Records:
        return Records([], [], np.empty(0, np.int32), np.empty(0, np.int64))

    def remove(self) -> bool:
        return False


def settings(bootstrap: str, topic: str, **more: Any) -> KafkaSettings:
    return KafkaSettings.model_validate({"bootstrap_servers": bootstrap, "topics": [topic], **more})


def run(kafka: KafkaSettings, request: ProduceRequest = SMALL, partitions: int = 4) -> ProduceReport:
    return produce(request, MemoryRegistry(made_by=MADE_BY), KafkaSink(kafka, {}, partitions), now=NOW)


def records(*values: bytes | None, partition: int = 0) -> Records:
    count, now_us = len(values), int(NOW.timestamp()) * 1_000_000
    return Records(list(values), [b"key"] * count, np.full(count, partition, np.int32), np.full(count, now_us))


def expected(request: ProduceRequest = SMALL) -> list[Row]:
    """The rows that the request sends to an empty topic, in order within a partition."""
    recorder = Recorder()
    produce(request, MemoryRegistry(made_by=MADE_BY), recorder, now=NOW)
    return sorted((row for each in recorder.written for row in rows_of(each)), key=lambda row: row[0])


def rows_of(records: Records) -> Iterator[Row]:
    times = (records.timestamps_us // 1000).tolist()
    yield from zip(records.partitions.tolist(), times, records.keys, records.values, strict=True)


def read(bootstrap: str, topic: str) -> list[Row]:
    """The rows of the topic by partition and offset; each has the producer's header."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "tests", "enable.partition.eof": True}, logger=SILENT
    )
    try:
        partitions = range(len(consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions))
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        found: list[tuple[Row, int]] = []
        waiting, deadline = set(partitions), time.monotonic() + PATIENCE_S
        while waiting:
            assert time.monotonic() < deadline
            for message in consumer.consume(10_000, timeout=0.2):
                error, partition = message.error(), message.partition() or 0
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF
                    waiting.discard(partition)
                    continue
                assert message.headers() == [("made-by", b"demux producer")]
                row = (partition, message.timestamp()[1], message.key() or b"", message.value())
                found.append((row, message.offset() or 0))
        return [row for row, _ in sorted(found, key=lambda each: (each[0][0], each[1]))]
    finally:
        consumer.close()


def topics(bootstrap: str) -> set[str]:
    """The names of all topics but Kafka's own."""
    client = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT)
    return {name for name in client.list_topics(timeout=PATIENCE_S).topics if not name.startswith("__")}


def delete_topic(bootstrap: str, name: str) -> None:
    """Return when the topic is gone."""
    client = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT)
    client.delete_topics([name])[name].result(PATIENCE_S)
    deadline = time.monotonic() + PATIENCE_S
    while name in topics(bootstrap):
        assert time.monotonic() < deadline
