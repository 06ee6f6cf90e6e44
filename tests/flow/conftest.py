from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock
from pyspark.sql import SparkSession

from tests.support.flow.fleet import STREAM
from tests.support.flow.root import Root

Once = Callable[[str, Callable[[Path], object]], Root]


@pytest.fixture
def root(spark: SparkSession, tmp_path: Path) -> Root:
    """A root where nothing is yet."""
    return Root.at(spark, tmp_path / "root")


@pytest.fixture(scope="session")
def once(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Makes a root that many tests copy: the first process that needs it, for all processes of this run."""
    base = tmp_path_factory.getbasetemp()
    # each of xdist's processes has a folder of its own below the run's
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "once"
    shared.mkdir(exist_ok=True)

    def root(name: str, make: Callable[[Path], object]) -> Root:
        folder, made = shared / name, shared / f"{name}.made"
        with FileLock(shared / f"{name}.lock"):
            if not made.exists():
                shutil.rmtree(folder, ignore_errors=True)
                make(folder)
                made.touch()
        return Root.at(spark, folder)

    return root


@pytest.fixture(scope="session")
def sent(spark: SparkSession, once: Once) -> Root:
    """Two games in two versions, every kind of fault, in the source; nothing else. To be copied, not changed."""

    def make(folder: Path) -> None:
        Root.at(spark, folder).produce(events=240, games=2, versions=2, fault_rate=0.3)

    return once("sent", make)


@pytest.fixture(scope="session")
def taken_in(sent: Root, once: Once) -> Root:
    """The same, with bronze. To be copied, not changed."""
    return once("taken_in", lambda folder: sent.copied_to(folder).workplace().ingest())


@pytest.fixture(scope="session")
def done(taken_in: Root, once: Once) -> Root:
    """The same, with silver: what an undisturbed run makes. To be copied, not changed."""
    return once("done", lambda folder: taken_in.copied_to(folder).run())


@pytest.fixture(scope="session")
def streamed(taken_in: Root, once: Once) -> Root:
    """The same as `done`, decoded by a stream for each game, with its checkpoint. To be copied, not changed."""
    return once("streamed", lambda folder: taken_in.copied_to(folder, run=STREAM).run())


@pytest.fixture
def copy(tmp_path: Path) -> Callable[..., Root]:
    """Copies a root to a folder of this test's own."""
    return lambda root, **changes: root.copied_to(tmp_path / "root", **changes)


@pytest.fixture
def event() -> str:
    """A schema to write messages of by hand."""
    return """
        syntax = "proto3";
        package test;
        import "google/protobuf/timestamp.proto";
        message Event { string name = 1; int64 score = 2; google.protobuf.Timestamp at = 3; }
    """
