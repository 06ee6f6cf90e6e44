"""How long a live record of Kafka takes into bronze, with and without an archive that is being loaded beside it."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bronze_ingest.run import ingest
from demux.reports import IngestReport
from demux.settings import Settings
from demux.streams import Every
from demux.tables import Layout
from producer.wrap import head, wrapped

_TRIGGER_S = 1.0
_LIVE_PER_S = 200
_WARM_S = 10.0


@dataclass(frozen=True, slots=True)
class Lag:
    """Seconds from a live record's time to the commit that has it.

    Attributes:
        median_s: of all live records.
        p95_s: 95 % are at least as quick.
        archived: archived records that came into bronze meanwhile.
    """

    median_s: float
    p95_s: float
    archived: int


def live_lag(spark: SparkSession, bootstrap: str, folder: Path, archive_files: int, seconds: float) -> Lag:
    """Return the lag of live records that are sent for so many seconds while the archive is loaded.

    Args:
        spark: the session.
        bootstrap: a broker.
        folder: where root and archive go; not there yet.
        archive_files: how many archived files of 20,000 records wait; 0 for none.
        seconds: how long live records are sent.
    """
    topic = f"live-{folder.name}"
    # the client must live until its answer is there
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result()
    _write_archive(folder / "archive", archive_files)
    settings = Settings.model_validate(
        {
            "root": str(folder / "root"),
            "source": {"kind": "kafka"},
            "kafka": {"bootstrap_servers": bootstrap, "topics": [topic]},
            "archive": {"path": str(folder / "archive"), "max_files_per_batch": 1},
        }
    )
    stop, done = threading.Event(), list[float]()

    def on_batch(report: IngestReport) -> None:
        done.append(time.time())

    query = threading.Thread(target=lambda: ingest(spark, settings, Every(_TRIGGER_S, stop), on_batch=on_batch))
    query.start()
    _send(bootstrap, topic, seconds + _WARM_S)
    live_until = time.time()
    _wait(lambda: (bool(done) and done[-1] > live_until + 2 * _TRIGGER_S) or not query.is_alive(), 60.0)
    stop.set()
    query.join()
    return _lag(spark, Layout(settings.root).bronze, done)


def _write_archive(folder: Path, files: int) -> None:
    folder.mkdir(parents=True)
    record = wrapped(head("history", 1), b"\x0a\x07history" + b"\x12\x50" + b"x" * 80)
    content = (len(record).to_bytes(1, "big") + record) * 20_000
    for number in range(files):
        (folder / f"{number:04}.pb").write_bytes(content)


def _send(bootstrap: str, topic: str, seconds: float) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    record = wrapped(head("live", 1), b"\x0a\x04live")
    began, sent = time.monotonic(), 0
    while (passed := time.monotonic() - began) < seconds:
        while sent < passed * _LIVE_PER_S:
            producer.produce(topic, record)
            sent += 1
        producer.poll(0.02)
    producer.flush()


def _lag(spark: SparkSession, bronze: str, done: list[float]) -> Lag:
    rows = spark.read.format("delta").load(bronze)
    live = rows.where("origin = 'kafka'")
    begun = live.agg(F.min("timestamp").alias("begun")).collect()[0].begun.replace(tzinfo=timezone.utc)
    warm = datetime.fromtimestamp(begun.timestamp() + _WARM_S, timezone.utc)
    ended = dict(enumerate(done))
    times = (
        live.where(F.col("timestamp") >= F.lit(warm)).select("batch_id", F.col("timestamp").cast("double")).collect()
    )
    lags = sorted(ended[row[0]] - row[1] for row in times if row[0] in ended)
    return Lag(statistics.median(lags), lags[int(0.95 * (len(lags) - 1))], rows.where("origin = 'files'").count())


def _wait(condition: Callable[[], bool], patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while not condition() and time.monotonic() < deadline:
        threading.Event().wait(0.1)
