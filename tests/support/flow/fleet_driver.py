"""A driver of the fleet as a process of its own, to be killed at any moment, on the JVM of the tests' one session.

What a driver decides and commits, it does in Python; a JVM for each of fifty drivers would cost minutes. With the
process, its jobs and queries end, as they would with its JVM. It is forked from a process that has imported everything.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from demux.core.errors import DemuxError
from demux.core.reports import GameReport, IngestReport
from demux.core.settings.settings import Settings
from demux.pipeline.engines import decode_of
from demux.pipeline.observers.observer import Observer
from demux.pipeline.round import run_round
from demux.pipeline.task_pool import TaskEnd
from install_workflow.planning.plan import Plan
from tests.support.flow.root import Root

_FORKS = multiprocessing.get_context("forkserver")
# what a driver imports only when it needs it
_IMPORTED = (__name__, "bronze_ingest.run", "deserializer.stream.run", "delta.tables", "pandas", "ptars")


@dataclass(frozen=True, slots=True)
class DriverReports:
    """What a driver reported, in order: `taken in`, `planned <games>`, `ended`, `round`, `failed: <why>`."""

    words: tuple[str, ...] = ()

    @property
    def due(self) -> int | None:
        """How many games the first of the rounds wanted to decode; None before it was known."""
        return next((int(word.split()[1]) for word in self.words if word.startswith("planned")), None)

    @property
    def failures(self) -> tuple[str, ...]:
        """Why rounds or games failed."""
        return tuple(word for word in self.words if word.startswith("failed"))

    @property
    def ended(self) -> int:
        """How many games were decoded."""
        return self.words.count("ended")

    @property
    def rounds(self) -> int:
        """How many rounds came to their end."""
        return self.words.count("round")

    @property
    def is_idle(self) -> bool:
        """Whether a round had nothing to do."""
        return "planned 0" in self.words


@dataclass(slots=True)
class Driver:
    """A driver at work: round after round."""

    spark: SparkSession
    process: BaseProcess
    _tells: Connection
    _heard: list[str] = field(default_factory=list)
    _since: int = 0

    def begin(self) -> None:
        """What it reported until now counts no more."""
        self._since = self._since + len(self.reports().words)

    def reports(self) -> DriverReports:
        """Return all that it has reported since `begin`."""
        try:
            while self._tells.poll():
                self._heard.append(self._tells.recv())
        except (EOFError, OSError):
            # killed in the middle of a word
            pass
        return DriverReports(tuple(self._heard[self._since :]))

    def kill(self) -> DriverReports:
        """End it as SIGKILL does, and in the JVM what it had begun; return what it reported."""
        self.process.kill()
        self.process.join()
        _end_all(self.spark)
        return self.reports()


@contextmanager
def drivers(spark: SparkSession) -> Iterator[None]:
    """Make drivers possible while the block runs; after it the session calls this process back, as before."""
    _FORKS.set_forkserver_preload(list(_IMPORTED))
    try:
        yield
    finally:
        _end_all(spark)
        gateway: Any = spark.sparkContext._gateway
        if gateway.__dict__.get("_callback_server") is not None:
            server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
            server.resetCallbackClient(server.getCallbackClient().getAddress(), gateway._python_proxy_port)


def start_driver(root: Root, number: int, run: Mapping[str, object]) -> Driver:
    """Return a new driver of the root with these settings of `run`; each one has another number."""
    parameters = root.spark.sparkContext._gateway.gateway_parameters  # type: ignore[union-attr]
    tells, tell = _FORKS.Pipe(duplex=False)
    process = _FORKS.Process(
        target=_drive,
        args=(
            parameters.port,
            parameters.auth_token,
            number,
            root.said(run=dict(run)),
            root.folder,
            dict(os.environ),
            tell,
        ),
        daemon=True,
    )
    process.start()
    tell.close()
    return Driver(root.spark, process, tells)


def _end_all(spark: SparkSession) -> None:
    for query in spark.streams.active:
        query.stop()
    spark.sparkContext.cancelAllJobs()


def _drive(
    port: int,
    secret: str,
    number: int,
    settings: Mapping[str, object],
    folder: Path,
    environment: Mapping[str, str],
    tell: Connection,
) -> None:
    """Run round after round, as `demux run --every` does; never returns."""
    # a fork has that of the process which forks, as it was at its begin
    os.environ.update(environment)
    root = Root(_attached(port, secret, number), Settings.model_validate(settings), folder)
    place = root.workplace()
    decode = decode_of(place, place.settings.round_engine)
    observer = _Teller(tell)
    while True:
        try:
            run_round(place, decode, observer=observer)
        except DemuxError as error:
            tell.send(f"failed: {error}")
        else:
            tell.send("round")


class _Teller(Observer):
    """Tells another process of a round's progress."""

    def __init__(self, tell: Connection) -> None:
        self._tell = tell

    def ingested(self, report: IngestReport) -> None:
        self._tell.send("taken in")

    def planned(self, plan: Plan, due: int) -> None:
        self._tell.send(f"planned {due}")

    def ended(self, end: TaskEnd[GameReport]) -> None:
        self._tell.send("ended" if end.error is None else f"failed: {end.error}")


def _attached(port: int, secret: str, number: int) -> SparkSession:
    """Return the session that another process has made."""
    os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(port), secret
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    # what the JVM forgets of one process's objects must be no object of another
    gateway.gateway_property.pool.next_id = number << 32
    jvm = gateway.jvm
    there = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(
        jvm.org.apache.spark.SparkContext.getOrCreate()
    )
    conf = SparkConf(_jconf=there.sc().conf())
    return SparkSession(SparkContext(gateway=gateway, jsc=there, conf=conf))
