"""The producer when the broker is not there, goes away, or comes back."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from demux.core.errors import ErrorKind, KafkaUnavailable, NotAcknowledged
from producer.kafka.sink import KafkaSink
from producer.records import Records
from tests.support.kafka.produced import NOW, read, records, settings
from tests.support.kafka.records import PATIENCE_S, SILENT
from tools.servers.broker import Broker, start_broker
from tools.servers.ports import free_ports

COUNT = 400_000
QUEUE = 1000
PARTITIONS = 4


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Broker]:
    """A broker that the test may kill."""
    with start_broker(tmp_path / "broker") as broker:
        yield broker


def numbered(count: int) -> Records:
    """Records that say which they are, one partition after the other."""
    numbers = np.arange(count)
    return Records(
        [b"%d" % number for number in numbers.tolist()],
        [b"key"] * count,
        (numbers % PARTITIONS).astype(np.int32),
        np.full(count, int(NOW.timestamp()) * 1_000_000),
    )


def wait_for_records(bootstrap: str, topic: str) -> int:
    """Return how many records the topic has, as soon as it has more than the producer's queue."""
    client, deadline = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT), time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = {TopicPartition(topic, at): latest for at in range(PARTITIONS)}
        answers = client.list_offsets(asked)
        found: int = sum(answer.result(PATIENCE_S).offset for answer in answers.values())
        if found > 2 * QUEUE:
            return found
    raise AssertionError("too few records came")


def test_a_broker_that_is_killed_in_the_middle_and_comes_back_has_each_record_once(mortal: Broker) -> None:
    # a small queue holds the producer back, so that the kill comes before the end
    kafka = settings(mortal.bootstrap, "killed", options={"queue.buffering.max.messages": str(QUEUE), "linger.ms": "1"})
    sink = KafkaSink(kafka, {}, PARTITIONS)
    sink.write(records(b"first"))
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(sink.write, numbered(COUNT))
        before = wait_for_records(mortal.bootstrap, "killed")
        mortal.kill()
        assert not sending.done()
        mortal.restart()
        sending.result(PATIENCE_S * 4)
    assert before < COUNT
    found = [value for _, _, _, value in read(mortal.bootstrap, "killed")]
    expected = [b"%d" % number for at in range(PARTITIONS) for number in range(at, COUNT, PARTITIONS)]
    assert found[0] == b"first"
    assert len(found) == COUNT + 1
    assert found[1:] == expected
    assert sink.position().sent == COUNT + 1
    sink.write(records(b"last"))
    assert KafkaSink(kafka, {}).position().sent == COUNT + 2


def test_a_broker_that_goes_away_for_good_is_told_with_what_it_has(mortal: Broker) -> None:
    # small batches, so that the broker is gone before a busy machine has sent them all
    options = {"delivery.timeout.ms": "3000", "queue.buffering.max.messages": str(QUEUE), "batch.num.messages": "10"}
    sink = KafkaSink(settings(mortal.bootstrap, "gone", options=options), {})
    sink.write(records(b"first"))
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(sink.write, numbered(COUNT))
        wait_for_records(mortal.bootstrap, "gone")
        mortal.kill()
        with pytest.raises(NotAcknowledged) as failure:
            sending.result(PATIENCE_S * 2)
    acknowledged = failure.value.fields["acknowledged"]
    assert isinstance(acknowledged, int)
    assert 0 < acknowledged < COUNT
    assert failure.value.message.startswith(
        f"Of {COUNT:,} records the broker acknowledged {acknowledged:,}: {mortal.bootstrap}"
    )
    assert failure.value.remedy == (
        "Run again when the broker is well; some events of this batch may come twice then, and others not."
    )


def test_no_broker_at_the_start_is_told_in_time_with_host_port_and_listener() -> None:
    (port,) = free_ports(1)
    started = time.monotonic()
    with pytest.raises(KafkaUnavailable) as failure:
        KafkaSink(settings(f"127.0.0.1:{port}", "t", connect_timeout_s=2.0), {}).position()
    assert time.monotonic() - started < 10
    assert failure.value.kind is ErrorKind.TRANSIENT
    assert failure.value.message.startswith(f"No broker answered at 127.0.0.1:{port} (PLAINTEXT) within 2 s: ")
    assert "Connection refused" in failure.value.message


def test_a_host_without_an_address_is_told_by_name() -> None:
    with pytest.raises(KafkaUnavailable, match=r"no\.such\.host\.invalid:9092.*within 1 s: .*resolve"):
        KafkaSink(settings("no.such.host.invalid:9092", "t", connect_timeout_s=1.0), {}).position()


def test_a_port_where_nobody_answers_is_not_waited_for_longer_than_asked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        bootstrap = f"127.0.0.1:{silent.getsockname()[1]}"
        started = time.monotonic()
        with pytest.raises(KafkaUnavailable, match=rf"No broker answered at {bootstrap}"):
            KafkaSink(settings(bootstrap, "t", connect_timeout_s=2.0), {}).position()
    assert time.monotonic() - started < 10


def test_clean_up_without_a_broker_says_so() -> None:
    (port,) = free_ports(1)
    with pytest.raises(KafkaUnavailable):
        KafkaSink(settings(f"127.0.0.1:{port}", "t", connect_timeout_s=1.0), {}).remove()
