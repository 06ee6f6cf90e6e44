"""A Spark Connect server: a Spark of its own, as a process of its own, with another working directory."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pyspark

from demux.core.settings.settings import SparkSettings
from demux.core.streaming.jvm_cache import JvmCache
from demux.core.streaming.session import classic_conf
from tools.servers.ports import free_ports, listens
from tools.servers.process import Launch, Life, Server

_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


class ConnectServer(Server):
    """A server; started again, it knows no session of before.

    Attributes:
        url: for `spark.remote`.
    """

    start_s = 180.0

    def __init__(self, launch: Launch) -> None:
        self.url = f"sc://127.0.0.1:{launch.ports[0]}"
        super().__init__(launch)

    def _probe(self) -> Callable[[], bool]:
        return lambda: listens(self._launch.ports[0])


def start_connect(folder: Path, settings: SparkSettings) -> ConnectServer:
    """Return a server that answers, with its log in the folder, which it works in.

    Args:
        folder: of its log and its files.
        settings: of its Spark; `remote` does not count.
    """
    (port,) = free_ports(1)
    folder.mkdir(parents=True, exist_ok=True)
    conf = {
        **JvmCache.of(os.environ).with_jars(classic_conf(settings, folder, None)),
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
