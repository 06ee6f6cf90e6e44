"""A server before an S3 server that delays each request, in a process of its own, and says which there were.

It passes bytes on and reads no more of them than the heads of requests, so it takes little time from what is measured:
0.1 ms of a core for each request, where `StoreProxy`, which understands answers too, takes 0.3.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.parser import Parser
from multiprocessing.connection import Connection
from urllib.parse import urlsplit

from tools.servers.stores.proxy import Request, request_of

_END_OF_HEAD = b"\r\n\r\n"


class SlowStore:
    """A delaying server that runs."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self.url = str(pipe.recv())

    def wait(self, latency_s: float) -> None:
        """Let each request from now on wait so long."""
        self._pipe.send(latency_s)
        self._pipe.recv()

    def asked(self) -> list[Request]:
        """Return the requests since the last call."""
        self._pipe.send(None)
        return list(self._pipe.recv())


@contextmanager
def slow_store(upstream: str) -> Iterator[SlowStore]:
    """Yield one before this server, without latency at first."""
    spawning = multiprocessing.get_context("spawn")
    here, there = spawning.Pipe()
    process = spawning.Process(target=_serve, args=(upstream, there), daemon=True)
    process.start()
    there.close()
    try:
        yield SlowStore(here)
    finally:
        here.close()
        process.join()


def _serve(upstream: str, pipe: Connection) -> None:
    asyncio.run(_Delays(upstream).serve(pipe))


class _Delays:
    """The state that all connections share."""

    def __init__(self, upstream: str) -> None:
        place = urlsplit(upstream)
        self.host, self.port = place.hostname or "", place.port or 0
        self.latency_s = 0.0
        self.asked: list[Request] = []

    async def serve(self, pipe: Connection) -> None:
        """Listen until the other end of the pipe is closed: it sends a latency, or None for the requests so far."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def on_message() -> None:
            try:
                latency_s = pipe.recv()
            except EOFError:
                loop.remove_reader(pipe.fileno())
                ended.set()
                return
            if latency_s is None:
                self.asked, found = [], self.asked
                pipe.send(found)
            else:
                self.latency_s = latency_s
                pipe.send(None)

        server = await loop.create_server(lambda: _FromClient(self), "127.0.0.1", 0)
        loop.add_reader(pipe.fileno(), on_message)
        pipe.send(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await ended.wait()


class _FromClient(asyncio.Protocol):
    """A connection of a client; its bytes go to one of its own to the server, later."""

    def __init__(self, delays: _Delays) -> None:
        self._delays = delays
        self._heads = _RequestHeads(lambda request: delays.asked.append(request))
        self._loop = asyncio.get_running_loop()
        # of the connection to the server, while there is none
        self._early: list[bytes] = []
        self._server: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._client = transport
        delays = self._delays
        self._connecting = self._loop.create_task(
            self._loop.create_connection(lambda: _FromServer(self), delays.host, delays.port)
        )

    def data_received(self, data: bytes) -> None:
        self._heads.feed(data)
        self._later(self._send, data)

    def connection_lost(self, error: Exception | None) -> None:
        self._later(self._close)

    def connected(self, server: asyncio.Transport) -> None:
        """Send what has come before there was a connection to the server."""
        self._server = server
        for data in self._early:
            server.write(data)

    def answer(self, data: bytes) -> None:
        """Pass on what the server says."""
        self._client.write(data)

    def end(self) -> None:
        """Close the connection, as the server did."""
        self._client.close()

    def _later(self, action: Callable[..., None], *words: bytes) -> None:
        self._loop.call_later(self._delays.latency_s, action, *words)

    def _send(self, data: bytes) -> None:
        if self._server is None:
            self._early.append(data)
        else:
            self._server.write(data)

    def _close(self) -> None:
        if self._server is not None:
            self._server.close()


class _FromServer(asyncio.Protocol):
    """The connection to the server that belongs to a client's."""

    def __init__(self, client: _FromClient) -> None:
        self._client = client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._client.connected(transport)

    def data_received(self, data: bytes) -> None:
        self._client.answer(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._client.end()


class _RequestHeads:
    """Finds the heads of requests in the bytes of a connection."""

    def __init__(self, found: Callable[[Request], None]) -> None:
        self._found = found
        self._head = b""
        self._body_left = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        while data:
            if self._body_left:
                body = min(self._body_left, len(data))
                self._body_left, data = self._body_left - body, data[body:]
                continue
            head, end, data = (self._head + data).partition(_END_OF_HEAD)
            if not end:
                self._head = head
                return
            self._head = b""
            line, _, fields = head.decode("latin-1").partition("\r\n")
            headers = Parser().parsestr(fields, headersonly=True)
            self._body_left = int(headers.get("Content-Length", 0))
            method, target, _ = line.split(" ", 2)
            self._found(request_of(method, target, {name.lower() for name in headers}))
