"""Sends records with a librdkafka producer and counts what becomes of each."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from producer.records import Records

_HEADERS: list[tuple[str, str | bytes | None]] = [("made-by", b"demux producer")]
# delivery reports are served this often; until then the queue holds the records
_AT_ONCE = 1000
_STEP_S = 0.5
_LAST_ANSWERS_S = 5.0
_OURS = frozenset({"_PURGE_QUEUE", "_PURGE_INFLIGHT"})


class Reports:
    """The delivery reports of some records.

    Attributes:
        acknowledged: how many records the broker has.
        error: the first error of a record, if there was one.
        refused_bytes: the size of the largest record that was too large for the broker; 0 when none was.
    """

    __slots__ = ("acknowledged", "error", "refused_bytes")

    def __init__(self) -> None:
        self.acknowledged = 0
        self.error: KafkaError | None = None
        self.refused_bytes = 0

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        """Count one report; called by the client for each record."""
        if error is None:
            self.acknowledged += 1
        elif error.name() not in _OURS:
            self.fail(error, len(message.value() or b"") + len(message.key() or b""))

    def fail(self, error: KafkaError, record_bytes: int) -> None:
        """Count one record that was not acknowledged."""
        self.error = self.error or error
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            self.refused_bytes = max(self.refused_bytes, record_bytes)


def send(producer: Producer, topic: str, records: Records) -> Reports:
    """Return the reports of the records once the broker has all of them, or one of them failed.

    With the first failure no further record is sent; those behind it may be in the topic or not.
    """
    reports = Reports()
    partitions = records.partitions.tolist()
    timestamps = (records.timestamps_us // 1000).tolist()
    for start in range(0, len(partitions), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        rows = zip(records.values[some], records.keys[some], partitions[some], timestamps[some], strict=True)
        for value, key, partition, timestamp in rows:
            _enqueue(producer, reports, topic, value, key, partition, timestamp)
        producer.poll(0)
        if reports.error:
            break
    while producer.flush(_STEP_S) and not reports.error:
        pass
    if reports.error:
        producer.purge(in_queue=True, in_flight=False)
        producer.flush(_LAST_ANSWERS_S)
    return reports


def _enqueue(
    producer: Producer,
    reports: Reports,
    topic: str,
    value: bytes | None,
    key: bytes,
    partition: int,
    timestamp: int,
) -> None:
    while not reports.error:
        try:
            producer.produce(topic, value, key, partition, on_delivery=reports, timestamp=timestamp, headers=_HEADERS)
            return
        except BufferError:
            if not len(producer):
                # larger than the whole queue
                reports.fail(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), len(value or b"") + len(key))
            producer.poll(_STEP_S)
        except KafkaException as error:
            reports.fail(error.args[0], len(value or b"") + len(key))
