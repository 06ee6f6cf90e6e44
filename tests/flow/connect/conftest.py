from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from demux.core.settings.settings import SparkSettings
from demux.core.streaming.session import SHORT_LIVED
from tests.support.flow.process import DEMUX, Said, run, running
from tests.support.flow.root import Root
from tests.support.spark_session import INTERPRETED
from tools.servers.connect import ConnectServer, start_connect

# a client that starts a JVM fails
_NO_JAVA = {"JAVA_HOME": "/nowhere"}

Remote = Callable[..., Said]
Watched = Callable[[Root, Sequence[str]], "subprocess.Popen[str]"]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A Spark Connect server for all tests, in a folder of its own; a test that kills it starts it again."""
    settings = SparkSettings(master="local[2]", conf={**SHORT_LIVED, **INTERPRETED})
    with start_connect(tmp_path_factory.mktemp("connect"), settings) as started:
        yield started


@pytest.fixture
def remote(server: ConnectServer, tmp_path: Path) -> Remote:
    """Runs `demux` on a root in a process of its own without a JVM, on the server; it begins in another folder."""

    def demux(root: Root, *words: str) -> Said:
        whole = [DEMUX, words[0], "--root", str(root.folder), "--set", f"spark.remote={server.url}", *words[1:]]
        return run(whole, environment=_NO_JAVA, folder=tmp_path)

    return demux


@pytest.fixture
def began(server: ConnectServer) -> Callable[..., object]:
    """Starts the same, to be watched; it is dead when the block ends."""

    def demux(root: Root, *words: str) -> object:
        return running(
            [DEMUX, *words, "--root", str(root.folder), "--set", f"spark.remote={server.url}"], environment=_NO_JAVA
        )

    return demux
