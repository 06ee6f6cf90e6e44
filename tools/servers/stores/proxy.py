"""A proxy before an S3 server: refuses, resets connections, loses answers, adds latency; counts requests by kind."""

from __future__ import annotations

import http.client
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from tools.servers.stores.signing import signed_again

_PATIENCE_S = 60
_ERROR = "<Error><Code>{}</Code><Message>{}</Message></Error>"
_HOP_BY_HOP = frozenset({"connection", "transfer-encoding", "keep-alive", "content-length"})


class Fault(Enum):
    """The treatment of a request.

    Attributes:
        SLOW_DOWN: it is refused with 503.
        RESET: the connection is reset before the server sees it.
        LOST: the server carries it out, and its answer is lost.
        SILENT: it is not answered, and the connection stays open, for `StoreProxy.silence_s`.
        CUT: the connection is reset in the middle of the answer.
        EXPIRED: it is refused with 403, as its credentials have expired.
        DENIED: it is refused with 403, as its credentials lack a permission.
    """

    SLOW_DOWN = "503"
    RESET = "reset"
    LOST = "lost answer"
    SILENT = "silence"
    CUT = "cut answer"
    EXPIRED = "expired credentials"
    DENIED = "access denied"


# what passes by itself when it is asked again
PASSING = (Fault.SLOW_DOWN, Fault.RESET, Fault.LOST, Fault.SILENT, Fault.CUT)
_REFUSALS = {
    Fault.SLOW_DOWN: (503, "SlowDown", "Please reduce your request rate."),
    Fault.EXPIRED: (403, "ExpiredToken", "The provided token has expired."),
    Fault.DENIED: (403, "AccessDenied", "Access Denied"),
}


@dataclass(frozen=True, slots=True)
class Request:
    """A request as its server sees it.

    Attributes:
        kind: HEAD, GET, ranged GET, LIST, PUT, conditional PUT, DELETE, bulk DELETE, begin upload, PUT part or
            complete upload.
        path: of the bucket and the key; of a listing, what the keys begin with.
        session_token: of the short-lived credentials that it is signed with.
    """

    kind: str
    path: str
    session_token: str | None = None


class StoreProxy:
    """The proxy; what is decided about a request may be changed at any time.

    Attributes:
        silence_s: how long a request waits for an answer that does not come.
        keys: id and key of the server behind, which takes no session tokens; requests that have one are signed again.
        decide: what happens to a request; None for nothing.
        counts: requests by kind.
    """

    def __init__(self, upstream: str) -> None:
        self.latency_s = 0.0
        self.silence_s = 0.0
        self.keys: tuple[str, str] | None = None
        self.decide: Callable[[Request], Fault | None] = lambda _: None
        self.counts: Counter[str] = Counter()
        self._upstream = urlsplit(upstream).netloc
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()

    @contextmanager
    def failing(self, kind: str, fault: Fault, times: int = 1) -> Iterator[list[Request]]:
        """Let this happen to the first requests of this kind; yields those that it happened to."""
        hit: list[Request] = []

        def decide(request: Request) -> Fault | None:
            with self._lock:
                if request.kind != kind or len(hit) >= times:
                    return None
                hit.append(request)
                return fault

        self.decide = decide
        try:
            yield hit
        finally:
            self.decide = lambda _: None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # an answer in one packet: its body would wait for the acknowledgement of its head, 40 ms
            wbufsize = -1
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                self.upstream = http.client.HTTPConnection(proxy._upstream, timeout=_PATIENCE_S)

            def handle_expect_100(self) -> bool:
                # Spark's client waits for it, 3 s
                answered = super().handle_expect_100()
                self.wfile.flush()
                return answered

            def finish(self) -> None:
                self.upstream.close()
                super().finish()

            def log_message(self, *_: object) -> None:
                return

            def _any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked = request_of(self.command, self.path, {name.lower() for name in self.headers})
                request = replace(asked, session_token=self.headers.get("x-amz-security-token"))
                with proxy._lock:
                    proxy.counts[request.kind] += 1
                time.sleep(proxy.latency_s)
                match proxy.decide(request):
                    case Fault.SLOW_DOWN | Fault.EXPIRED | Fault.DENIED as fault:
                        status, code, message = _REFUSALS[fault]
                        said = _ERROR.format(code, message).encode()
                        self._answer(status, [("Content-Type", "application/xml")], said)
                    case Fault.RESET:
                        self._reset()
                    case Fault.LOST:
                        self._forward(body)
                        self._reset()
                    case Fault.SILENT:
                        self._forward(body)
                        time.sleep(proxy.silence_s)
                        self._reset()
                    case Fault.CUT:
                        self._answer(*self._forward(body), cut=True)
                    case _:
                        self._answer(*self._forward(body))

            do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _any

            def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
                self.upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                headers = dict(self.headers.items())
                if proxy.keys is not None and self.headers.get("x-amz-security-token"):
                    headers = signed_again(self.command, self.path, headers, proxy.keys)
                for name, value in headers.items():
                    self.upstream.putheader(name, value)
                self.upstream.endheaders(body)
                answer = self.upstream.getresponse()
                return answer.status, answer.getheaders(), answer.read()

            def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes, cut: bool = False) -> None:
                self.send_response_only(status)
                for name, value in headers:
                    if name.lower() not in _HOP_BY_HOP:
                        self.send_header(name, value)
                length = {name.lower(): value for name, value in headers}.get("content-length", str(len(body)))
                self.send_header("Content-Length", length if self.command == "HEAD" else str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body[: len(body) // 2] if cut else body)
                if cut:
                    self.wfile.flush()
                    self._reset()

            def _reset(self) -> None:
                # with nothing to linger for, closing sends RST
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                self.close_connection = True

        return Handler


def request_of(method: str, target: str, headers: Collection[str]) -> Request:
    """Return the request of a method, a target with its query, and the names of its headers in lower case."""
    parts = urlsplit(target)
    query = parse_qs(parts.query, keep_blank_values=True)
    if method == "GET" and "list-type" in query:
        return Request("LIST", f"{unquote(parts.path).rstrip('/')}/{query.get('prefix', [''])[0]}")
    match method:
        case "POST" if "uploads" in query:
            kind = "begin upload"
        case "PUT" if "partNumber" in query:
            kind = "PUT part"
        case "POST" if "uploadId" in query:
            kind = "complete upload"
        case "POST" if "delete" in query:
            kind = "bulk DELETE"
        case "GET" if "range" in headers:
            kind = "ranged GET"
        case "PUT" if "if-none-match" in headers or "if-match" in headers:
            kind = "conditional PUT"
        case _:
            kind = method
    return Request(kind, unquote(parts.path))
