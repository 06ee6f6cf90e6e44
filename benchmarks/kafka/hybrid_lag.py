"""How long a live record of Kafka takes into bronze, with and without an archive that is loaded beside it."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from bronze_ingest.run import ingest
from demux.core.errors import TaskFailed
from demux.core.reports import IngestReport
from demux.core.root.layout import Layout
from demux.core.settings.settings import Settings
from demux.core.streaming.query import Every
from producer.records import head, wrap_payload
from tools.servers.broker import start_broker

_TRIGGER_S = 1.0
_LIVE_PER_S = 200
_WARM_BATCHES = 3
_RECORDS_PER_FILE = 10_000
# more than can be loaded meanwhile
_FILES = 2_000
_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Lag:
    """What was seen of live records.

    Attributes:
        seconds: from each record's time to the commit that has it, sorted.
        archived_per_s: archived records that came into bronze in a second, meanwhile.
    """

    seconds: list[float]
    archived_per_s: float

    @property
    def median_s(self) -> float:
        return statistics.median(self.seconds)

    @property
    def p95_s(self) -> float:
        """95 % are at least as quick."""
        return self.seconds[int(0.95 * (len(self.seconds) - 1))]


@dataclass(frozen=True, slots=True)
class Lags:
    """The lag alone, and while an archive is loaded with the default settings."""

    alone: Lag
    beside: Lag

    @property
    def ratio(self) -> float:
        """How many times as long a live record takes beside an archive, at the median."""
        return self.beside.median_s / self.alone.median_s


def measured(spark: SparkSession, folder: Path, seconds: float = 10.0, rounds: int = 2) -> Lags:
    """Return the lags at a broker that is started for it, in turn; each time live records come for so many seconds."""
    alone, beside = list[Lag](), list[Lag]()
    with start_broker(folder / "broker") as broker:
        for number in range(rounds):
            for name, files, found in (("alone", 0, alone), ("beside", _FILES, beside)):
                found.append(live_lag(spark, broker.bootstrap, folder / f"{name}-{number}", files, seconds))
                print(f"{found[-1].median_s:8.1f} s  live lag, {name}", flush=True)
    return Lags(_together(alone), _together(beside))


def lines(lags: Lags) -> list[str]:
    """Return the results as Markdown."""
    rows = [("no archive", lags.alone), (f"an archive of {_RECORDS_PER_FILE:,} records a file beside it", lags.beside)]
    return [
        "| live records of Kafka, seconds until they are in bronze | median | 95 % | archived records per second |",
        "| --- | ---: | ---: | ---: |",
        *(f"| {name} | {lag.median_s:.1f} | {lag.p95_s:.1f} | {lag.archived_per_s:,.0f} |" for name, lag in rows),
        f"| ratio | {lags.ratio:.2f} | {lags.beside.p95_s / lags.alone.p95_s:.2f} | |",
        "",
    ]


def live_lag(spark: SparkSession, bootstrap: str, folder: Path, files: int, seconds: float) -> Lag:
    """Return the lag of live records that are sent for so many seconds; the first batches are not counted.

    Args:
        spark: the session.
        bootstrap: a broker.
        folder: where root and archive go; not there yet.
        files: how many archived files wait; 0 for none. They must not be through before the live records are.
        seconds: how long live records are sent that count.
    """
    topic = f"live-{folder.name}"
    # the client must live until its answer is there
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result()
    _write_archive(folder / "archive", files)
    settings = Settings.model_validate(
        {
            "root": str(folder / "root"),
            "source": {"kind": "kafka"},
            "kafka": {"bootstrap_servers": bootstrap, "topics": [topic]},
            "archive": {"path": str(folder / "archive")},
        }
    )
    bronze = Layout(settings.root).bronze
    stop, done = threading.Event(), list[float]()

    def on_batch(_: IngestReport) -> None:
        done.append(time.time())
        if stop.is_set():
            raise _Enough

    def stream() -> None:
        try:
            ingest(spark, settings, Every(_TRIGGER_S, stop), on_batch=on_batch)
        except TaskFailed:
            if not stop.is_set():
                raise

    def is_enough() -> bool:
        return running.done() or (len(done) >= _WARM_BATCHES and time.time() > done[_WARM_BATCHES - 1] + seconds)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(stream)
        try:
            sent = _send(bootstrap, topic, is_enough)
            _wait(lambda: running.done() or _rows(bronze, "kafka") >= sent)
        finally:
            stop.set()
        running.result()
    return _lag(bronze, done, files * _RECORDS_PER_FILE)


class _Enough(Exception):
    """What is left of the archive is of no interest."""


def _together(found: list[Lag]) -> Lag:
    seconds = sorted(each for lag in found for each in lag.seconds)
    return Lag(seconds, statistics.median(lag.archived_per_s for lag in found))


def _write_archive(folder: Path, files: int) -> None:
    folder.mkdir(parents=True)
    record = wrap_payload(head("history", 1), b"\x0a\x07history" + b"\x12\x50" + b"x" * 80)
    # hidden from the stream; the others are this one by another name
    content = folder / ".content"
    content.write_bytes((len(record).to_bytes(1, "big") + record) * _RECORDS_PER_FILE)
    for number in range(files):
        os.link(content, folder / f"{number:04}.bin")


def _send(bootstrap: str, topic: str, is_enough: Callable[[], bool]) -> int:
    """Return how many records were sent."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    record = wrap_payload(head("live", 1), b"\x0a\x04live")
    began, sent = time.monotonic(), 0
    while not is_enough():
        while sent < (time.monotonic() - began) * _LIVE_PER_S:
            producer.produce(topic, record)
            sent += 1
        producer.poll(0.02)
    assert producer.flush(_PATIENCE_S) == 0
    return sent


def _lag(bronze: str, done: list[float], archived: int) -> Lag:
    rows = DeltaTable(bronze).to_pyarrow_table(columns=["origin", "timestamp", "batch_id"]).to_pylist()
    live = [(row["batch_id"], row["timestamp"].timestamp()) for row in rows if row["origin"] == "kafka"]
    since, until = done[_WARM_BATCHES - 1], max(done[batch] for batch, _ in live)
    lags = sorted(done[batch] - sent for batch, sent in live if sent >= since)
    loaded = sum(row["origin"] == "files" and since < done[row["batch_id"]] <= until for row in rows)
    assert archived == 0 or len(rows) - len(live) < archived
    return Lag(lags, loaded / (until - since))


def _rows(table: str, origin: str) -> int:
    if not DeltaTable.is_deltatable(table):
        return 0
    origins: list[str] = DeltaTable(table).to_pyarrow_table(columns=["origin"]).column("origin").to_pylist()
    return origins.count(origin)


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.2)
