"""What the broker says of the topics before a stream begins, asked with the stream's own client and options.

Spark itself would ask for minutes, and then say that some future timed out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from bronze_ingest.kafka.lost_offsets import TopicState
from bronze_ingest.kafka.source import kafka_classes
from demux.core.errors import DemuxError, TopicMissing
from demux.core.kafka.client_options import ClientOptions
from demux.core.kafka.errors import (
    certificate_refused,
    login_refused,
    not_permitted,
    options_refused,
    own_certificate_refused,
    pattern_refused,
    token_refused,
    unavailable,
)
from demux.core.settings.source import KafkaSettings

_PREFIX = "kafka."
_READ = {"READ", "ALL"}


def topics_now(spark: SparkSession, kafka: KafkaSettings, options: ClientOptions) -> Mapping[str, TopicState]:
    """Return the topics of the settings as the broker has them now, by name.

    Raises:
        KafkaUnavailable: no broker answers in time.
        KafkaRefused: the broker, or we, refuse the connection, or a topic may not be read.
        TopicMissing: there is no such topic, or none that fits the pattern.
        SettingsInvalid: the client does not take its options; or the pattern is none.
    """
    clients = kafka_classes(spark).clients.admin
    jvm: Any = spark.sparkContext._jvm
    milliseconds = str(int(kafka.connect_timeout_s * 1000))
    own = {name.removeprefix(_PREFIX): value for name, value in options.revealed().items()}
    timeouts = {"default.api.timeout.ms": milliseconds, "request.timeout.ms": milliseconds}
    try:
        admin = clients.AdminClient.create({**own, **timeouts})
    except Py4JJavaError as error:
        raise _not_created(error, kafka, options) from None
    try:
        described = _described(clients, admin, _names(jvm, admin, kafka), kafka)
        return {name: _topic(spark, admin, name, description) for name, description in described.items()}
    except Py4JJavaError as error:
        raise in_our_words(error, kafka, _subject(kafka)) from None
    finally:
        admin.close(jvm.java.time.Duration.ofSeconds(0))


def in_our_words(error: Py4JJavaError, kafka: KafkaSettings, subject: str) -> DemuxError:
    """Return what a failure of Kafka's Java client means.

    Args:
        error: the failure.
        kafka: the settings.
        subject: what was asked for, such as `topic events`.
    """
    chain = _chain(error.java_exception)
    names, reason = [name.rpartition(".")[2] for name, _ in chain], _reason(chain)
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
            return not_permitted(kafka, f"read {subject}", reason)
        case "GroupAuthorizationException" | "ClusterAuthorizationException":
            return not_permitted(kafka, "read", reason)
        case "UnknownTopicOrPartitionException":
            return _missing(kafka, subject)
        case _:
            return unavailable(kafka, reason)


_KNOWN = ("AuthenticationException", "AuthorizationException", "UnknownTopicOrPartitionException")


def _not_created(error: Py4JJavaError, kafka: KafkaSettings, options: ClientOptions) -> DemuxError:
    chain = _chain(error.java_exception)
    # the client fetches its token at once
    if kafka.token_url is not None and _is_of_token(chain):
        return token_refused(kafka, _reason(chain))
    # a name that no server knows may be known a moment later
    if "No resolvable bootstrap urls" in _reason(chain):
        return unavailable(kafka, _reason(chain))
    # a wrapper without words of its own repeats what it wraps, after the name of its class
    texts = dict.fromkeys(re.sub(r"^([a-z]+\.)+\w+: ", "", _sentence(text)) for _, text in chain if text)
    said = [text for text in texts if not text.startswith("Failed to create new ")]
    reason = ": ".join(said[:2]) or chain[-1][0]
    # it repeats words of a login line that it cannot read
    words = {word for line in options.secret.values() for word in line.split()}
    return options_refused(kafka, reason if _LOGIN not in kafka.options or not _has(reason, words) else f"see {_LOGIN}")


_LOGIN = "sasl.jaas.config"


def _has(text: str, words: set[str]) -> bool:
    return any(word in text for word in words)


def _names(jvm: Any, admin: Any, kafka: KafkaSettings) -> list[str]:
    if kafka.topic_pattern is None:
        return list(kafka.topics)
    try:
        pattern = jvm.java.util.regex.Pattern.compile(kafka.topic_pattern)
    except IllegalArgumentException as error:
        raise pattern_refused(kafka, str(error).splitlines()[0]) from None
    names = [name for name in admin.listTopics().names().get() if pattern.matcher(name).matches()]
    if not names:
        raise _missing(kafka, _subject(kafka))
    return sorted(names)


def _described(clients: Any, admin: Any, names: list[str], kafka: KafkaSettings) -> dict[str, Any]:
    asked = clients.DescribeTopicsOptions().includeAuthorizedOperations(True)
    answers = admin.describeTopics(names, asked).topicNameValues()
    described, missing = {}, []
    for name in names:
        try:
            described[name] = answers.get(name).get()
        except Py4JJavaError as error:
            failure = in_our_words(error, kafka, f"topic {name}")
            if not isinstance(failure, TopicMissing):
                raise failure from None
            missing.append(name)
            continue
        allowed = described[name].authorizedOperations()
        # a broker without ACLs, or an old one, says nothing
        if allowed is not None and not _READ & {operation.toString() for operation in allowed}:
            raise not_permitted(kafka, f"read topic {name}", "the broker grants other operations only")
    if missing:
        raise _missing(kafka, f"topic {', '.join(missing)}")
    return described


def _topic(spark: SparkSession, admin: Any, name: str, description: Any) -> TopicState:
    partitions = [partition.partition() for partition in description.partitions()]
    spec = kafka_classes(spark).clients.admin.OffsetSpec
    return TopicState(
        name,
        description.topicId().toString(),
        _offsets(spark, admin, name, partitions, spec.earliest()),
        _offsets(spark, admin, name, partitions, spec.latest()),
    )


def _offsets(spark: SparkSession, admin: Any, name: str, partitions: list[int], spec: Any) -> dict[int, int]:
    of = kafka_classes(spark).common.TopicPartition
    found = admin.listOffsets({of(name, partition): spec for partition in partitions}).all().get()
    return {entry.getKey().partition(): entry.getValue().offset() for entry in found.entrySet()}


def _chain(exception: Any) -> list[tuple[str, str]]:
    found = []
    while exception is not None:
        found.append((exception.getClass().getName(), exception.getMessage() or ""))
        exception = exception.getCause()
    return found


def _reason(chain: list[tuple[str, str]]) -> str:
    # the last sentence says most: those before it wrap it
    return _sentence(next((text for _, text in reversed(chain) if text), chain[-1][0]))


def _sentence(text: str) -> str:
    return text.strip().split("\n")[0].rstrip(".")


def _is_of_token(chain: list[tuple[str, str]]) -> bool:
    return any("token" in text.lower() or name.startswith("java.net.") for name, text in chain)


def _subject(kafka: KafkaSettings) -> str:
    return f"topic {', '.join(kafka.topics)}" if kafka.topic_pattern is None else f"topics {kafka.topic_pattern}"


def _missing(kafka: KafkaSettings, subject: str) -> TopicMissing:
    return TopicMissing(
        f"The broker at {kafka.bootstrap_servers} has no {subject}.",
        "Make the topic, or correct kafka.topics or kafka.topic_pattern.",
        bootstrap_servers=kafka.bootstrap_servers,
    )
