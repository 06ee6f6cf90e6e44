"""Records that the broker no longer has when bronze wants them: said, given up only when told, and written down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bronze_ingest.kafka.checkpoint_offsets import move
from demux.core.errors import OffsetsLost
from demux.core.reports import IngestReport
from tests.support.flow.crash import Crash, after_writing
from tests.support.kafka.intake import Intake, of_chess
from tests.support.kafka.produced import delete_topic
from tests.support.kafka.records import Record, add_partitions, forget, make_topic, put
from tools.servers.broker import Broker

REMEDY = "Restore them, or run `demux ingest --accept-gaps` once: it continues without them and records the gap."
NOTHING = IngestReport(0, 0, 0)

Make = Callable[..., Intake]
Send = Callable[..., None]


@pytest.fixture
def send(broker: Broker) -> Send:
    """Sends wrapped payloads to a partition of a topic."""

    def sent(topic: str, *payloads: bytes, partition: int = 0) -> None:
        records = [Record(of_chess(payload), partition=partition) for payload in payloads]
        put({"bootstrap.servers": broker.bootstrap}, topic, *records)

    return sent


@pytest.fixture
def root(spark: SparkSession, tmp_path: Path, broker: Broker) -> Make:
    """Makes the test's root, that reads these topics."""
    return lambda *topics, **kafka: Intake.at(spark, tmp_path, broker.bootstrap, *topics, **kafka)


@contextmanager
def after_moving() -> Iterator[None]:
    """Crash when the checkpoint stands behind the gap, before the topic's new id is known."""
    with pytest.MonkeyPatch.context() as patch:

        def move_and_crash(*args: Any) -> None:
            move(*args)
            raise Crash

        patch.setattr("bronze_ingest.kafka.topic_history.move", move_and_crash)
        yield


def dies(_: IngestReport) -> None:
    raise Crash("after the tables, before the checkpoint")


def make_again(broker: Broker, topic: str, partitions: int = 1) -> None:
    delete_topic(broker.bootstrap, topic)
    make_topic(broker.bootstrap, topic, partitions)


@pytest.mark.both_lanes
def test_records_that_expired_unread_are_named_and_nothing_is_done(broker: Broker, root: Make, send: Send) -> None:
    make_topic(broker.bootstrap, "expired", 2)
    send("expired", b"0", b"1")
    send("expired", b"0", partition=1)
    taken = root("expired")
    assert taken.ingest() == IngestReport(3, 3, 0)
    send("expired", b"2", b"3", b"4")
    send("expired", b"1", b"2", partition=1)
    forget(broker.bootstrap, "expired", {0: 4, 1: 2})
    for _ in range(2):
        error = taken.refused(OffsetsLost)
        assert error.message == (
            "Offsets that the stream needs are lost, as the broker has deleted them: "
            "topic expired, partition 0: offsets 2 to 3 (2 records); topic expired, partition 1: offset 1 (1 record)."
        )
        assert error.remedy == REMEDY
    assert (len(taken.bronze()), taken.gaps()) == (3, [])
    assert taken.ingest(accept_gaps=True) == IngestReport(2, 2, 0)
    assert taken.bronze()[1:] == [
        ("expired/0/1", b"1"),
        ("expired/0/4", b"4"),
        ("expired/1/0", b"0"),
        ("expired/1/2", b"2"),
    ]
    written = [("expired", 0, 2, 4, "expired"), ("expired", 1, 1, 2, "expired")]
    assert taken.gaps() == written
    assert [taken.ingest(accept_gaps=True), taken.ingest()] == [NOTHING, NOTHING]
    assert taken.gaps() == written


def test_records_that_expired_before_the_first_batch_are_named_too(broker: Broker, root: Make, send: Send) -> None:
    make_topic(broker.bootstrap, "expired_early")
    send("expired_early", b"before")
    taken = root("expired_early", starting_offsets="latest")
    assert taken.ingest() == NOTHING
    send("expired_early", b"1", b"2", b"3")
    forget(broker.bootstrap, "expired_early", {0: 3})
    assert "topic expired_early, partition 0: offsets 1 to 2 (2 records)." in taken.refused(OffsetsLost).message
    assert taken.ingest(accept_gaps=True) == IngestReport(1, 1, 0)
    assert taken.bronze() == [("expired_early/0/3", b"3")]
    assert taken.gaps() == [("expired_early", 0, 1, 3, "expired")]
    assert taken.ingest() == NOTHING


def test_a_batch_that_comes_again_without_what_expired_has_each_record_once(
    broker: Broker, root: Make, send: Send
) -> None:
    make_topic(broker.bootstrap, "expired_within", 2)
    send("expired_within", b"0", partition=1)
    taken = root("expired_within")
    taken.ingest()
    send("expired_within", b"0", b"1", b"2")
    options = {"bootstrap.servers": broker.bootstrap}
    put(options, "expired_within", Record(b"no wrapper", partition=1))
    with pytest.raises(Exception, match="before the checkpoint"):
        taken.ingest(on_batch=dies)
    send("expired_within", b"3")
    forget(broker.bootstrap, "expired_within", {0: 1})
    assert "partition 0: offset 0 (1 record)." in taken.refused(OffsetsLost).message
    with after_writing(taken.layout.gaps), pytest.raises(Crash):
        taken.ingest(accept_gaps=True)
    with after_moving(), pytest.raises(Crash):
        taken.ingest(accept_gaps=True)
    taken.ingest()
    # bronze had it before it expired
    assert taken.bronze() == [
        *((f"expired_within/0/{at}", b"%d" % at) for at in range(4)),
        ("expired_within/1/0", b"0"),
    ]
    assert taken.quarantine("record_id") == [("expired_within/1/1",)]
    assert taken.gaps() == [("expired_within", 0, 0, 1, "expired")]
    assert taken.ingest() == NOTHING


def test_a_topic_that_is_made_again_is_said_and_its_records_get_ids_of_their_own(
    broker: Broker, root: Make, send: Send
) -> None:
    make_topic(broker.bootstrap, "again", 2)
    send("again", b"old 0", b"old 1")
    taken = root("again")
    taken.ingest()
    make_again(broker, "again")
    # more than the old one had: by its offsets alone nobody would notice
    send("again", b"new 0", b"new 1", b"new 2")
    error = taken.refused(OffsetsLost)
    assert error.message == (
        "Offsets that the stream needs are lost, as the topic was deleted and made again: topic again, partition 0: "
        "everything from offset 2 on; topic again, partition 1: everything from offset 0 on."
    )
    with after_moving(), pytest.raises(Crash):
        taken.ingest(accept_gaps=True)
    assert taken.ingest() == IngestReport(3, 3, 0)
    assert taken.bronze() == [
        ("again/0/0", b"old 0"),
        ("again/0/1", b"old 1"),
        *((f"again@2/0/{at}", b"new %d" % at) for at in range(3)),
    ]
    written = [("again", 0, 2, None, "topic made again"), ("again", 1, 0, None, "topic made again")]
    assert taken.gaps() == written
    assert taken.ingest(accept_gaps=True) == NOTHING
    make_again(broker, "again", 2)
    send("again", b"newest", partition=1)
    assert taken.ingest(accept_gaps=True) == IngestReport(1, 1, 0)
    assert taken.bronze()[-1] == ("again@3/1/0", b"newest")
    assert taken.gaps() == [*written[:1], ("again", 0, 3, None, "topic made again"), *written[1:]]


def test_a_topic_that_is_made_again_before_anything_was_read_is_said(broker: Broker, root: Make, send: Send) -> None:
    make_topic(broker.bootstrap, "again_early")
    taken = root("again_early")
    taken.ingest()
    # nobody knows what came and went
    make_again(broker, "again_early")
    assert "topic again_early, partition 0: everything from offset 0 on." in taken.refused(OffsetsLost).message
    assert taken.ingest(accept_gaps=True) == NOTHING
    send("again_early", b"0")
    assert taken.ingest() == IngestReport(1, 1, 0)
    assert taken.bronze("record_id") == [("again_early@2/0/0",)]


def test_a_topic_that_is_left_out_and_taken_back_goes_on_where_it_was(broker: Broker, root: Make, send: Send) -> None:
    for topic in ("stays", "leaves"):
        make_topic(broker.bootstrap, topic)
        send(topic, b"0")
    taken = root("stays", "leaves")
    assert taken.ingest() == IngestReport(2, 2, 0)
    send("leaves", b"1")
    with pytest.raises(OffsetsLost) as failure:
        taken.ingest(topics=["stays"])
    assert failure.value.message == (
        "Offsets that the stream needs are lost, as the topic is gone, or no longer among those to read: "
        "topic leaves, partition 0: everything from offset 1 on."
    )
    assert taken.ingest(accept_gaps=True, topics=["stays"]) == NOTHING
    assert taken.gaps() == [("leaves", 0, 1, None, "topic gone")]
    send("stays", b"1")
    assert taken.ingest(topics=["stays"]) == IngestReport(1, 1, 0)
    assert taken.ingest() == IngestReport(1, 1, 0)
    assert taken.bronze("record_id") == [("leaves/0/0",), ("leaves/0/1",), ("stays/0/0",), ("stays/0/1",)]


def test_a_topic_begins_where_its_broker_begins_and_a_new_partition_at_its_first_record(
    broker: Broker, root: Make, send: Send
) -> None:
    make_topic(broker.bootstrap, "young_a")
    send("young_a", b"0")
    taken = root(topic_pattern="young_.")
    taken.ingest()
    make_topic(broker.bootstrap, "young_b")
    send("young_b", b"0", b"1", b"2")
    forget(broker.bootstrap, "young_b", {0: 2})
    assert taken.ingest() == IngestReport(1, 1, 0)
    assert taken.bronze("record_id") == [("young_a/0/0",), ("young_b/0/2",)]
    assert taken.gaps() == []
    add_partitions(broker.bootstrap, "young_a", 2)
    send("young_a", b"0", b"1", partition=1)
    forget(broker.bootstrap, "young_a", {1: 1})
    assert "topic young_a, partition 1: offset 0 (1 record)." in taken.refused(OffsetsLost).message
    assert taken.ingest(accept_gaps=True) == IngestReport(1, 1, 0)
    assert taken.gaps() == [("young_a", 1, 0, 1, "expired")]
    assert taken.ingest() == NOTHING
