"""The producer and a real broker: what is in the topic, and whose topics there are."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, ResourceType
from confluent_kafka.admin import AlterConfigOpType as Change
from confluent_kafka.admin import ConfigEntry as Entry

from demux.core.errors import NotAcknowledged, SettingsInvalid, StorageFailed
from demux.core.kafka.cluster import KafkaCluster
from demux.core.settings.source import Compression, KafkaSettings
from producer.faults import Fault
from producer.kafka.sink import ClusterMarks, KafkaSink
from producer.run import MADE_BY, ProduceRequest, clean_up, produce
from tests.support.kafka.produced import (
    NOW,
    SMALL,
    delete_topic,
    expected,
    read,
    records,
    rows_of,
    run,
    settings,
    topics,
)
from tests.support.kafka.records import PATIENCE_S, SILENT, make_topic, send
from tools.memory_registry import MemoryRegistry
from tools.servers.broker import Broker


@pytest.fixture
def kafka(broker: Broker, request: pytest.FixtureRequest) -> KafkaSettings:
    """Settings with a topic that no other test has."""
    return settings(broker.bootstrap, request.node.name.replace("[", "_").replace("]", ""))


def limit(kafka: KafkaSettings, max_message_bytes: int) -> None:
    """Set the topic's `max.message.bytes`."""
    entry = Entry("max.message.bytes", str(max_message_bytes), incremental_operation=Change.SET)
    resource = ConfigResource(ResourceType.TOPIC, kafka.topics[0], incremental_configs=[entry])
    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers}, logger=SILENT)
    client.incremental_alter_configs([resource])[resource].result(PATIENCE_S)


class TestWhatIsInTheTopic:
    def test_it_is_what_was_sent_in_order_of_each_partition(self, kafka: KafkaSettings) -> None:
        report = run(kafka)
        found = read(kafka.bootstrap_servers, kafka.topics[0])
        assert found == expected()
        assert len(found) == report.events == 300
        assert {row[0] for row in found} == {0, 1, 2}
        without_value = sum(value is None for _, _, _, value in found)
        assert without_value == report.faults[Fault.NULL_VALUE] > 0

    def test_a_value_without_bytes_is_not_a_record_without_value(self, kafka: KafkaSettings) -> None:
        sink = KafkaSink(kafka, {})
        sink.write(records(b"", None))
        assert [value for _, _, _, value in read(kafka.bootstrap_servers, kafka.topics[0])] == [b"", None]
        assert sink.newest(2).values == [b"", None]

    @pytest.mark.parametrize("compression", Compression)
    def test_it_is_the_same_however_it_was_packed(self, kafka: KafkaSettings, compression: Compression) -> None:
        packed = kafka.model_copy(update={"compression": compression})
        run(packed)
        assert read(kafka.bootstrap_servers, kafka.topics[0]) == expected()

    def test_a_second_run_sends_the_events_that_follow(self, kafka: KafkaSettings) -> None:
        first, second = run(kafka), run(kafka)
        assert (first.first, second.first) == (0, 300)
        found = Counter((row[0], row[3]) for row in read(kafka.bootstrap_servers, kafka.topics[0]))
        assert found == Counter((row[0], row[3]) for row in expected(replace(SMALL, events=600)))

    def test_earlier_messages_are_sent_again(self, kafka: KafkaSettings) -> None:
        run(kafka)
        before = KafkaSink(kafka, {}).newest(40)
        report = run(kafka, replace(SMALL, events=10, resend=40))
        assert (report.resent, report.events, report.first) == (40, 10, 300)
        found = Counter((row[2], row[3]) for row in read(kafka.bootstrap_servers, kafka.topics[0]))
        again = Counter((row[2], row[3]) for row in rows_of(before))
        assert again <= found
        assert found.total() == 350

    def test_the_newest_are_the_latest_by_time_oldest_first(self, kafka: KafkaSettings) -> None:
        run(kafka, replace(SMALL, events=5000, batch_events=2000))
        latest = sorted(expected(replace(SMALL, events=5000)), key=lambda row: row[1])
        newest = list(rows_of(KafkaSink(kafka, {}).newest(1500)))
        assert [row[1] for row in newest] == [row[1] for row in latest[-1500:]]
        assert Counter(newest) <= Counter(latest)
        assert len(KafkaSink(kafka, {}).newest(9000).values) == 5000

    def test_no_events_make_no_topic(self, kafka: KafkaSettings) -> None:
        assert run(kafka, replace(SMALL, events=0)).events == 0
        assert kafka.topics[0] not in topics(kafka.bootstrap_servers)
        assert KafkaSink(kafka, {}).newest(5).values == []

    def test_options_of_a_consumer_are_no_obstacle(self, kafka: KafkaSettings) -> None:
        options = {"max.poll.records": "5", "fetch.max.bytes": "1000000", "group.id": "g", "unknown": "x"}
        run(kafka.model_copy(update={"options": options}))
        assert len(read(kafka.bootstrap_servers, kafka.topics[0])) == 300

    def test_a_queue_smaller_than_a_batch_is_emptied_on_the_way(self, kafka: KafkaSettings) -> None:
        small = kafka.model_copy(update={"options": {"queue.buffering.max.messages": "20"}})
        run(small)
        assert read(kafka.bootstrap_servers, kafka.topics[0]) == expected()


class TestPartitions:
    def test_the_topic_has_as_many_as_were_asked_for(self, kafka: KafkaSettings) -> None:
        run(kafka, partitions=7)
        found = KafkaCluster(kafka, {}).topic(kafka.topics[0])
        assert found is not None
        assert found.partitions == 7

    def test_more_than_the_topic_has_are_refused(self, kafka: KafkaSettings) -> None:
        run(kafka, partitions=3)
        with pytest.raises(SettingsInvalid, match=r"has 3 partitions, and the events want 6\."):
            KafkaSink(kafka, {}).write(records(b"x", partition=5))
        assert len(read(kafka.bootstrap_servers, kafka.topics[0])) == 300

    def test_one_that_is_added_later_changes_nothing(self, kafka: KafkaSettings) -> None:
        sink = KafkaSink(kafka, {}, 1)
        sink.write(records(b"1", b"2"))
        client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers}, logger=SILENT)
        client.create_partitions([NewPartitions(kafka.topics[0], 2)])[kafka.topics[0]].result(PATIENCE_S)
        sink.write(records(b"3"))
        assert dict(KafkaSink(kafka, {}).position().next_offsets) == {0: 3}
        KafkaSink(kafka, {}).write(records(b"4", partition=1))
        assert dict(KafkaSink(kafka, {}).position().next_offsets) == {0: 3, 1: 1}


class TestLargeRecords:
    def test_one_of_ten_megabytes_below_the_limit_passes(self, kafka: KafkaSettings) -> None:
        value = bytes(range(256)) * 40_000
        sink = KafkaSink(kafka, {})
        sink.write(records(b"small", value, b"small"))
        assert sink.newest(3).values == [b"small", value, b"small"]

    def test_one_above_the_limit_is_named_with_size_limit_and_remedy(self, kafka: KafkaSettings) -> None:
        sink = KafkaSink(kafka.model_copy(update={"compression": Compression.NONE}), {})
        sink.write(records(b"first"))
        limit(kafka, 10_000)
        with pytest.raises(NotAcknowledged) as failure:
            KafkaSink(kafka.model_copy(update={"compression": Compression.NONE}), {}).write(
                records(b"good", bytes(20_000), b"good")
            )
        assert failure.value.message == (
            "Of 3 records the broker acknowledged 2: a record of 20,003 bytes is above the 10,000 bytes of the "
            "topic's max.message.bytes."
        )
        assert failure.value.remedy == (
            "Raise max.message.bytes of the topic, or message.max.bytes of the broker, or send smaller records."
        )

    def test_one_that_no_queue_has_room_for_is_refused_as_well(self, kafka: KafkaSettings) -> None:
        small = kafka.model_copy(update={"options": {"queue.buffering.max.kbytes": "1"}})
        with pytest.raises(NotAcknowledged, match=r"acknowledged 0: a record of 5,003 bytes"):
            KafkaSink(small, {}).write(records(bytes(5_000)))

    def test_many_small_ones_fit_whatever_the_limit(self, kafka: KafkaSettings) -> None:
        KafkaSink(kafka, {}).write(records(b"first"))
        limit(kafka, 10_000)
        KafkaSink(kafka, {}).write(records(*[bytes(90)] * 5000))
        assert dict(KafkaSink(kafka, {}).position().next_offsets) == {0: 5001}

    def test_after_an_error_the_next_write_goes_on(self, kafka: KafkaSettings) -> None:
        small = kafka.model_copy(update={"options": {"queue.buffering.max.kbytes": "1"}})
        sink = KafkaSink(small, {})
        sink.write(records(b"first"))
        with pytest.raises(NotAcknowledged):
            sink.write(records(bytes(5_000), b"behind"))
        sink.write(records(b"second"))
        values = [value for _, _, _, value in read(kafka.bootstrap_servers, kafka.topics[0])]
        assert values == [b"first", b"second"]


class TestWhoseTopic:
    def test_clean_up_takes_away_the_topic_and_the_mark(self, kafka: KafkaSettings) -> None:
        registry, sink = MemoryRegistry(made_by=MADE_BY), KafkaSink(kafka, {})
        produce(SMALL, registry, sink, now=NOW)
        marks = ClusterMarks(KafkaCluster(kafka, {}))
        assert marks.topic_id(kafka.topics[0]) is not None
        assert clean_up(registry, sink).target is True
        assert kafka.topics[0] not in topics(kafka.bootstrap_servers)
        assert marks.topic_id(kafka.topics[0]) is None
        assert clean_up(registry, sink).target is False

    def test_after_clean_up_everything_starts_again(self, kafka: KafkaSettings) -> None:
        sink = KafkaSink(kafka, {})
        produce(SMALL, MemoryRegistry(), sink, now=NOW)
        assert sink.remove() is True
        assert produce(SMALL, MemoryRegistry(), sink, now=NOW).first == 0
        assert read(kafka.bootstrap_servers, kafka.topics[0]) == expected()

    def test_a_topic_of_somebody_else_is_neither_written_nor_deleted(self, kafka: KafkaSettings) -> None:
        name, options = kafka.topics[0], {"bootstrap.servers": kafka.bootstrap_servers}
        make_topic(kafka.bootstrap_servers, name)
        assert send(options, name, b"real") == [None]
        registry = MemoryRegistry(made_by=MADE_BY)
        with pytest.raises(SettingsInvalid, match=rf"The topic {name} at \S+ was not made by the producer\."):
            produce(SMALL, registry, KafkaSink(kafka, {}), now=NOW)
        assert registry.subjects() == ()
        assert clean_up(registry, KafkaSink(kafka, {})).target is False
        assert dict(KafkaCluster(kafka, {}).end_offsets(name, 1)) == {0: 1}

    def test_the_offsets_of_a_topic_are_known_as_soon_as_it_is_made(self, kafka: KafkaSettings) -> None:
        cluster, nothing = KafkaCluster(kafka, {}), dict.fromkeys(range(20), 0)
        for number in range(3):
            name = f"{kafka.topics[0]}_{number}"
            # its partitions may have no leader yet
            assert cluster.create(name, len(nothing)) is not None
            assert (cluster.first_offsets(name, len(nothing)), cluster.end_offsets(name, len(nothing))) == (
                nothing,
                nothing,
            )

    def test_a_topic_that_was_made_again_is_somebody_elses(self, kafka: KafkaSettings) -> None:
        run(kafka)
        delete_topic(kafka.bootstrap_servers, kafka.topics[0])
        make_topic(kafka.bootstrap_servers, kafka.topics[0], 4)
        with pytest.raises(SettingsInvalid, match="was not made by the producer"):
            run(kafka)
        assert KafkaSink(kafka, {}).remove() is False
        assert kafka.topics[0] in topics(kafka.bootstrap_servers)

    def test_other_topics_of_the_producer_stay_with_their_marks(self, kafka: KafkaSettings) -> None:
        other = kafka.model_copy(update={"topics": (f"{kafka.topics[0]}_other",)})
        run(kafka)
        run(other)
        assert KafkaSink(kafka, {}).remove() is True
        assert other.topics[0] in topics(kafka.bootstrap_servers)
        assert run(other).first == 300

    def test_a_topic_that_is_gone_already_leaves_no_mark(self, kafka: KafkaSettings) -> None:
        run(kafka)
        delete_topic(kafka.bootstrap_servers, kafka.topics[0])
        assert KafkaSink(kafka, {}).remove() is False
        assert ClusterMarks(KafkaCluster(kafka, {})).topic_id(kafka.topics[0]) is None


class TestTwoProducers:
    def test_who_finds_records_of_another_stops(self, kafka: KafkaSettings) -> None:
        run(kafka)
        slow, quick = KafkaSink(kafka, {}), KafkaSink(kafka, {})
        assert slow.position() == quick.position()
        quick.write(records(b"quick"))
        with pytest.raises(StorageFailed, match="Another producer wrote to topic"):
            slow.write(records(b"slow"))
        assert len(read(kafka.bootstrap_servers, kafka.topics[0])) == 301

    def test_only_one_makes_the_topic(self, kafka: KafkaSettings) -> None:
        slow, quick = KafkaSink(kafka, {}), KafkaSink(kafka, {})
        assert slow.position().sent == 0
        quick.write(records(b"quick"))
        with pytest.raises(StorageFailed, match="Another producer made topic"):
            slow.write(records(b"slow"))
        assert len(read(kafka.bootstrap_servers, kafka.topics[0])) == 1

    def test_a_topic_that_is_deleted_in_between_is_not_made_again(self, kafka: KafkaSettings) -> None:
        sink = KafkaSink(kafka, {})
        sink.write(records(b"1"))
        delete_topic(kafka.bootstrap_servers, kafka.topics[0])
        with pytest.raises(StorageFailed, match="was deleted while events were sent"):
            sink.write(records(b"2"))
        assert kafka.topics[0] not in topics(kafka.bootstrap_servers)


def test_a_hundred_thousand_events_arrive_once_each(kafka: KafkaSettings) -> None:
    many = ProduceRequest(events=100_000, games=5, fault_rate=0.01)
    run(kafka, many)
    found, sent = read(kafka.bootstrap_servers, kafka.topics[0]), expected(many)
    assert len(found) == 100_000
    assert found == sent
