"""Kafka to bronze, next to what plain Spark needs to copy the same records into one Delta table."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.parts.decoding import timed
from benchmarks.support.points import DISK, STORE
from bronze_ingest.kafka.source import stream_options
from bronze_ingest.run import ingest
from demux.core.settings.settings import RunSettings, Settings, Sink
from demux.core.settings.source import KafkaSettings, SourceKind, SourceSettings
from demux.core.settings.store import StoreSettings
from producer.kafka.sink import KafkaSink
from producer.run import MADE_BY, ProduceRequest, produce
from tools.memory_registry import MemoryRegistry
from tools.servers.broker import start_broker

_TOPIC = "bench-bronze"
_PARTITIONS = 4
_EVENTS = 1_000_000


@dataclass(frozen=True, slots=True)
class Copies:
    """Records a second, each the median of its rounds.

    Attributes:
        copied: by plain Spark, every record as it is, to one unpartitioned Delta table.
        tuned: the same, with what bronze tells its consumers.
        files: to bronze, wrapper decoded, partitioned by game, by the sink `files`.
        spark: the same by the sink `spark`.
    """

    copied: float
    tuned: float
    files: float
    spark: float


def lines(speeds: Copies) -> list[str]:
    """Return the results as Markdown."""
    rows = (
        ("plain Spark: every record as it is, to one Delta table without partitions", speeds.copied),
        ("the same, with headers and with bronze's consumer options", speeds.tuned),
        ("bronze, `run.sink: files`", speeds.files),
        ("bronze, `run.sink: spark`", speeds.spark),
    )
    return [
        f"| {_EVENTS:,} records of 20 games from Kafka, {_PARTITIONS} partitions | records per second | of the copy |",
        "| --- | ---: | ---: |",
        *(f"| {name} | {speed:,.0f} | {speed / speeds.copied:.2f} |" for name, speed in rows),
        "",
        "Wrapper decoded, partitioned by game, with key, headers and position. Each has taken a first batch before.",
        "",
    ]


@dataclass
class _Takers:
    """Four that take the same topic in, each to a root of its own, with all that came since its last turn."""

    spark: SparkSession
    folder: Path
    kafka: KafkaSettings
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def take(self) -> None:
        """Let all take what is new, one after the other."""
        self._measure("copy", lambda: self._copy("copy", {}))
        self._measure("tuned copy", lambda: self._copy("tuned", stream_options(self.kafka)))
        self._measure("files", lambda: self._bronze("files", Sink.FILES))
        self._measure("spark", lambda: self._bronze("spark", Sink.SPARK))

    def _measure(self, name: str, work: Callable[[], None]) -> None:
        self.seconds.setdefault(name, []).append(timed(work))
        print(f"{self.seconds[name][-1]:8.1f} s  Kafka to bronze: {name}", flush=True)

    def _copy(self, name: str, options: Mapping[str, str]) -> None:
        """Copy the topic as anybody would."""
        records = (
            self.spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self.kafka.bootstrap_servers)
            .option("subscribe", _TOPIC)
            .option("startingOffsets", "earliest")
            .options(**options)
            .load()
        )
        writer = records.writeStream.format("delta").option("checkpointLocation", f"{self.folder}/{name}/checkpoint")
        writer.trigger(availableNow=True).start(f"{self.folder}/{name}/table").awaitTermination()

    def _bronze(self, name: str, sink: Sink) -> None:
        take_in(self.spark, f"{self.folder}/{name}", self.kafka, RunSettings(sink=sink))


def take_in(
    spark: SparkSession, root: str, kafka: KafkaSettings, run: RunSettings, store: StoreSettings | None = None
) -> None:
    """Take what is new in the topic into the root's bronze table."""
    source = SourceSettings(kind=SourceKind.KAFKA)
    report = ingest(spark, Settings(root=root, source=source, kafka=kafka, run=run, store=store or StoreSettings()))
    assert (report.rows_bronze, report.rows_quarantined) == (_EVENTS, 0)


def fed(kafka: KafkaSettings, rounds: int, take: Callable[[], None]) -> None:
    """Send the events, and let them be taken, as often; one time before. The topic is removed again."""
    sink, registry = KafkaSink(kafka, {}, _PARTITIONS), MemoryRegistry(made_by=MADE_BY)
    request = ProduceRequest(events=_EVENTS, games=20, partitions=_PARTITIONS, fault_rate=0.0)
    try:
        # the first one makes tables, and compiles
        for _ in range(rounds + 1):
            produce(request, registry, sink, now=datetime.now(timezone.utc))
            take()
    finally:
        sink.remove()


def stored(spark: SparkSession, folder: Path, store: StoreSettings, rounds: int = 2) -> Mapping[str, float]:
    """Return the records a second of bronze on the disk and in a store, at a broker that is started for it."""
    roots = {DISK: (f"{folder}/root", None), STORE: ("s3://demux/kafka", store)}
    seconds: dict[str, list[float]] = {name: [] for name in roots}
    with start_broker(folder / "broker") as broker:
        kafka = KafkaSettings(bootstrap_servers=broker.bootstrap, topics=(_TOPIC,))

        def take() -> None:
            for name, (root, its_store) in roots.items():
                seconds[name].append(timed(partial(take_in, spark, root, kafka, RunSettings(), its_store)))
                print(f"{seconds[name][-1]:8.1f} s  Kafka to bronze: {name}", flush=True)

        fed(kafka, rounds, take)
    return {name: _EVENTS / statistics.median(each[1:]) for name, each in seconds.items()}


def copies(spark: SparkSession, bootstrap: str, folder: Path, rounds: int = 3) -> Copies:
    """Return the speeds at this broker, in turn; the topic that it fills is removed again."""
    kafka = KafkaSettings(bootstrap_servers=bootstrap, topics=(_TOPIC,))
    takers = _Takers(spark, folder, kafka)
    fed(kafka, rounds, takers.take)
    return Copies(
        *(_EVENTS / statistics.median(takers.seconds[name][1:]) for name in ("copy", "tuned copy", "files", "spark"))
    )


def measured(spark: SparkSession, folder: Path) -> Copies:
    """Return the speeds at a broker that is started for it, with its data in the folder."""
    with start_broker(folder / "broker") as broker:
        return copies(spark, broker.bootstrap, folder)
