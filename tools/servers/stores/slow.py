"""The proxy of an S3 server in a process of its own, so that it takes no time from the one that is measured."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

from tools.servers.stores.proxy import Request, StoreProxy


class SlowStore:
    """A proxy that runs.

    Attributes:
        url: where it listens.
    """

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
    """Yield a proxy before this server, without latency at first."""
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
    asked: list[Request] = []
    proxy = StoreProxy(upstream)
    proxy.decide = asked.append
    pipe.send(proxy.url)
    while True:
        try:
            latency_s = pipe.recv()
        except EOFError:
            return
        if latency_s is None:
            # what comes in while these are sent is for the next time
            found = asked[:]
            del asked[: len(found)]
            pipe.send(found)
        else:
            proxy.latency_s = latency_s
            pipe.send(None)
