"""What the broker says of the topics before a stream begins, asked by librdkafka with the stream's own settings.

Spark itself would ask for minutes, and then say that some future timed out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from bronze_ingest.kafka.lost_offsets import TopicState
from demux.core.errors import SettingsInvalid, TopicMissing
from demux.core.kafka.cluster import KafkaCluster, KafkaTopic
from demux.core.kafka.reasons import not_permitted
from demux.core.settings.source import KafkaSettings


def topics_now(kafka: KafkaSettings) -> Mapping[str, TopicState]:
    """Return the topics of the settings as the broker has them now, by name; resolves secrets.

    Raises:
        KafkaUnavailable: no broker answers in time.
        KafkaRefused: the broker, or we, refuse the connection, or a topic may not be read.
        TopicMissing: there is no such topic, or none that fits the pattern.
        SettingsInvalid: the client does not take its options; or the pattern is none.
        SecretMissing: a secret is not there.
        RuntimeMissing: the client is not installed.
    """
    cluster = KafkaCluster(kafka, os.environ)
    described = {name: cluster.topic(name, "read") for name in _names(cluster, kafka)}
    if missing := [name for name, topic in described.items() if topic is None]:
        raise _missing(kafka, f"topic {', '.join(missing)}")
    return {name: _state(cluster, kafka, name, topic) for name, topic in described.items() if topic is not None}


def _names(cluster: KafkaCluster, kafka: KafkaSettings) -> list[str]:
    if kafka.topic_pattern is None:
        return list(kafka.topics)
    try:
        pattern = re.compile(kafka.topic_pattern)
    except re.error as error:
        raise SettingsInvalid(
            f"kafka.topic_pattern {kafka.topic_pattern} is no regular expression that Python reads too: {error}.",
            "Correct it, or name the topics under kafka.topics.",
            bootstrap_servers=kafka.bootstrap_servers,
            reason=str(error),
        ) from None
    names = sorted(name for name in cluster.topic_names() if pattern.fullmatch(name))
    if not names:
        raise _missing(kafka, f"topics {kafka.topic_pattern}")
    return names


def _state(cluster: KafkaCluster, kafka: KafkaSettings, name: str, topic: KafkaTopic) -> TopicState:
    if not topic.is_readable:
        raise not_permitted(kafka, f"read topic {name}", "the broker grants other operations only")
    earliest = cluster.first_offsets(name, topic.partitions)
    return TopicState(name, topic.topic_id, earliest, cluster.end_offsets(name, topic.partitions))


def _missing(kafka: KafkaSettings, subject: str) -> TopicMissing:
    return TopicMissing(
        f"The broker at {kafka.bootstrap_servers} has no {subject}.",
        "Make the topic, or correct kafka.topics or kafka.topic_pattern.",
        bootstrap_servers=kafka.bootstrap_servers,
    )
