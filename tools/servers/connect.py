"""A Spark Connect server: a Spark of its own, as a process of its own, with another working directory."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from types import TracebackType

import pyspark

from demux.core.settings.settings import SparkSettings
from demux.core.streaming.session import classic_conf
from tools.servers.ports import free_ports
from tools.servers.process import Launch, Life, ServerProcess

_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_START_S = 180.0


class ConnectServer:
    """A server that was started here; stopped when the block ends.

    Attributes:
        url: for `spark.remote`.
        log: the file that its output goes to.
    """

    def __init__(self, launch: Launch) -> None:
        """Start it, and return when it answers."""
        self._launch = launch
        self.url = f"sc://127.0.0.1:{launch.ports[0]}"
        self.log = launch.log
        self._process = self._started()

    def stop(self) -> None:
        """Let it end, with all its sessions."""
        self._process.stop()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._process.kill()

    def restart(self) -> None:
        """Stop it if it still runs, and start it on the same port; it knows no session of before."""
        self._process.stop()
        self._process = self._started()

    def __enter__(self) -> ConnectServer:
        """The server itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it."""
        self.stop()

    def _started(self) -> ServerProcess:
        process = ServerProcess(self._launch)
        process.wait_until(lambda: _listens(self._launch.ports[0]), _START_S)
        return process


def start_connect(folder: Path, settings: SparkSettings) -> ConnectServer:
    """Return a server that answers, with its log in the folder, which it works in.

    Args:
        folder: of its log and its files.
        settings: of its Spark; `remote` does not count.
    """
    (port,) = free_ports(1)
    folder.mkdir(parents=True, exist_ok=True)
    conf = {
        **classic_conf(settings, folder, None),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    given = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    words = [str(submit), "--class", _CLASS, "--name", "demux-connect", *given, "spark-internal"]
    # its workers import this package as they have it, not from the client's working directory
    environment = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    launch = Launch("Spark Connect server", words, folder, folder / "spark.log", environment, [port], Life.WITH_STARTER)
    return ConnectServer(launch)


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
