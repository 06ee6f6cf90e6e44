"""The settings of section kafka as options of Spark's source."""

from __future__ import annotations

from typing import Any

from bronze_ingest.kafka.source import stream_options
from demux.core.settings.source import KafkaSettings


def options(**settings: Any) -> dict[str, str]:
    return stream_options(KafkaSettings.model_validate(settings))


def test_by_default_everything_is_read_from_the_beginning_and_no_loss_is_passed_over() -> None:
    assert options() == {
        "subscribe": "events",
        "startingOffsets": "earliest",
        "startingOffsetsByTimestampStrategy": "latest",
        "failOnDataLoss": "true",
        "includeHeaders": "true",
        "kafkaConsumer.pollTimeoutMs": "10000",
        "fetchOffset.numRetries": "1",
        "kafka.isolation.level": "read_committed",
        "kafka.max.poll.records": "20000",
        "kafka.fetch.max.wait.ms": "10",
        "kafka.request.timeout.ms": "10000",
        "kafka.default.api.timeout.ms": "10000",
    }


def test_a_pattern_means_the_whole_name_and_takes_the_place_of_topics() -> None:
    found = options(topics=["a"], topic_pattern="a|b")
    assert (found["subscribePattern"], "subscribe" in found) == ("^(?:a|b)$", False)


def test_limits_and_the_beginning_have_sparks_own_names() -> None:
    found = options(
        topics=["a", "b"],
        starting_timestamp="2026-01-31T00:00:00.500+01:00",
        max_offsets_per_batch=10,
        min_partitions=4,
    )
    named = ("subscribe", "startingTimestamp", "maxOffsetsPerTrigger", "minPartitions")
    assert [found[name] for name in named] == ["a,b", "1769814000500", "10", "4"]


def test_a_timeout_of_ones_own_is_left_alone() -> None:
    found = options(options={"request.timeout.ms": "60000"})
    assert [name for name in found if name.endswith("timeout.ms")] == []
