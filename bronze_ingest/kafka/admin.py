"""What the broker says of the topics before a stream begins, asked with the stream's own client and options.

Spark itself would ask for minutes, and then say that some future timed out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from bronze_ingest.kafka.offsets import Topic
from demux.errors import DemuxError, TopicMissing
from demux.kafka_client import ClientOptions
from demux.kafka_failures import (
    certificate_refused,
    login_refused,
    not_permitted,
    own_certificate_refused,
    token_refused,
    unavailable,
)
from demux.settings_source import KafkaSettings

_PREFIX = "kafka."
_READ = {"READ", "ALL"}


def topics_now(spark: SparkSession, kafka: KafkaSettings, options: ClientOptions) -> Mapping[str, Topic]:
    """Return the topics of the settings as the broker has them now, by name.

    Raises:
        KafkaUnavailable: no broker answers in time.
        KafkaRefused: the broker, or we, refuse the connection, or a topic may not be read.
        TopicMissing: there is no such topic, or none that fits the pattern.
    """
    jvm: Any = spark.sparkContext._jvm
    milliseconds = str(int(kafka.connect_timeout_s * 1000))
    own = {name.removeprefix(_PREFIX): value for name, value in options.revealed().items()}
    timeouts = {"default.api.timeout.ms": milliseconds, "request.timeout.ms": milliseconds}
    admin = None
    try:
        admin = jvm.org.apache.kafka.clients.admin.AdminClient.create({**own, **timeouts})
        names = _names(jvm, admin, kafka)
        described = _described(jvm, admin, names, kafka)
        return {name: _topic(jvm, admin, name, described.get(name)) for name in names}
    except Py4JJavaError as error:
        raise in_our_words(error, kafka) from None
    finally:
        if admin is not None:
            admin.close(jvm.java.time.Duration.ofSeconds(0))


def in_our_words(error: Py4JJavaError, kafka: KafkaSettings) -> DemuxError:
    """Return what a failure of Kafka's Java client means; what it says of secrets is never repeated."""
    chain = _chain(error.java_exception)
    names = [name.rpartition(".")[2] for name, _ in chain]
    # the last sentence says most: those before it wrap it
    reason = next((text for _, text in reversed(chain) if text), names[-1]).strip().rstrip(".").split("\n")[0]
    match next((name for name in names if name.endswith(_KNOWN)), ""):
        case "SaslAuthenticationException" if kafka.token_url is not None and _is_of_token(chain):
            return token_refused(kafka, reason)
        case "SaslAuthenticationException":
            return login_refused(kafka, reason)
        case "SslAuthenticationException" if "certificate_required" in reason or "bad_certificate" in reason:
            return own_certificate_refused(kafka, reason)
        case "SslAuthenticationException":
            return certificate_refused(kafka, reason)
        case "TopicAuthorizationException":
            return not_permitted(kafka, f"read {_subject(kafka)}", reason)
        case "GroupAuthorizationException" | "ClusterAuthorizationException":
            return not_permitted(kafka, "read", reason)
        case "UnknownTopicOrPartitionException":
            return _missing(kafka)
        case _:
            return unavailable(kafka, reason)


_KNOWN = ("AuthenticationException", "AuthorizationException", "UnknownTopicOrPartitionException")


def _names(jvm: Any, admin: Any, kafka: KafkaSettings) -> list[str]:
    if kafka.topic_pattern is None:
        return list(kafka.topics)
    pattern = jvm.java.util.regex.Pattern.compile(kafka.topic_pattern)
    names = [name for name in admin.listTopics().names().get() if pattern.matcher(name).matches()]
    if not names:
        raise _missing(kafka)
    return sorted(names)


def _described(jvm: Any, admin: Any, names: list[str], kafka: KafkaSettings) -> Any:
    asked = jvm.org.apache.kafka.clients.admin.DescribeTopicsOptions().includeAuthorizedOperations(True)
    described = admin.describeTopics(names, asked).allTopicNames().get()
    for name in names:
        allowed = described.get(name).authorizedOperations()
        # a broker without ACLs, or an old one, says nothing
        if allowed is not None and not _READ & {operation.toString() for operation in allowed}:
            raise not_permitted(kafka, f"read topic {name}", "the broker grants other operations only")
    return described


def _topic(jvm: Any, admin: Any, name: str, description: Any) -> Topic:
    partitions = [partition.partition() for partition in description.partitions()]
    spec = jvm.org.apache.kafka.clients.admin.OffsetSpec
    return Topic(
        name,
        description.topicId().toString(),
        _offsets(jvm, admin, name, partitions, spec.earliest()),
        _offsets(jvm, admin, name, partitions, spec.latest()),
    )


def _offsets(jvm: Any, admin: Any, name: str, partitions: list[int], spec: Any) -> dict[int, int]:
    asked = {jvm.org.apache.kafka.common.TopicPartition(name, partition): spec for partition in partitions}
    found = admin.listOffsets(asked).all().get()
    return {entry.getKey().partition(): entry.getValue().offset() for entry in found.entrySet()}


def _chain(exception: Any) -> list[tuple[str, str]]:
    found = []
    while exception is not None:
        found.append((exception.getClass().getName(), exception.getMessage() or ""))
        exception = exception.getCause()
    return found


def _is_of_token(chain: list[tuple[str, str]]) -> bool:
    return any("token" in text.lower() or name.startswith("java.net.") for name, text in chain)


def _subject(kafka: KafkaSettings) -> str:
    return f"topic {', '.join(kafka.topics)}" if kafka.topic_pattern is None else f"topics {kafka.topic_pattern}"


def _missing(kafka: KafkaSettings) -> TopicMissing:
    return TopicMissing(
        f"The broker at {kafka.bootstrap_servers} has no {_subject(kafka)}.",
        "Make the topic, or correct kafka.topics or kafka.topic_pattern.",
        bootstrap_servers=kafka.bootstrap_servers,
    )
