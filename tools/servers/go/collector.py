"""An OpenTelemetry Collector on 127.0.0.1: it receives OTLP over HTTP, and writes what it got into a file as JSON.

`locks/collector/` has its few lines of Go, which name the parts that it is made of, and pins these. It is built as
https://opentelemetry.io/docs/collector/extend/ocb describes, without the generator.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from demux.core.root.layout import cache_folder
from tools.servers.go.program import GoProgram, built
from tools.servers.packages import LOCKS
from tools.servers.ports import HOST, free_ports, listens
from tools.servers.process import Launch, Life, Server

PROGRAM = GoProgram("OpenTelemetry Collector", LOCKS / "collector", ".")


class Collector(Server):
    """A collector."""

    start_s = 30.0

    def __init__(self, launch: Launch, received: Path) -> None:
        self.url = f"http://{HOST}:{launch.ports[0]}"
        self._received = received
        super().__init__(launch)

    def stop_and_read(self) -> list[Mapping[str, Any]]:
        """Stop it, and return what it has received: messages of OTLP, as their JSON has them."""
        self.stop()
        return [json.loads(line) for line in self._received.read_text(encoding="utf-8").splitlines()]

    def _probe(self) -> Callable[[], bool]:
        return lambda: listens(self._launch.ports[0])


def start_collector(folder: Path) -> Collector:
    """Return a collector that answers, with its files in the folder; builds it the first time.

    Raises:
        PackagesUnavailable: there is no Go, or the collector could not be built.
        ServerFailed: it did not start; with the end of its log.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port, received, settings = free_ports(1)[0], folder / "received.json", folder / "collector.yml"
    pipeline = {"receivers": ["otlp"], "exporters": ["file"]}
    configuration = {
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"{HOST}:{port}"}}}},
        "exporters": {"file": {"path": str(received)}},
        "service": {"pipelines": {"traces": pipeline, "metrics": pipeline}},
    }
    # JSON is YAML
    settings.write_text(json.dumps(configuration), encoding="utf-8")
    words = [str(built(PROGRAM, cache_folder(os.environ))), "--config", str(settings)]
    launch = Launch(PROGRAM.name, words, folder, folder / "collector.log", {}, (port,), Life.WITH_STARTER)
    return Collector(launch, received)
