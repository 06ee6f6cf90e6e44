"""Kafka and an archive of files in one bronze stream: both come in once each, and neither waits for the other."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bronze_ingest.run import ingest
from demux.core.causes import Cause
from demux.core.errors import SettingsInvalid, StorageFailed, TaskFailed
from demux.core.reports import IngestReport
from demux.core.root.layout import Layout
from demux.core.settings.settings import Settings, Sink
from demux.core.settings.source import ArchiveFormat, CleanUp
from demux.core.streaming.query import TAKE_ALL, Every, Trigger
from tests.support.data.archives import SUFFIXES, Archived, archive_bytes, delimited, json_line, of, write_archive
from tests.support.flow import crash
from tests.support.flow.process import wait_until
from tests.support.kafka.intake import Intake, of_chess
from tests.support.kafka.records import make_topic, send
from tools.servers.broker import Broker

DELIMITED, PARQUET, NDJSON = ArchiveFormat.DELIMITED, ArchiveFormat.PARQUET, ArchiveFormat.NDJSON
LAYOUTS = pytest.mark.parametrize(
    "layout",
    [pytest.param(DELIMITED, marks=pytest.mark.both_lanes), PARQUET, NDJSON],
    ids=lambda layout: layout.value,
)


class Hybrid:
    """A root that is filled from a topic and from an archive folder, both of this test's own."""

    def __init__(self, spark: SparkSession, bootstrap: str, folder: Path) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self.topic = f"hybrid-{folder.name}"
        self.archive = folder / "archive"
        self.archive.mkdir()
        self.layout = Layout(str(folder / "root"))
        self.tables = Intake(spark, self.layout)
        make_topic(bootstrap, self.topic)

    def settings(self, sink: Sink = Sink.AUTO, **archive: Any) -> Settings:
        """The settings, with the archive; `path=None` names none."""
        kafka = {"bootstrap_servers": self.bootstrap, "topics": [self.topic], "connect_timeout_s": 10.0}
        named = {"path": str(self.archive), **archive}
        sections = {"source": {"kind": "kafka"}, "kafka": kafka, "archive": named, "run": {"sink": sink}}
        return Settings.model_validate({"root": self.layout.root, **sections})

    def ingest(self, trigger: Trigger = TAKE_ALL, sink: Sink = Sink.AUTO, **archive: Any) -> list[IngestReport]:
        """Run to the end, and return what each batch took in."""
        batches: list[IngestReport] = []
        ingest(self.spark, self.settings(sink, **archive), trigger, on_batch=batches.append)
        return batches

    @contextmanager
    def streaming(self, **archive: Any) -> Iterator[Future[list[IngestReport]]]:
        """A stream that looks for records and files all the time while the block runs."""
        stop = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(self.ingest, Every(0.1, stop), **archive)
            try:
                yield running
            finally:
                stop.set()

    def send(self, *payloads: bytes) -> None:
        outcomes = send({"bootstrap.servers": self.bootstrap}, self.topic, *map(of_chess, payloads))
        assert outcomes == [None] * len(payloads)

    def put(self, name: str, *payloads: bytes, layout: ArchiveFormat = DELIMITED) -> Path:
        return write_archive(self.archive / name, layout, map(of_chess, payloads))

    def crashing(self, place: Callable[[Layout], AbstractContextManager[None]], **settings: Any) -> None:
        with place(self.layout), pytest.raises(TaskFailed):
            self.ingest(**settings)

    def payloads(self) -> list[tuple[str, bytes]]:
        """Origin and payload of every row of bronze, sorted."""
        return sorted(self.tables.bronze("origin", "payload"))


@pytest.fixture
def hybrid(spark: SparkSession, broker: Broker, tmp_path: Path) -> Hybrid:
    return Hybrid(spark, broker.bootstrap, tmp_path)


def both(kafka: bytes, files: bytes) -> list[tuple[str, bytes]]:
    """One row for each byte."""
    return sorted([("files", bytes([one])) for one in files] + [("kafka", bytes([one])) for one in kafka])


def left(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def torn(layout: ArchiveFormat) -> tuple[bytes, str, bytes]:
    """A file's bytes with one good record and a malformed piece; the beginning of the piece's sentence, its bytes."""
    good = archive_bytes(layout, of(of_chess(b"c")))
    match layout:
        case ArchiveFormat.DELIMITED:
            piece = delimited(of_chess(b"lost"))[:-1]
        case ArchiveFormat.NDJSON:
            piece = json_line(Archived(of_chess(b"lost")))[:-5]
        case ArchiveFormat.PARQUET:
            return good[:-1], f"Malformed bytes 0 to {len(good) - 2} of ", good[:-1]
    return good + piece, f"Malformed bytes {len(good)} to {len(good) + len(piece) - 1} of ", piece


@LAYOUTS
def test_records_of_kafka_and_of_an_archive_come_in_once_each_and_their_origin_tells_them_apart(
    hybrid: Hybrid, layout: ArchiveFormat
) -> None:
    settings: dict[str, Any] = {"format": layout, "max_files_per_batch": 1}
    suffix = SUFFIXES[layout]
    first = hybrid.put(f"1 é #{suffix}", b"a", layout=layout)
    packed = hybrid.put(f"2{suffix}" if layout is PARQUET else f"2{suffix}.gz", b"b", layout=layout)
    content, sentence, piece = torn(layout)
    broken = hybrid.archive / f"3%20{suffix}"
    broken.write_bytes(content)
    # the order in which files are read
    for at, path in enumerate((first, packed, broken)):
        os.utime(path, (1_700_000_000 + at, 1_700_000_000 + at))
    hybrid.send(b"x", b"y")

    assert [batch.rows_in for batch in hybrid.ingest(**settings)] == [3, 1, 1 if layout is PARQUET else 2]
    topic, whole = hybrid.topic, [] if layout is PARQUET else [("files", None, b"c", f"file:{broken}#0", 2)]
    assert hybrid.tables.bronze("origin", "topic", "payload", "record_id", "batch_id") == sorted(
        [
            ("files", None, b"a", f"file:{first}#0", 0),
            ("files", None, b"b", f"file:{packed}#0", 1),
            *whole,
            # not behind the backlog
            ("kafka", topic, b"x", f"{topic}/0/0", 0),
            ("kafka", topic, b"y", f"{topic}/0/1", 0),
        ],
        key=repr,
    )
    ((origin, cause, said, kept),) = hybrid.tables.quarantine("origin", "cause", "sentence", "bytes")
    assert (origin, cause, kept) == ("files", Cause.MALFORMED_FILE.value, piece)
    assert said.startswith(f"{sentence}file:{broken}: ")

    before = hybrid.payloads()
    assert hybrid.ingest(**settings) == []
    hybrid.send(b"z")
    hybrid.put(f"4{suffix}", b"d", layout=layout)
    assert [batch.rows_in for batch in hybrid.ingest(**settings)] == [2]
    assert hybrid.payloads() == sorted([*before, ("files", b"d"), ("kafka", b"z")])
    assert len(hybrid.tables.quarantine("record_id")) == 1


@pytest.mark.parametrize(
    ("sink", "place"),
    [
        pytest.param(Sink.FILES, lambda at: crash.after_committing(at.bronze), id="files: before quarantine"),
        pytest.param(Sink.SPARK, lambda at: crash.after_writing(at.bronze), id="spark: before quarantine"),
        pytest.param(
            Sink.AUTO,
            lambda at: crash.after_all_writes(),
            id="before the checkpoint",
            marks=pytest.mark.both_lanes,
        ),
    ],
)
def test_a_batch_that_failed_after_its_commit_comes_again_and_nothing_twice(
    hybrid: Hybrid, sink: Sink, place: Callable[[Layout], AbstractContextManager[None]]
) -> None:
    settings: dict[str, Any] = {"max_files_per_batch": 2, "clean": CleanUp.DELETE, "sink": sink}
    hybrid.put("1.bin.gz", b"a")
    broken = hybrid.put("2.bin", b"b")
    size = broken.stat().st_size
    broken.write_bytes(broken.read_bytes() + b"\xff" * 11)
    hybrid.send(b"x")
    hybrid.crashing(place, **settings)
    # what came later is another batch
    hybrid.send(b"y")
    hybrid.put("3.bin", b"c")
    assert [batch.rows_in for batch in hybrid.ingest(**settings)] == [4, 2]
    assert hybrid.payloads() == both(b"xy", b"abc")
    assert hybrid.tables.quarantine("record_id", "bytes") == [(f"file:{broken}#{size}", b"\xff" * 11)]
    assert left(hybrid.archive) == ["3.bin"]


def test_an_archive_is_named_later_and_forgotten_again_while_the_stream_goes_on(hybrid: Hybrid) -> None:
    hybrid.send(b"x")
    hybrid.ingest(path=None)
    hybrid.put("1.parquet", b"a", layout=PARQUET)
    hybrid.send(b"y")
    hybrid.crashing(lambda at: crash.after_all_writes(), format=PARQUET)
    # but not in the middle of a batch that could not be read then
    with pytest.raises(SettingsInvalid, match="Batch 1 of bronze was interrupted, and has files of"):
        hybrid.ingest(path=None)
    assert hybrid.ingest(format=PARQUET)[0].rows_in == 2
    hybrid.put("2.parquet", b"b", layout=PARQUET)
    hybrid.send(b"z")
    hybrid.ingest(path=None)
    assert hybrid.payloads() == both(b"xyz", b"a")
    hybrid.ingest(format=PARQUET)
    assert hybrid.payloads() == both(b"xyz", b"ab")
    assert hybrid.tables.quarantine("cause") == []


def test_a_file_that_is_gone_before_its_batch_comes_again_stops_the_run_until_something_is_in_its_place(
    hybrid: Hybrid,
) -> None:
    gone = hybrid.put("1.bin", b"a")
    hybrid.send(b"x")
    hybrid.crashing(lambda at: crash.after_all_writes())
    content = gone.read_bytes()
    gone.unlink()
    with pytest.raises(StorageFailed) as raised:
        hybrid.ingest(path=None)
    assert raised.value.message == f"The archived file file://{gone} is gone since this batch was begun."
    gone.write_bytes(content)
    hybrid.ingest()
    assert hybrid.payloads() == both(b"x", b"a")


def test_read_files_are_moved_or_deleted_when_live_records_make_the_next_batch(hybrid: Hybrid, tmp_path: Path) -> None:
    hybrid.put("sub/1.bin", b"a")
    moving: dict[str, Any] = {"clean": CleanUp.ARCHIVE, "clean_path": f"{tmp_path}/done"}
    hybrid.ingest(**moving)
    assert left(hybrid.archive) == ["sub/1.bin"]
    hybrid.send(b"x")
    hybrid.ingest(**moving)
    assert left(hybrid.archive) == []
    assert left(tmp_path / "done") == [f"{hybrid.archive}/sub/1.bin"[1:]]

    hybrid.put("2.bin", b"b")
    hybrid.ingest(clean=CleanUp.DELETE)
    assert left(hybrid.archive) == ["2.bin"]
    hybrid.send(b"y")
    hybrid.ingest(clean=CleanUp.DELETE)
    assert left(hybrid.archive) == []
    assert hybrid.payloads() == both(b"xy", b"ab")


def test_a_live_record_does_not_wait_for_the_backlog(hybrid: Hybrid) -> None:
    files = 10
    for number in range(files):
        hybrid.put(f"{number:02}.bin", b"a")
    with hybrid.streaming(max_files_per_batch=1) as running:
        wait_until(lambda: bool(hybrid.payloads()) or running.done())
        hybrid.send(b"x")
        wait_until(lambda: len(hybrid.payloads()) == files + 1 or running.done())
    assert hybrid.payloads() == both(b"x", b"a" * files)
    last = dict(sorted(hybrid.tables.bronze("origin", "batch_id")))
    assert last["kafka"] < last["files"]
