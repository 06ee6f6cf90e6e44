"""An HTTP server on 127.0.0.1 that keeps the bodies which it is sent, refuses them, or does not answer.

Bodies are JSON, or messages of OTLP, which are kept as their JSON has them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Event, Thread
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_PATIENCE_S = 60.0
_OTLP: Mapping[str, type[Message]] = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
}


@dataclass(slots=True)
class Receiver:
    """What the server is, and what it has got.

    Attributes:
        url: its address.
        got: path and body of each request to a path that is answered with 200.
        ended: lets go requests to `/silent`, which get no answer.
    """

    url: str = ""
    got: list[tuple[str, Any]] = field(default_factory=list)
    ended: Event = field(default_factory=Event)
    _changed: Condition = field(default_factory=Condition)

    def add(self, path: str, body: Any) -> None:
        """Keep a request."""
        with self._changed:
            self.got.append((path, body))
            self._changed.notify_all()

    def wait_for(self, requests: int) -> list[Any]:
        """Return the bodies once there are so many requests."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.got) >= requests, _PATIENCE_S), self.got
            return [body for _, body in self.got]


def _content(message: Message) -> Any:
    return MessageToDict(message, use_integers_for_enums=True)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Yield a receiver; paths that begin with `/500` are refused so, and those with `/silent` get no answer."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if self.path.startswith("/silent"):
                receiver.ended.wait()
                return
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = 500 if self.path.startswith("/500") else 200
            if status == 200:
                message = _OTLP.get(self.path)
                receiver.add(self.path, json.loads(body) if message is None else _content(message.FromString(body)))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield receiver
    finally:
        receiver.ended.set()
        server.shutdown()
        server.server_close()
