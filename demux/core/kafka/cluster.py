"""A Kafka cluster by librdkafka: topics by name and id, offsets, and a client to send or read with."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, NewTopic, OffsetSpec, ResourceType

from demux.core.errors import DemuxError
from demux.core.kafka.client_options import librdkafka_options
from demux.core.kafka.reasons import KafkaReason, error_of, most_telling
from demux.core.settings.source import KafkaSettings

_LOG = logging.getLogger("demux")
_STEP_S = 0.1
_READ_AT_ONCE = 5000
# librdkafka's largest: the topic decides how large a record may be, not we
_LARGEST_RECORD = 1_000_000_000
# the producer waits this long for a broker that went away
_DELIVERY_TIMEOUT_MS = 120_000
_SENDING: Mapping[str, Any] = {
    "linger.ms": 20,
    "queue.buffering.max.messages": 100_000,
    "queue.buffering.max.kbytes": 65_536,
}
_READ = frozenset({AclOperation.READ, AclOperation.ALL})
# the end of a partition; and that we may not join a group, which we never do
_NOT_FAILURES = frozenset({"_PARTITION_EOF", "GROUP_AUTHORIZATION_FAILED"})
# of a topic that was just made, or whose broker went away
_NO_LEADER = frozenset({"LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION"})
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """A topic that is there.

    Attributes:
        is_readable: whether we may read it, as far as the broker says: one without ACLs says nothing.
    """

    topic_id: str
    partitions: int
    is_readable: bool = True


class _Heard:
    """Collects the errors that clients report, without a reference to a client.

    A client that was part of a cycle would end when Python next looks for cycles: in any thread, in the middle of
    anything, and its threads wait for that one.
    """

    def __init__(self) -> None:
        self.reasons: list[KafkaReason] = []

    def add(self, error: KafkaError) -> None:
        reason = _reason(error)
        if reason.sentence not in {heard.sentence for heard in self.reasons}:
            _LOG.warning("%s", reason.sentence)
        self.reasons = [*self.reasons[-20:], reason]


class KafkaCluster:
    """The brokers under `kafka.bootstrap_servers`; connects with the first call.

    Every call raises KafkaUnavailable, KafkaRefused, SettingsInvalid or StorageFailed, see `error_of`.
    """

    def __init__(self, kafka: KafkaSettings, environ: Mapping[str, str]) -> None:
        self._kafka = kafka
        self._environ = environ
        self._client: AdminClient | None = None
        self._heard = _Heard()

    def topic_names(self) -> list[str]:
        """Return the names of all topics that we may see."""
        timeout_s = self._kafka.connect_timeout_s
        # the list itself waits all its time for a broker that refuses us
        self._answer("list topics", self._admin.describe_cluster(request_timeout=timeout_s))
        try:
            return list(self._admin.list_topics(timeout=timeout_s).topics)
        except KafkaException as error:
            raise self.failure("list topics", error.args[0]) from None

    def topic(self, name: str, verb: str = "describe") -> KafkaTopic | None:
        """Return the topic, or None when there is none; the verb says in sentences what it is wanted for."""
        asked = self._admin.describe_topics(
            TopicCollection([name]),
            include_authorized_operations=True,
            request_timeout=self._kafka.connect_timeout_s,
        )
        found = self._answer(f"{verb} topic {name}", asked[name], unless=("UNKNOWN_TOPIC_OR_PART",))
        if found is None:
            return None
        allowed = found.authorized_operations
        is_readable = allowed is None or not _READ.isdisjoint(allowed)
        return KafkaTopic(str(found.topic_id), len(found.partitions), is_readable)

    def create(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> KafkaTopic | None:
        """Return the new topic, with the brokers' own number of replicas; None when there was one already."""
        new = NewTopic(name, num_partitions=partitions, replication_factor=-1, config=dict(config or {}))
        made = self._admin.create_topics([new], request_timeout=self._kafka.connect_timeout_s)[name]
        if self._answer(f"create topic {name}", made, unless=("TOPIC_ALREADY_EXISTS",), returned=True) is None:
            return None
        # a broker may hear of the topic later than the one that made it
        return self._until(f"find the new topic {name}", lambda: self.topic(name))

    def delete(self, name: str) -> None:
        """Delete the topic; returns when it is gone."""
        gone = self._admin.delete_topics([name], request_timeout=self._kafka.connect_timeout_s)[name]
        self._answer(f"delete topic {name}", gone, unless=("UNKNOWN_TOPIC_OR_PART",))
        self._until(f"see topic {name} gone", lambda: self.topic(name) is None or None)

    def first_offsets(self, name: str, partitions: int) -> dict[int, int]:
        """Return the offset of the first record of each partition that can be read."""
        return self._offsets(name, partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def end_offsets(self, name: str, partitions: int) -> dict[int, int]:
        """Return the offset that the next record of each partition gets."""
        return self._offsets(name, partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def max_batch_bytes(self, name: str) -> int | None:
        """Return the topic's `max.message.bytes`; None when we may not know it."""
        resource = ConfigResource(ResourceType.TOPIC, name)
        asked = self._admin.describe_configs([resource], request_timeout=self._kafka.connect_timeout_s)[resource]
        found = self._answer(f"describe topic {name}", asked, unless=("TOPIC_AUTHORIZATION_FAILED",))
        return None if found is None else int(found["max.message.bytes"].value)

    def producer(self, max_batch_bytes: int | None = None) -> Producer:
        """Return a client that sends: each record once and in order, acknowledged by every replica in sync."""
        options = self._options()
        if "delivery.timeout.ms" not in options:
            options.setdefault("message.timeout.ms", _DELIVERY_TIMEOUT_MS)
        if max_batch_bytes is not None:
            # librdkafka does not split a batch that the broker finds too large
            options.setdefault("batch.size", min(1_000_000, max_batch_bytes))
        options = {
            **_SENDING,
            "message.max.bytes": _LARGEST_RECORD,
            "compression.type": self._kafka.compression.value,
            **options,
            "enable.idempotence": True,
            "acks": "all",
        }
        return self._made(lambda: Producer(options))

    def read(self, name: str, partitions: int, last: int | None = None) -> Iterator[Message]:
        """Return the records that the topic has now; of each partition, in order, the `last` offsets or all.

        Raises:
            KafkaUnavailable: and so on, while the records are read.
        """
        starts = self.first_offsets(name, partitions)
        ends = self.end_offsets(name, partitions)
        if last is not None:
            starts = {partition: max(start, ends[partition] - last) for partition, start in starts.items()}
        waiting = [partition for partition, start in starts.items() if start < ends[partition]]
        options = {
            "allow.auto.create.topics": False,
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            # the end of a partition is known after a fetch that waits this long for more
            "fetch.wait.max.ms": 50,
            # needed to make a consumer; no group is joined
            "group.id": "demux-producer",
        }
        consumer = self._made(lambda: Consumer({**self._options(), **options}))
        try:
            consumer.assign([TopicPartition(name, partition, starts[partition]) for partition in waiting])
            yield from self._messages(consumer, name, {partition: ends[partition] for partition in waiting})
        finally:
            consumer.close()

    def failure(self, what: str, error: KafkaError) -> DemuxError:
        """Return our error for one of a client's; `what` was tried, such as `write to topic events`."""
        return error_of(self._kafka, what, self.reason(error))

    def reason(self, error: KafkaError) -> KafkaReason:
        """Return the reason; where the client only timed out, the last reason that it reported before."""
        reason = _reason(error)
        return most_telling([*self._heard.reasons, reason]) if reason.is_late else reason

    @property
    def _admin(self) -> AdminClient:
        if self._client is None:
            options = self._options()
            self._client = self._made(lambda: AdminClient(options))
        return self._client

    def _options(self) -> dict[str, Any]:
        options = librdkafka_options(self._kafka, self._environ).reveal()
        # what a client would log, many times a second, we hear too
        return {**options, "error_cb": self._heard.add, "log_level": 0}

    def _made(self, make: Callable[[], _Result]) -> _Result:
        self._heard.reasons = []
        try:
            return make()
        except KafkaException as error:
            raise self.failure("be reached", error.args[0]) from None

    def _offsets(self, name: str, partitions: int, spec: OffsetSpec) -> dict[int, int]:
        asked = {TopicPartition(name, partition): spec for partition in range(partitions)}
        what = f"read the offsets of topic {name}"

        def found() -> dict[int, int] | None:
            answers = self._admin.list_offsets(asked, request_timeout=self._kafka.connect_timeout_s)
            results = {at.partition: self._answer(what, answer, _NO_LEADER) for at, answer in answers.items()}
            known = {partition: result.offset for partition, result in results.items() if result is not None}
            return known if len(known) == len(results) else None

        return self._until(what, found)

    def _answer(self, what: str, future: Future[Any], unless: Collection[str] = (), *, returned: Any = None) -> Any:
        """Return the call's result, or `returned` when it has none; None when the broker says one of `unless`."""
        self._heard.reasons = []
        while not future.done():
            wait([future], timeout=_STEP_S)
            # serves error_cb
            self._admin.poll(0)
            if refusal := next((reason for reason in self._heard.reasons if reason.is_refusal), None):
                raise error_of(self._kafka, what, refusal)
        failed = future.exception()
        if failed is None:
            result = future.result()
            return returned if result is None else result
        if not isinstance(failed, KafkaException):
            raise failed
        if failed.args[0].name() in unless:
            return None
        self._admin.poll(0)
        raise self.failure(what, failed.args[0])

    def _until(self, what: str, found: Callable[[], _Result | None]) -> _Result:
        deadline = time.monotonic() + self._kafka.connect_timeout_s
        while (result := found()) is None:
            if time.monotonic() > deadline:
                raise error_of(self._kafka, what, KafkaReason("_TIMED_OUT", "the brokers still do not agree"))
            self._admin.poll(_STEP_S)
        return result

    def _messages(self, consumer: Consumer, name: str, ends: dict[int, int]) -> Iterator[Message]:
        deadline = time.monotonic() + self._kafka.connect_timeout_s
        while ends:
            for message in consumer.consume(_READ_AT_ONCE, timeout=_STEP_S):
                deadline = time.monotonic() + self._kafka.connect_timeout_s
                error, partition, offset = message.error(), message.partition() or 0, message.offset() or 0
                if error is not None and error.name() not in _NOT_FAILURES:
                    raise self.failure(f"read topic {name}", error)
                if error is None and offset < ends.get(partition, 0):
                    yield message
                # the last offset may be a mark of a transaction, which is never seen
                if error is None and offset + 1 < ends.get(partition, 0):
                    continue
                if error is None or error.code() == KafkaError._PARTITION_EOF:
                    ends.pop(partition, None)
            if time.monotonic() > deadline:
                late = KafkaReason("_TIMED_OUT", f"no more records of topic {name}")
                raise error_of(self._kafka, f"read topic {name}", most_telling([*self._heard.reasons, late]))


def _reason(error: KafkaError) -> KafkaReason:
    return KafkaReason(error.name(), error.str())
