from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demux.cli import main
from demux.cli.workplace import console
from tests.flow.fleet import STREAM
from tests.flow.process import Command, Said
from tests.flow.root import Root


@pytest.fixture
def root(spark: SparkSession, tmp_path: Path) -> Root:
    """A root where nothing is yet."""
    return Root.at(spark, tmp_path / "root")


@pytest.fixture(scope="session")
def sent(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Root:
    """Two games in two versions, every kind of fault, in the source; nothing else. To be copied, not changed."""
    root = Root.at(spark, tmp_path_factory.mktemp("sent") / "root")
    root.produce(events=240, games=2, versions=2, fault_rate=0.3)
    return root


@pytest.fixture(scope="session")
def taken_in(sent: Root, tmp_path_factory: pytest.TempPathFactory) -> Root:
    """The same, with bronze. To be copied, not changed."""
    root = sent.copied_to(tmp_path_factory.mktemp("taken_in") / "root")
    root.workplace().ingest()
    return root


@pytest.fixture(scope="session")
def done(taken_in: Root, tmp_path_factory: pytest.TempPathFactory) -> Root:
    """The same, with silver: what an undisturbed run makes. To be copied, not changed."""
    root = taken_in.copied_to(tmp_path_factory.mktemp("done") / "root")
    root.run()
    return root


@pytest.fixture(scope="session")
def streamed(taken_in: Root, tmp_path_factory: pytest.TempPathFactory) -> Root:
    """The same as `done`, decoded by a stream for each game, with its checkpoint. To be copied, not changed."""
    root = taken_in.copied_to(tmp_path_factory.mktemp("streamed") / "root", run=STREAM)
    root.run()
    return root


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


@pytest.fixture
def command(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `demux` with these words in this process, on the session that the tests share."""
    # nothing is folded
    monkeypatch.setattr(console, "_width", 1000)

    def run(*words: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["demux", *words])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            log = logging.getLogger("demux")
            while log.handlers:
                log.handlers.pop().close()
        printed = capsys.readouterr()
        return Said(code, printed.out, printed.err)

    return run
