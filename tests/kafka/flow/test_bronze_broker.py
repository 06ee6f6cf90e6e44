"""Bronze when its broker is not there, goes away in the middle, or comes back without its data."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bronze_ingest.file_sink import write_batch
from demux.core.errors import ErrorKind, KafkaUnavailable, OffsetsLost
from demux.core.reports import IngestReport
from demux.core.settings.source import KafkaSettings
from demux.core.streaming.checkpoints import read_checkpoint
from tests.support.flow.process import wait_until
from tests.support.kafka.intake import Intake, of_chess
from tests.support.kafka.records import Record, make_topic, put
from tools.servers.broker import Broker, start_broker
from tools.servers.ports import free_ports

# a batch that takes the consumer hundreds of requests
COUNT = 8_000
SLOWLY = {"max.partition.fetch.bytes": "20000", "fetch.max.bytes": "20000", "max.poll.records": "100"}
SMALL_PIECES = {"batch.size": "16000"}


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that the tests may kill; each leaves it running."""
    with start_broker(tmp_path_factory.mktemp("mortal") / "broker") as broker:
        yield broker


def numbered(first: int, count: int) -> list[Record]:
    return [Record(of_chess(b"%0500d" % number)) for number in range(first, first + count)]


def payloads(root: Intake) -> list[int]:
    return sorted(int(payload) for (payload,) in root.bronze("payload"))


def test_no_broker_at_the_start_is_told_within_30_seconds_with_host_and_listener(
    spark: SparkSession, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    started = time.monotonic()
    root = Intake.at(spark, tmp_path, f"127.0.0.1:{port}", "t")
    error = root.refused(KafkaUnavailable, connect_timeout_s=KafkaSettings().connect_timeout_s)
    assert time.monotonic() - started < 30
    assert error.kind is ErrorKind.TRANSIENT
    assert error.message.startswith(f"No broker answered at 127.0.0.1:{port} (PLAINTEXT) within 10 s: ")
    assert error.remedy == "Start the broker, or correct kafka.bootstrap_servers and kafka.security_protocol."


def test_a_host_without_an_address_is_told_by_name(spark: SparkSession, tmp_path: Path) -> None:
    error = Intake.at(spark, tmp_path, "no.such.host.invalid:9092", "t").refused(KafkaUnavailable)
    assert error.message == (
        "No broker answered at no.such.host.invalid:9092 (PLAINTEXT) within 10 s: "
        "no.such.host.invalid:9092/bootstrap: Failed to resolve 'no.such.host.invalid:9092': Name or service not known."
    )


def test_a_port_where_nobody_answers_is_told_as_well(spark: SparkSession, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        error = Intake.at(spark, tmp_path, address, "t", connect_timeout_s=1.0).refused(KafkaUnavailable)
    assert error.message.startswith(f"No broker answered at {address} (PLAINTEXT) within 1 s: ")


@pytest.mark.both_lanes
def test_a_broker_that_is_killed_in_the_middle_of_a_batch_and_comes_back_loses_nothing_and_doubles_nothing(
    spark: SparkSession, mortal: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_topic(mortal.bootstrap, "killed")
    to = {"bootstrap.servers": mortal.bootstrap}
    put(to, "killed", *numbered(0, 10))
    root = Intake.at(spark, tmp_path, mortal.bootstrap, "killed", connect_timeout_s=3.0, options=SLOWLY)
    assert root.ingest() == IngestReport(10, 10, 0)
    put({**to, **SMALL_PIECES}, "killed", *numbered(10, COUNT), Record(b"no wrapper"))

    def write_without_broker(*batch: Any) -> Any:
        # the batch's offsets are fixed, and none of its records is read yet
        mortal.kill()
        return write_batch(*batch)

    with monkeypatch.context() as patch:
        patch.setattr("bronze_ingest.file_sink.write_batch", write_without_broker)
        error = root.refused(KafkaUnavailable)
    assert error.message.startswith(f"No broker answered at {mortal.bootstrap} (PLAINTEXT) within 3 s: ")
    checkpoint = read_checkpoint(root.layout.storage, root.layout.bronze_checkpoint)
    assert (checkpoint.unfinished, len(payloads(root))) == (1, 10)
    mortal.restart()
    put(to, "killed", *numbered(10 + COUNT, 5))
    assert root.ingest() == IngestReport(COUNT + 6, COUNT + 5, 1)
    assert payloads(root) == list(range(COUNT + 15))
    assert root.quarantine("record_id") == [(f"killed/0/{COUNT + 10}",)]
    assert len(set(root.bronze("record_id"))) == COUNT + 15
    assert (root.ingest(), root.gaps()) == (IngestReport(0, 0, 0), [])


def test_a_running_stream_outlives_its_broker(spark: SparkSession, mortal: Broker, tmp_path: Path) -> None:
    make_topic(mortal.bootstrap, "outlived")
    to = {"bootstrap.servers": mortal.bootstrap}
    put(to, "outlived", *numbered(0, 3))
    root = Intake.at(spark, tmp_path, mortal.bootstrap, "outlived", connect_timeout_s=30.0)
    with root.streaming() as stream:
        wait_until(lambda: stream.done() or payloads(root) == [0, 1, 2])
        mortal.kill()
        mortal.restart()
        put(to, "outlived", *numbered(3, 3))
        wait_until(lambda: stream.done() or payloads(root) == list(range(6)))
    assert stream.result() == IngestReport(6, 6, 0)


def test_a_broker_that_lost_its_log_is_told_and_offsets_given_out_again_get_ids_of_their_own(
    spark: SparkSession, mortal: Broker, tmp_path: Path
) -> None:
    make_topic(mortal.bootstrap, "cut")
    to = {"bootstrap.servers": mortal.bootstrap}
    put(to, "cut", *numbered(0, 3))
    root = Intake.at(spark, tmp_path, mortal.bootstrap, "cut")
    root.ingest()
    mortal.stop()
    shutil.rmtree(mortal.log.parent / "data" / "cut-0")
    mortal.restart()
    error = root.refused(OffsetsLost)
    assert error.message == (
        "Offsets that the stream needs are lost, as the broker's log ends before them: "
        "topic cut, partition 0: offsets 0 to 2 (3 records)."
    )
    put(to, "cut", *numbered(10, 1))
    assert "topic cut, partition 0: offsets 1 to 2 (2 records)." in root.refused(OffsetsLost).message
    assert root.ingest(accept_gaps=True) == IngestReport(0, 0, 0)
    put(to, "cut", *numbered(11, 3))
    assert root.ingest() == IngestReport(3, 3, 0)
    assert root.bronze() == [
        *((f"cut/0/{at}", b"%0500d" % at) for at in range(3)),
        *((f"cut@2/0/{at}", b"%0500d" % (at + 10)) for at in range(1, 4)),
    ]
    assert root.gaps() == [("cut", 0, 1, 3, "cut off")]
