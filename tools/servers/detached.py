"""A broker, a registry and an S3 server that outlive the command which starts them; `down` ends exactly those."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock

from tools.servers.broker import BrokerSettings, start_broker
from tools.servers.errors import FolderTaken, PackagesUnavailable, ServerFailed
from tools.servers.java import LONG_LIVED
from tools.servers.listeners import Listener
from tools.servers.ports import must_be_free
from tools.servers.process import Life, started_at
from tools.servers.registry import RegistrySettings, start_registry
from tools.servers.stores.s3 import ObjectStoreSettings, start_object_store

# docker-compose.yml publishes the same
BROKER_PORT = 9092
REGISTRY_PORT = 8081
STORE_PORT = 7070
_HEAP_MB = 512
_STOP_S = 30.0
_PAUSE_S = 0.05
_STATE = "state.json"


@dataclass(frozen=True, slots=True)
class Detached:
    """A server that was started here.

    Attributes:
        started: when the process began, in the operating system's words.
    """

    name: str
    address: str
    pid: int
    started: str

    @property
    def runs(self) -> bool:
        """Whether it still runs; another process that got its id does not count."""
        return started_at(self.pid) == self.started


def known(folder: Path) -> tuple[Detached, ...]:
    """Return the servers that were started and not stopped by us; they may have died meanwhile."""
    try:
        state = json.loads((folder / _STATE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()
    return tuple(Detached(**server) for server in state)


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the servers listen."""

    broker: int = BROKER_PORT
    registry: int = REGISTRY_PORT
    store: int = STORE_PORT


def up(folder: Path, ports: Ports, warn: Callable[[str], None]) -> tuple[Detached, ...]:
    """Return the servers, running, with their data below the folder; those that already run are left alone.

    Where the S3 server cannot be built, the other two run without it, and `warn` gets the sentence that says why.

    Raises:
        PackagesUnavailable: a server's files could not be fetched.
        PortTaken: another process listens on a port.
        FolderTaken: the folder holds files of another program.
        ServerFailed: a server did not start, or only some of them still run. Nothing new is left running; logs stay.
    """
    with _alone(folder):
        servers = known(folder)
        if any(server.runs for server in servers):
            return _all(servers)
        _remove(folder)
        must_be_free(ports.broker, "broker")
        must_be_free(ports.registry, "schema registry")
        must_be_free(ports.store, "S3 server")
        _write(folder, ())
        try:
            _start(folder, ports, warn)
        except BaseException:
            _stop(known(folder))
            _write(folder, ())
            raise
        return known(folder)


def down(folder: Path) -> tuple[Detached, ...]:
    """Return the servers that ran and are stopped now; their data is gone.

    Raises:
        FolderTaken: the folder holds files of another program.
    """
    with _alone(folder):
        stopped = tuple(server for server in known(folder) if server.runs)
        _stop(stopped)
        _remove(folder)
        return stopped


def _start(folder: Path, ports: Ports, warn: Callable[[str], None]) -> None:
    broker = start_broker(
        folder / "broker",
        BrokerSettings(
            {Listener.PLAINTEXT: ports.broker}, heap_mb=_HEAP_MB, java_options=LONG_LIVED, life=Life.DETACHED
        ),
    )
    _add(folder, "Kafka broker", broker.bootstrap, broker.pid)
    registry = start_registry(
        folder / "registry",
        RegistrySettings(ports.registry, heap_mb=_HEAP_MB, java_options=LONG_LIVED, life=Life.DETACHED),
    )
    _add(folder, "schema registry", registry.url, registry.pid)
    try:
        store = start_object_store(folder / "store", ObjectStoreSettings(ports.store, life=Life.DETACHED))
    except PackagesUnavailable as error:
        warn(f"{error.message} {error.remedy}")
    else:
        _add(folder, "S3 server", store.url, store.pid)


def _add(folder: Path, name: str, address: str, pid: int) -> None:
    _write(folder, (*known(folder), Detached(name, address, pid, started_at(pid) or "")))


def _write(folder: Path, servers: tuple[Detached, ...]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f"{_STATE}.new"
    fresh.write_text(json.dumps([asdict(server) for server in servers], indent=2), encoding="utf-8")
    fresh.replace(folder / _STATE)


def _all(servers: tuple[Detached, ...]) -> tuple[Detached, ...]:
    alive = [server.name for server in servers if server.runs]
    if len(alive) < max(2, len(servers)):
        raise ServerFailed(
            f"Only the {' and the '.join(alive)} still {'runs' if len(alive) == 1 else 'run'}; "
            "another server died, or was never started.",
            "Stop what runs with `make down`, then start all with `make up`.",
        )
    return servers


def _stop(servers: tuple[Detached, ...]) -> None:
    # who was started last may need the other one
    for server in reversed(servers):
        for ending in (signal.SIGTERM, signal.SIGKILL):
            if server.runs:
                os.kill(server.pid, ending)
                _wait_for_end(server)


def _wait_for_end(server: Detached) -> None:
    deadline = time.monotonic() + _STOP_S
    while server.runs and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)


def _remove(folder: Path) -> None:
    if (folder / _STATE).exists():
        shutil.rmtree(folder)
    elif folder.exists() and any(folder.iterdir()):
        raise FolderTaken(
            f"{folder} holds files that are not of our servers.", "Give another folder with --folder.", folder=folder
        )


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold off a second `up` or `down`."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        yield
