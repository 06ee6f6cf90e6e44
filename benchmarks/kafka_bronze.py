"""Kafka to bronze, next to what plain Spark needs to copy the same records into one Delta table."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.decoding import timed
from bronze_ingest.run import ingest
from demux.registry.memory import MemoryRegistry
from demux.settings import RunSettings, Settings, Sink
from demux.settings_source import KafkaSettings, SourceKind, SourceSettings
from producer.kafka.sink import KafkaSink
from producer.request import ProduceRequest
from producer.run import MADE_BY, produce
from tools.servers.broker import start_broker

_TOPIC = "bench-bronze"
_PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class Copies:
    """Records a second, each the median of its rounds.

    Attributes:
        copied: by plain Spark, every record as it is, to one unpartitioned Delta table.
        files: to bronze, wrapper decoded, partitioned by game, by the sink `files`.
        spark: the same by the sink `spark`.
    """

    copied: float
    files: float
    spark: float


@dataclass
class _Round:
    """One topic, read anew in every round."""

    spark: SparkSession
    folder: Path
    kafka: KafkaSettings
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def measure(self, name: str, work: Callable[[Path], object]) -> None:
        root = self.folder / name
        self.seconds.setdefault(name, []).append(timed(lambda: work(root)))
        print(f"{self.seconds[name][-1]:8.1f} s  Kafka to bronze: {name}", flush=True)
        shutil.rmtree(root)

    def copy(self, root: Path) -> None:
        """Copy the topic as anybody would."""
        records = (
            self.spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self.kafka.bootstrap_servers or "")
            .option("subscribe", _TOPIC)
            .option("startingOffsets", "earliest")
            .load()
        )
        writer = records.writeStream.format("delta").option("checkpointLocation", f"{root}/checkpoint")
        writer.trigger(availableNow=True).start(f"{root}/table").awaitTermination()

    def bronze(self, sink: Sink) -> Callable[[Path], object]:
        """Return what takes the topic in."""

        def work(root: Path) -> None:
            settings = Settings(
                root=str(root),
                source=SourceSettings(kind=SourceKind.KAFKA),
                kafka=self.kafka,
                run=RunSettings(sink=sink),
            )
            report = ingest(self.spark, settings)
            assert report.rows_quarantined == 0

        return work


def copies(spark: SparkSession, bootstrap: str, folder: Path, events: int = 1_000_000, rounds: int = 3) -> Copies:
    """Return the speeds at this broker, in turn; the topic that it fills is removed again."""
    kafka = KafkaSettings(bootstrap_servers=bootstrap, topics=(_TOPIC,))
    sink = KafkaSink(kafka, {}, _PARTITIONS)
    request = ProduceRequest(events=events, games=20, partitions=_PARTITIONS, fault_rate=0.0)
    each = _Round(spark, folder, kafka)
    try:
        produce(request, MemoryRegistry(made_by=MADE_BY), sink, now=datetime.now(timezone.utc))
        # the first of each also compiles
        for _ in range(rounds + 1):
            each.measure("copy", each.copy)
            each.measure("files", each.bronze(Sink.FILES))
            each.measure("spark", each.bronze(Sink.SPARK))
    finally:
        sink.remove()
    return Copies(*(events / statistics.median(each.seconds[name][1:]) for name in ("copy", "files", "spark")))


def measured(spark: SparkSession, folder: Path) -> Copies:
    """Return the speeds at a broker that is started for it, with its data in the folder."""
    with start_broker(folder / "broker") as broker:
        return copies(spark, broker.bootstrap, folder)
