"""The workspace over HTTP."""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.exchange import Answer, Request
from tests.fakes.workspace.http.faults import Way


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    workspace: FakeWorkspace
    stopping: threading.Event

    def _handle(self) -> None:
        answer, fault = self.workspace.answer(self._asked(), self.headers.get("Authorization"))
        match fault.way if fault else None:
            case Way.RESET:
                self._reset()
            case Way.SILENT:
                self._wait_for_the_client_to_leave()
            case _:
                self._send(answer)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

    def _asked(self) -> Request:
        parts = urlsplit(self.path)
        return Request(
            self.command,
            unquote(parts.path),
            dict(parse_qsl(parts.query, keep_blank_values=True)),
            self.rfile.read(int(self.headers.get("Content-Length", 0))),
            self.headers.get("Content-Type", ""),
        )

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if "Content-Length" not in answer.headers:
            self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.content)

    def _reset(self) -> None:
        """Close so that the client is told "connection reset by peer"."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()
        self.connection.close()

    def _wait_for_the_client_to_leave(self) -> None:
        self.close_connection = True
        while not self.stopping.is_set():
            # a client that waits sends nothing: what can be read is its end
            if select.select([self.connection], [], [], 0.02)[0]:
                return

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serving(workspace: FakeWorkspace) -> Iterator[FakeWorkspace]:
    """The workspace, answering under its `url` until the block ends."""
    stopping = threading.Event()
    handler = type("Handler", (_Handler,), {"workspace": workspace, "stopping": stopping})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        workspace.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield workspace
        finally:
            stopping.set()
            server.shutdown()
            thread.join()
