"""Records in and out of a broker by confluent-kafka, with a deadline."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PATIENCE_S = 30.0
# the clients tell of every attempt that failed, which here is often the point
SILENT = logging.getLogger("tests.kafka.silent")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


def make_topic(bootstrap: str, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
    """Return when the topic is there."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    made = client.create_topics([NewTopic(name, partitions, 1, config=dict(config or {}))])
    made[name].result(PATIENCE_S)


def send(options: Mapping[str, str], topic: str, *values: bytes) -> list[KafkaError | None]:
    """Return, in order, what became of each record of partition 0; None is success."""
    outcomes: list[KafkaError | None] = []
    producer = Producer({**options, "message.timeout.ms": int(PATIENCE_S * 1000)}, logger=SILENT)
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=lambda error, _: outcomes.append(error))
    producer.flush(PATIENCE_S)
    return outcomes


def received(options: Mapping[str, str], topic: str, count: int) -> list[bytes]:
    """Return the first records of partition 0."""
    consumer = Consumer({**options, "group.id": "tests", "enable.auto.commit": "false"}, logger=SILENT)
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        values: list[bytes] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(values) < count:
            assert time.monotonic() < deadline
            record = consumer.poll(0.5)
            if record is not None:
                assert record.error() is None
                values.append(record.value() or b"")
        return values
    finally:
        consumer.close()
