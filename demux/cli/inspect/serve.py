"""`demux serve` and `demux status --html`: the status as a page, without Spark; both only read."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from pathlib import Path

from demux.cli.command import console, warn
from demux.core.errors import StorageFailed
from demux.core.log_format import formatter_of
from demux.core.settings.settings import LogFormat, Settings
from demux.operations.status.html_page import page
from demux.operations.status.http_server import SiteCache, StatusServer
from demux.operations.status.json_view import status_json
from demux.operations.status.model import Status
from demux.operations.status.routes import LOOPBACK
from demux.pipeline.status import status_reader

PORT = 8642


def serve(settings: Settings, port: int, host: str, allow_host: list[str], metrics_games: int) -> None:
    """Serve the status as a page that keeps itself up to date, with /metrics and /healthz; until Ctrl-C or SIGTERM."""
    _log_to_terminal(settings.log.format)
    sites = SiteCache(status_reader(settings), metrics_games)
    server = StatusServer(sites, host, port, allow_host)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        server.start()
        if host not in LOOPBACK:
            warn(f"Everyone who reaches {host} sees the status: there is no login. Put a proxy with one before it.")
        console.print(f"The status is at {server.url} (Ctrl-C ends it)", soft_wrap=True)
        stop.wait()
    finally:
        server.stop()


def write_page(status: Status, file: Path) -> None:
    """Write the page of a status, in one step.

    Raises:
        StorageFailed: the file cannot be written.
    """
    text = page(status_json(status))
    beside = file.with_name(f".{file.name}.tmp")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(file)
    except OSError as error:
        raise StorageFailed(
            f"The page {file} cannot be written: {error.strerror or error}.",
            "Name another file with --html, in a folder that is there and that you may write to.",
            path=str(file),
        ) from error
    console.print(f"{file} is the status as it is now; `demux serve` keeps it up to date", soft_wrap=True)


def _log_to_terminal(log_format: LogFormat) -> None:
    """Tell of what cannot be read on standard error: nothing is written below the root, not even a log."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter_of(as_json=log_format is LogFormat.JSON))
    log = logging.getLogger("demux")
    log.handlers, log.propagate = [handler], False
