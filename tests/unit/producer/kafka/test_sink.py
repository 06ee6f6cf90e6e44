"""What the topic may be called; the rest is in tests/kafka, with a broker."""

from __future__ import annotations

import pytest

from demux.core.errors import SettingsInvalid
from demux.core.settings.source import KafkaSettings
from producer.kafka.sink import MARKS, KafkaSink


@pytest.mark.parametrize("name", ["a b", "ü", "a/b", "a\x00b", "x" * 250, ".", "..", "a\n"])
def test_a_name_that_no_topic_can_have_is_a_mistake_of_the_settings(name: str) -> None:
    with pytest.raises(SettingsInvalid, match=r"No topic can be called .*at most 249 of them\."):
        KafkaSink(KafkaSettings(topics=(name,)), {})


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "x" * 249])
def test_any_other_name_is_used_and_nothing_is_asked_yet(name: str) -> None:
    # nobody answers there
    assert KafkaSink(KafkaSettings(bootstrap_servers="127.0.0.1:1", topics=(name,)), {}) is not None


def test_the_topic_of_marks_is_not_for_events() -> None:
    with pytest.raises(SettingsInvalid, match=f"The topic {MARKS} is the producer's own"):
        KafkaSink(KafkaSettings(topics=(MARKS,)), {})
