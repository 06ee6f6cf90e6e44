"""The whole way of a record over real servers: into a topic, through bronze, to silver or quarantine, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaError, Producer
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import Message
from pyspark.sql import SparkSession

from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.protocol import ImportedFile, RegisteredSchema
from demux.core.settings.settings import RunSettings
from demux.operations.quarantine.filter import QuarantineFilter
from demux.pipeline.round import Round
from deserializer.redecode.replay import games_in_quarantine, replay
from tests.support.flow.root import Root
from tests.support.kafka.records import PATIENCE_S, SILENT, make_topic

Classes = Callable[[str], type[Message]]


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it is sent."""

    value: bytes | None
    headers: Sequence[tuple[str, bytes]] = ()


def kafka_root(spark: SparkSession, folder: Path, bootstrap: str, topic: str, **changes: object) -> Root:
    """Return a root that reads a new topic of one partition; a game is tried once in a round."""
    make_topic(bootstrap, topic)
    kafka = {"bootstrap_servers": bootstrap, "topics": [topic]}
    run = RunSettings(retries=0)
    return Root.at(spark, folder, **{"source": {"kind": "kafka"}, "kafka": kafka, "run": run, **changes})


def deliver(root: Root, records: Sequence[Record | bytes]) -> None:
    """Return when the root's topic has the records; their offsets follow one another in the order given."""
    send(root.settings.kafka.bootstrap_servers, root.settings.kafka.topics[0], records)


def send(bootstrap: str, topic: str, records: Sequence[Record | bytes]) -> None:
    """Return when the topic's partition 0 has the records, in the order given."""
    failed = list[KafkaError]()
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True}, logger=SILENT)
    for each in records:
        record = each if isinstance(each, Record) else Record(each)
        producer.produce(
            topic,
            record.value,
            partition=0,
            headers=list(record.headers),
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert (producer.flush(PATIENCE_S), failed) == (0, [])


def ends(result: Round) -> dict[str, str]:
    """Return how each game's task ended: `done`, or the condition of its error."""
    return {end.task.game: "done" if end.error is None else end.error.condition for end in result.ended}


def sentences(result: Round) -> dict[str, str]:
    """Return what is said of each game that failed."""
    return {end.task.game: end.error.message for end in result.ended if end.error is not None}


def replayed(root: Root) -> dict[str, tuple[int, int]]:
    """Replay all of quarantine as a new command does; return of each game how many rows decoded, and how many stay."""
    place, choice = root.workplace(), QuarantineFilter()
    reports = [
        replay(place.spark, place.layout, place.schemas, game, choice)
        for game in games_in_quarantine(place.spark, place.layout, choice)
    ]
    return {report.game: (report.decoded, report.tried - report.decoded) for report in reports}


def classes(text: str, *references: ImportedFile) -> Classes:
    """Return what gives the class of a message of this `.proto` text by its full name."""
    compiled = compile_schema(RegisteredSchema(1, "test", 1, text, "test.proto", references))
    pool = pool_of(FileDescriptorSet.FromString(compiled.descriptor_set))
    return lambda name: message_class(pool, name)
