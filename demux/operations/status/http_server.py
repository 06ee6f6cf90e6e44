"""Serves a status over HTTP: GET and HEAD, nothing else; a few seconds of work for any number of requests.

Touches the network and the clock; writes nothing.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from demux.core.errors import SettingsInvalid
from demux.core.text import printable
from demux.operations.status.model import Status
from demux.operations.status.prometheus import MOST_GAMES, ServerCounts
from demux.operations.status.routes import HttpResponse, StatusSite, is_ours, refusal

_LOG = logging.getLogger("demux")
# how old an answer may be, and how often an open page asks
KEPT_S = 2.0
REFRESH_S = 5.0
_MOST_CONNECTIONS = 64
_CONNECTION_S = 15.0


class SiteCache:
    """The newest site; read again when it is older than `kept_s`, once for all who ask at the same time."""

    def __init__(
        self,
        read: Callable[[], Status],
        most_games: int = MOST_GAMES,
        kept_s: float = KEPT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; `read` is called by one thread at a time."""
        self._read = read
        self._most_games = most_games
        self._kept_s = kept_s
        self._clock = clock
        self._lock = threading.Lock()
        self._counts = ServerCounts()
        self._until = float("-inf")
        self._newest: StatusSite | Exception = RuntimeError("nothing was read yet")

    def newest(self) -> StatusSite:
        """Return it; raises what reading raised, until it is tried again."""
        with self._lock:
            if self._clock() >= self._until:
                self._newest = self._read_again()
                self._until = self._clock() + self._kept_s
            if isinstance(self._newest, Exception):
                raise self._newest
            return self._newest

    def _read_again(self) -> StatusSite | Exception:
        began = self._clock()
        self._counts = replace(self._counts, reads=self._counts.reads + 1)
        try:
            status = self._read()
        except Exception as error:  # the next request tries again
            if str(error) != str(self._newest):
                _LOG.warning("the root cannot be read: %s: %s", type(error).__name__, printable(str(error)))
            self._counts = replace(self._counts, failed_reads=self._counts.failed_reads + 1)
            return error
        self._counts = replace(self._counts, read_s=self._clock() - began)
        return StatusSite(status, self._counts, REFRESH_S, self._most_games)


class StatusServer(ThreadingHTTPServer):
    """A server that is bound, and answers from `start` to `stop`."""

    daemon_threads = True
    # whoever stopped it may start it again at once
    allow_reuse_address = True
    request_queue_size = _MOST_CONNECTIONS

    def __init__(self, sites: SiteCache, host: str, port: int, names: Collection[str] = ()) -> None:
        """Bind to the address; port 0 takes any free one, and `names` are as in `is_ours`.

        Raises:
            SettingsInvalid: the address cannot be used.
        """
        self.sites = sites
        self.host = host
        self.names = frozenset(name.lower() for name in names)
        self._room = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        self._thread = threading.Thread(target=self.serve_forever, name="status-server", daemon=True)
        try:
            self.address_family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise SettingsInvalid(
                f"The address {host} port {port} cannot be listened at: {error}.",
                "Give another one with --port or --host, or end what has it.",
                host=host,
                port=port,
            ) from error

    @property
    def url(self) -> str:
        """Where the page is."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.server_address[1]}/"

    def start(self) -> None:
        """Answer requests, in threads of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more, and free the address; a second call does nothing."""
        if self._thread.is_alive():
            self.shutdown()
            self._thread.join()
        self.server_close()

    def server_bind(self) -> None:
        """Bind, without asking a name server for our own name."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.host, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread; with too many open connections, close this one at once."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log the failure of a connection; a client that went away is no error."""
        _LOG.info("connection from %s", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """One connection with one request."""

    server: StatusServer
    server_version = "demux"
    sys_version = ""
    # of silence: who says nothing goes
    timeout = _CONNECTION_S

    def do_GET(self) -> None:
        self._send(self._answer())

    def do_HEAD(self) -> None:
        self._send(self._answer(), with_body=False)

    def __getattr__(self, name: str) -> Callable[[], None]:
        # http.server asks for do_<METHOD>, and says 501 where there is none
        if name.startswith("do_"):
            return self._refuse
        raise AttributeError(name)

    def _refuse(self) -> None:
        self._send(
            refusal(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET and HEAD: nothing can be changed.", Allow="GET, HEAD")
        )

    def _answer(self) -> HttpResponse:
        if not is_ours(self.headers.get("Host"), self.server.host, self.server.names):
            return refusal(HTTPStatus.MISDIRECTED_REQUEST, "This server has another name: see --allow-host.")
        try:
            return self.server.sites.newest().answer(self.path)
        except Exception as error:  # the log has it; a request must not see more than its kind
            return refusal(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"The root cannot be read now ({type(error).__name__}); its terminal says why.",
            )

    def _send(self, answer: HttpResponse, *, with_body: bool = True) -> None:
        packs = "gzip" in self.headers.get("Accept-Encoding", "")
        body = answer.body.packed if packs and answer.body.packed is not None else answer.body.plain
        self.send_response(answer.status)
        for name, value in answer.all_headers.items():
            self.send_header(name, value)
        if body is answer.body.packed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Vary", "Accept-Encoding")
        self.send_header("Content-Type", answer.body.kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is no request, without saying it back."""
        self.headers = getattr(self, "headers", None) or self.MessageClass()
        # without a version that it knows, http.server would leave out the headers
        self.request_version = "HTTP/1.0"
        self._send(refusal(HTTPStatus(code), HTTPStatus(code).phrase), with_body=self.command != "HEAD")

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: a request may hold anything, and comes every few seconds."""
