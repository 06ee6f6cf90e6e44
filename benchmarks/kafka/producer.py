"""How many wrapped events a second the producer makes and sends, next to a plain loop that sends the same bytes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from confluent_kafka import Producer

from benchmarks.support.events import Kept
from demux.core.settings.source import KafkaSettings
from producer.kafka.sink import KafkaSink
from producer.records import Records
from producer.run import MADE_BY, ProduceRequest, produce
from tools.memory_registry import MemoryRegistry
from tools.servers.broker import start_broker

_PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class Speeds:
    """Events a second, all of them acknowledged.

    Attributes:
        ours: made, wrapped and sent by the producer.
        plain: the same bytes, made before, sent by a loop over confluent-kafka.
        made: made and wrapped by the producer, sent nowhere.
    """

    ours: float
    plain: float
    made: float

    @property
    def ratio(self) -> float:
        """The producer's speed as a share of the plain loop's."""
        return self.ours / self.plain


def producer_speeds(bootstrap: str, events: int = 500_000) -> Speeds:
    """Return the speeds at this broker; the topics that it makes are removed again."""
    registry = MemoryRegistry(made_by=MADE_BY)
    request = ProduceRequest(events=events, partitions=_PARTITIONS)
    now = datetime.now(timezone.utc)
    sinks = [KafkaSink(_settings(bootstrap, f"bench-{name}"), {}, _PARTITIONS) for name in ("ours", "plain")]
    try:
        for sink in sinks:
            # makes the topic, and compiles the schemas
            produce(ProduceRequest(events=100, partitions=_PARTITIONS), registry, sink, now=now)
        kept = Kept()
        made = _seconds(lambda: produce(request, registry, kept, now=now))
        ours = _seconds(lambda: produce(request, registry, sinks[0], now=now))
        plain = _seconds(lambda: _send(bootstrap, "bench-plain", kept.batches))
        assert sinks[1].position().sent == events + 100
    finally:
        for sink in sinks:
            sink.remove()
    return Speeds(events / ours, events / plain, events / made)


def measured(folder: Path, events: int = 500_000) -> Speeds:
    """Return the speeds at a broker that is started for it, with its data in the folder."""
    with start_broker(folder) as broker:
        return producer_speeds(broker.bootstrap, events)


def lines(speeds: Speeds) -> list[str]:
    """Return the results as Markdown."""
    return [
        "| producer to Kafka, one thread, acks=all, idempotent | events per second |",
        "| --- | ---: |",
        f"| made, wrapped, sent and acknowledged | {speeds.ours:,.0f} |",
        f"| the same bytes, made before, by a plain loop over confluent-kafka | {speeds.plain:,.0f} |",
        f"| made and wrapped, sent nowhere | {speeds.made:,.0f} |",
        f"| producer / plain loop | {speeds.ratio:.2f} |",
        "",
    ]


def _send(bootstrap: str, topic: str, batches: list[Records]) -> None:
    settings = _settings(bootstrap, topic)
    options = {"enable.idempotence": True, "acks": "all", "compression.type": settings.compression.value}
    producer = Producer({"bootstrap.servers": bootstrap, **options})
    for records in batches:
        timestamps = (records.timestamps_us // 1000).tolist()
        for value, key, partition, at in zip(
            records.values, records.keys, records.partitions.tolist(), timestamps, strict=True
        ):
            while True:
                try:
                    producer.produce(topic, value, key, partition, timestamp=at)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(60) == 0


def _settings(bootstrap: str, topic: str) -> KafkaSettings:
    return KafkaSettings(bootstrap_servers=bootstrap, topics=(topic,))


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
