"""Records from a broker into bronze: which ones, in which batches, and what comes along with them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demux.core.causes import Cause
from demux.core.errors import SettingsInvalid, TopicMissing
from demux.core.reports import IngestReport
from tests.support.flow.process import wait_until
from tests.support.kafka.intake import GAME, Intake, of_chess
from tests.support.kafka.records import End, Record, add_partitions, make_topic, offsets_of, put, put_transaction
from tools.servers.broker import Broker

# a topic forgets what is older than a week
NOON = datetime.now(timezone.utc).replace(microsecond=0) - timedelta(days=2)
NOON_MS = int(NOON.timestamp() * 1000)

Make = Callable[..., Intake]


@pytest.fixture
def to(broker: Broker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap}


@pytest.fixture
def root(spark: SparkSession, tmp_path: Path, broker: Broker) -> Make:
    """Makes the test's root, that reads these topics."""
    return lambda *topics, **kafka: Intake.at(spark, tmp_path, broker.bootstrap, *topics, **kafka)


def numbered(first: int, count: int, partition: int = 0) -> list[Record]:
    return [Record(of_chess(b"%d" % number), partition=partition) for number in range(first, first + count)]


def payloads(root: Intake) -> list[int]:
    return sorted(int(payload) for (payload,) in root.bronze("payload"))


@pytest.mark.both_lanes
def test_a_record_comes_with_position_time_key_and_headers(broker: Broker, root: Make, to: dict[str, str]) -> None:
    make_topic(broker.bootstrap, "whole", 2)
    headers = [("trace", b"\x00\xff"), ("trace", b"again"), ("none", None)]
    put(to, "whole", Record(of_chess(b"one"), b"player 1", 1, NOON_MS + 7, headers), Record(of_chess(b"two"), None, 1))
    taken = root("whole")
    assert taken.ingest() == IngestReport(2, 2, 0)
    columns = ("game_name", "schema_id", "payload", "origin", "topic", "partition", "offset", "record_id", "key")
    assert taken.bronze(*columns) == [
        (GAME, 7, b"one", "kafka", "whole", 1, 0, "whole/1/0", b"player 1"),
        (GAME, 7, b"two", "kafka", "whole", 1, 1, "whole/1/1", None),
    ]
    assert taken.bronze("offset", "timestamp")[0] == (0, NOON + timedelta(milliseconds=7))
    assert taken.bronze("offset", "headers") == [
        (0, [{"key": key, "value": value} for key, value in headers]),
        (1, None),
    ]
    # nothing new
    assert taken.ingest() == IngestReport(0, 0, 0)


def test_several_topics_come_in_one_run(broker: Broker, root: Make, to: dict[str, str]) -> None:
    for topic in ("several.a", "several.b"):
        make_topic(broker.bootstrap, topic)
        put(to, topic, Record(of_chess(topic.encode())))
    make_topic(broker.bootstrap, "several.empty")
    taken = root("several.a", "several.b", "several.empty")
    assert taken.ingest() == IngestReport(2, 2, 0)
    assert taken.bronze() == [("several.a/0/0", b"several.a"), ("several.b/0/0", b"several.b")]


def test_a_pattern_takes_topics_in_that_are_made_later(broker: Broker, root: Make, to: dict[str, str]) -> None:
    for topic in ("pattern_a", "not_pattern_a"):
        make_topic(broker.bootstrap, topic)
        put(to, topic, Record(of_chess(topic.encode())))
    taken = root(topic_pattern="pattern_[a-z]")
    assert taken.ingest().rows_in == 1
    make_topic(broker.bootstrap, "pattern_b")
    put(to, "pattern_b", Record(of_chess(b"later")))
    put(to, "pattern_a", Record(of_chess(b"more")))
    assert taken.ingest().rows_in == 2
    assert taken.bronze() == [
        ("pattern_a/0/0", b"pattern_a"),
        ("pattern_a/0/1", b"more"),
        ("pattern_b/0/0", b"later"),
    ]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ({"starting_offsets": "latest"}, [9]),
        ({"starting_offsets": '{"start": {"0": 1, "1": -1}}'}, [1, 2, 9]),
        ({"starting_timestamp": (NOON + timedelta(minutes=1)).isoformat()}, [1, 2, 9]),
    ],
    ids=["latest", "offsets", "time"],
)
def test_the_first_run_begins_where_it_is_told(
    broker: Broker, root: Make, to: dict[str, str], start: dict[str, str], expected: list[int]
) -> None:
    topic = "start_" + next(iter(start))[9:] + str(len(expected))
    make_topic(broker.bootstrap, topic, 2)
    put(to, topic, *(Record(of_chess(b"%d" % at), time_ms=NOON_MS + at * 60_000) for at in range(3)))
    put(to, topic, Record(of_chess(b"8"), partition=1, time_ms=NOON_MS))
    taken = root(topic, **{name: text.replace('"start"', f'"{topic}"') for name, text in start.items()})
    assert taken.ingest().rows_in == len(expected) - 1
    put(to, topic, Record(of_chess(b"9"), partition=1))
    assert taken.ingest().rows_in == 1
    assert payloads(taken) == expected


def test_batches_are_no_larger_than_asked(broker: Broker, root: Make, to: dict[str, str]) -> None:
    make_topic(broker.bootstrap, "batches")
    put(to, "batches", *numbered(0, 25))
    taken = root("batches", max_offsets_per_batch=10)
    sizes: list[int] = []
    assert taken.ingest(on_batch=lambda report: sizes.append(report.rows_in)).rows_in == 25
    assert sizes == [10, 10, 5]
    assert payloads(taken) == list(range(25))


def test_a_partition_is_read_by_as_many_tasks_as_asked(
    broker: Broker, root: Make, to: dict[str, str], spark: SparkSession
) -> None:
    make_topic(broker.bootstrap, "tasks")
    put(to, "tasks", *numbered(0, 40))
    taken = root("tasks", min_partitions=4)
    taken.ingest(on_batch=lambda _: None)
    assert payloads(taken) == list(range(40))
    files = {Path(file).name for file in map(str, Path(taken.layout.bronze).rglob("*.parquet"))}
    assert len(files) == 4


def test_any_other_option_reaches_the_consumer(broker: Broker, root: Make, to: dict[str, str]) -> None:
    make_topic(broker.bootstrap, "passed")
    put_transaction(broker.bootstrap, "passed", End.ABORTED, *numbered(0, 2))
    taken = root("passed", options={"isolation.level": "read_uncommitted", "client.id": "ours", "group.id": "ours"})
    assert taken.ingest().rows_in == 2
    with pytest.raises(SettingsInvalid, match=r"Invalid value for configuration property \"metadata\.max\.age\.ms\""):
        taken.ingest(options={"metadata.max.age.ms": "never"})


@pytest.mark.parametrize("end", [pytest.param(End.COMMITTED, marks=pytest.mark.both_lanes), End.ABORTED])
def test_records_of_a_transaction_count_when_it_is_committed(
    broker: Broker, root: Make, to: dict[str, str], end: End
) -> None:
    topic = f"transaction_{end.value}"
    make_topic(broker.bootstrap, topic)
    put(to, topic, *numbered(0, 2))
    put_transaction(broker.bootstrap, topic, end, *numbered(2, 3), Record(b"no wrapper"))
    put(to, topic, *numbered(5, 2))
    taken = root(topic)
    # offsets 2 to 5 are the transaction, 6 is its end
    bad = [(Cause.MALFORMED_WRAPPER.value, 5)] if end is End.COMMITTED else []
    among = [2, 3, 4] if end is End.COMMITTED else []
    assert taken.ingest() == IngestReport(4 + len(among) + len(bad), 4 + len(among), len(bad))
    assert taken.bronze("offset") == [(offset,) for offset in (0, 1, *among, 7, 8)]
    assert taken.quarantine("cause", "offset") == bad
    # an end of a transaction is the last of its topic: nothing new, and nothing lost
    put_transaction(broker.bootstrap, topic, end, *numbered(7, 1))
    taken.ingest()
    assert taken.ingest() == IngestReport(0, 0, 0)
    assert len(taken.bronze("offset")) == 4 + len(among) + (end is End.COMMITTED)
    assert taken.gaps() == []


def test_a_record_without_a_value_goes_to_quarantine_with_its_position(
    broker: Broker, root: Make, to: dict[str, str]
) -> None:
    make_topic(broker.bootstrap, "tombstones")
    put(
        to,
        "tombstones",
        Record(of_chess(b"1"), b"a"),
        Record(None, b"a", time_ms=NOON_MS),
        Record(of_chess(b"2"), b"b"),
    )
    taken = root("tombstones")
    assert taken.ingest() == IngestReport(3, 2, 1)
    columns = (
        "stage",
        "cause",
        "sentence",
        "bytes",
        "key",
        "origin",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "record_id",
    )
    cause, sentence = Cause.MALFORMED_WRAPPER.value, "The record has no value."
    assert taken.quarantine(*columns) == [
        ("bronze", cause, sentence, None, b"a", "kafka", "tombstones", 0, 1, NOON, "tombstones/0/1")
    ]


def test_offsets_that_compaction_took_away_are_no_loss(broker: Broker, root: Make, to: dict[str, str]) -> None:
    config = {"cleanup.policy": "compact", "segment.ms": "200", "min.cleanable.dirty.ratio": "0.001"}
    make_topic(broker.bootstrap, "compacted", 1, {**config, "max.compaction.lag.ms": "500"})
    taken = root("compacted", max_offsets_per_batch=2)
    put(to, "compacted", *(Record(of_chess(b"%d" % at), b"same key") for at in range(6)))
    taken.ingest()
    assert payloads(taken) == list(range(6))
    put(to, "compacted", *(Record(of_chess(b"%d" % at), b"same key") for at in range(6, 12)))
    others = iter(range(100, 10_000))

    def compacted() -> bool:
        # what came last is never compacted
        put(to, "compacted", Record(of_chess(b"%d" % next(others)), b"other key"))
        return len(offsets_of(broker.bootstrap, "compacted")) < 7

    wait_until(compacted)
    left = offsets_of(broker.bootstrap, "compacted")
    assert left[0] == 11
    taken.ingest()
    assert sorted(offset for (offset,) in taken.bronze("offset"))[6:] == [at for at in left if at > 5]
    assert taken.gaps() == []


def test_a_record_of_ten_megabytes_comes_whole(broker: Broker, root: Make, to: dict[str, str]) -> None:
    make_topic(broker.bootstrap, "large_bronze")
    large = bytes(range(250)) * 40_000
    put(to, "large_bronze", Record(of_chess(b"before")), Record(of_chess(large)), Record(of_chess(b"after")))
    taken = root("large_bronze")
    assert taken.ingest() == IngestReport(3, 3, 0)
    assert taken.bronze("offset", "payload") == [(0, b"before"), (1, large), (2, b"after")]


def test_a_partition_that_was_added_between_two_runs_is_read_from_its_beginning(
    broker: Broker, root: Make, to: dict[str, str]
) -> None:
    make_topic(broker.bootstrap, "grown")
    put(to, "grown", *numbered(0, 2))
    taken = root("grown", starting_offsets="latest")
    taken.ingest()
    add_partitions(broker.bootstrap, "grown", 3)
    put(to, "grown", *numbered(2, 2), *numbered(4, 2, partition=2))
    assert taken.ingest().rows_in == 4
    assert payloads(taken) == [2, 3, 4, 5]


@pytest.mark.both_lanes
def test_a_partition_that_was_added_before_a_batch_comes_again_breaks_nothing(
    broker: Broker, root: Make, to: dict[str, str]
) -> None:
    make_topic(broker.bootstrap, "grown_again")
    put(to, "grown_again", *numbered(0, 2))
    taken = root("grown_again")
    taken.ingest()
    put(to, "grown_again", *numbered(2, 2), Record(b"no wrapper"))

    def dies(_: IngestReport) -> None:
        raise MemoryError("after the tables, before the checkpoint")

    with pytest.raises(Exception, match="before the checkpoint"):
        taken.ingest(on_batch=dies)
    add_partitions(broker.bootstrap, "grown_again", 2)
    put(to, "grown_again", *numbered(4, 2, partition=1))
    taken.ingest()
    assert payloads(taken) == list(range(6))
    assert taken.quarantine("record_id") == [("grown_again/0/4",)]


def test_a_running_stream_reads_a_partition_and_a_topic_that_are_added(
    broker: Broker, root: Make, to: dict[str, str]
) -> None:
    make_topic(broker.bootstrap, "running_a")
    put(to, "running_a", *numbered(0, 2))
    taken = root(topic_pattern="running_.", options={"metadata.max.age.ms": "500"})
    with taken.streaming() as stream:
        wait_until(lambda: stream.done() or payloads(taken) == [0, 1])
        add_partitions(broker.bootstrap, "running_a", 2)
        put(to, "running_a", *numbered(2, 2, partition=1))
        wait_until(lambda: stream.done() or payloads(taken) == [0, 1, 2, 3])
        make_topic(broker.bootstrap, "running_b")
        put(to, "running_b", *numbered(4, 1))
        wait_until(lambda: stream.done() or payloads(taken) == [0, 1, 2, 3, 4])
    assert stream.result() == IngestReport(5, 5, 0)
    assert taken.ingest() == IngestReport(0, 0, 0)


def test_an_empty_topic_is_no_failure_and_what_comes_later_is_read(
    broker: Broker, root: Make, to: dict[str, str]
) -> None:
    make_topic(broker.bootstrap, "empty")
    taken = root("empty")
    assert [taken.ingest(), taken.ingest()] == [IngestReport(0, 0, 0)] * 2
    put(to, "empty", *numbered(0, 1))
    assert taken.ingest() == IngestReport(1, 1, 0)


@pytest.mark.both_lanes
def test_a_topic_that_is_not_there_is_named(broker: Broker, root: Make) -> None:
    make_topic(broker.bootstrap, "there")
    error = root("there", "nowhere", "elsewhere").refused(TopicMissing)
    assert error.message == f"The broker at {broker.bootstrap} has no topic nowhere, elsewhere."
    assert error.remedy == "Make the topic, or correct kafka.topics or kafka.topic_pattern."
    error = root(topic_pattern="no such .*").refused(TopicMissing)
    assert error.message == f"The broker at {broker.bootstrap} has no topics no such .*."
    error = root(topic_pattern="(").refused(SettingsInvalid)
    assert error.message.startswith("kafka.topic_pattern ( is no regular expression that Python reads too: missing )")
