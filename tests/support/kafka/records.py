"""Records in and out of a broker by confluent-kafka, with a deadline."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

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


@dataclass(frozen=True, slots=True)
class Record:
    """What a record has besides its topic; times are milliseconds since 1970, 0 is now."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    time_ms: int = 0
    headers: Sequence[tuple[str, bytes | None]] = ()


class End(Enum):
    """How a transaction ends."""

    COMMITTED = "committed"
    ABORTED = "aborted"


def put(options: Mapping[str, str], topic: str, *records: Record) -> None:
    """Return when the broker has all of them, in order."""
    producer = Producer({**options, "message.max.bytes": "30000000"}, logger=SILENT)
    _produce(producer, topic, records)
    assert producer.flush(PATIENCE_S) == 0


def put_transaction(bootstrap: str, topic: str, end: End, *records: Record) -> None:
    """Return when the transaction with these records has ended, and its end stands in each partition.

    Whoever writes next comes after that end: the broker answers a commit before it has written it everywhere.
    """
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-{end.value}"}, logger=SILENT)
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    _produce(producer, topic, records)
    assert producer.flush(PATIENCE_S) == 0
    if end is End.COMMITTED:
        producer.commit_transaction(PATIENCE_S)
    else:
        producer.abort_transaction(PATIENCE_S)
    partitions = [TopicPartition(topic, partition) for partition in {record.partition for record in records}]
    deadline = time.monotonic() + PATIENCE_S
    while _ends(bootstrap, partitions, "read_committed") != _ends(bootstrap, partitions, "read_uncommitted"):
        assert time.monotonic() < deadline


def forget(bootstrap: str, topic: str, before: Mapping[int, int]) -> None:
    """Return when the broker has deleted what comes before these offsets, by partition, as retention does."""
    client = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT)
    asked = [TopicPartition(topic, partition, offset) for partition, offset in before.items()]
    for answer in client.delete_records(asked).values():
        answer.result(PATIENCE_S)


def add_partitions(bootstrap: str, topic: str, count: int) -> None:
    """Return when the topic has so many partitions, and says so."""
    client = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT)
    client.create_partitions([NewPartitions(topic, count)])[topic].result(PATIENCE_S)
    deadline = time.monotonic() + PATIENCE_S
    while len(client.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions) < count:
        assert time.monotonic() < deadline


def offsets_of(bootstrap: str, topic: str) -> list[int]:
    """Return the offsets of the records that partition 0 has."""
    options = {"bootstrap.servers": bootstrap, "group.id": "tests", "enable.partition.eof": "true"}
    consumer = Consumer({**options, "enable.auto.commit": "false"}, logger=SILENT)
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        offsets: list[int] = []
        deadline = time.monotonic() + PATIENCE_S
        while True:
            assert time.monotonic() < deadline
            for record in consumer.consume(1000, 0.2):
                if record.error() is not None:
                    return offsets
                offsets.append(record.offset() or 0)
    finally:
        consumer.close()


def _ends(bootstrap: str, partitions: Sequence[TopicPartition], isolation: str) -> list[int]:
    options = {"bootstrap.servers": bootstrap, "group.id": "tests", "isolation.level": isolation}
    consumer = Consumer(options, logger=SILENT)
    try:
        return [consumer.get_watermark_offsets(partition, PATIENCE_S)[1] for partition in partitions]
    finally:
        consumer.close()


def _produce(producer: Producer, topic: str, records: Sequence[Record]) -> None:
    for record in records:
        producer.produce(
            topic,
            record.value,
            record.key,
            partition=record.partition,
            headers=list(record.headers),
            timestamp=record.time_ms,
            on_delivery=_must_arrive,
        )


def _must_arrive(error: KafkaError | None, _: Message) -> None:
    assert error is None, error
