"""A server's process: started, waited for, stopped; dead when its starter is, if so wished."""

from __future__ import annotations

import os
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import ClassVar

from typing_extensions import Self

from tools.servers.errors import ServerFailed, last_lines
from tools.servers.ports import must_be_free

_STOP_S = 30.0
_PAUSE_S = 0.05
# its input ends when the starter does, however that dies
_WATCH = 'read -r _; kill -9 "$1"'


class Life(Enum):
    """How long a server lives that nobody stops."""

    WITH_STARTER = "with starter"
    DETACHED = "detached"


@dataclass(frozen=True, slots=True)
class Launch:
    """How a server is started.

    Attributes:
        log: where its output goes, after what is there.
        environment: additions to this process's environment.
        ports: where it listens on 127.0.0.1.
        life: what happens to it when this process ends.
    """

    name: str
    words: Sequence[str]
    folder: Path
    log: Path
    environment: Mapping[str, str]
    ports: Sequence[int]
    life: Life


class ServerProcess:
    """A server that was started here; `stop` and `kill` may be called at any time, and again."""

    def __init__(self, launch: Launch) -> None:
        """Start it, in a session of its own: what is typed in a terminal does not reach it.

        Raises:
            PortTaken: another process listens on one of its ports, and would answer in its place.
        """
        self._launch = launch
        for port in launch.ports:
            must_be_free(port, launch.name)
        with launch.log.open("ab") as log:
            self._server = subprocess.Popen(
                launch.words,
                cwd=launch.folder,
                env={**os.environ, **launch.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._watch = _watch(self._server.pid) if launch.life is Life.WITH_STARTER else None

    @property
    def pid(self) -> int:
        """The process id."""
        return self._server.pid

    def wait_until(self, answers: Callable[[], bool], timeout_s: float) -> None:
        """Return as soon as the server answers; a server that does not is killed.

        Raises:
            ServerFailed: it ended, or gave no answer in time; with the end of its log.
        """
        deadline = time.monotonic() + timeout_s
        while not answers():
            code = self._server.poll()
            if code is not None or time.monotonic() > deadline:
                self.kill()
                why = f"gave no answer in {timeout_s:.0f} s" if code is None else f"ended with code {code}"
                raise ServerFailed(
                    f"The {self._launch.name} {why}; its log ends with:\n{last_lines(self._launch.log)}",
                    f"The whole log is {self._launch.log}.",
                    server=self._launch.name,
                )
            time.sleep(_PAUSE_S)

    def stop(self) -> None:
        """Ask it to end, and wait; after 30 s it is killed."""
        self._server.terminate()
        try:
            self._server.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._server.kill()
        self._reap()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._server.kill()
        self._reap()

    def _reap(self) -> None:
        self._server.wait()
        if self._watch is not None:
            self._watch.kill()
            self._watch.communicate()


class Server(ABC):
    """A server that answers.

    Attributes:
        start_s: how long it may take to answer.
    """

    start_s: ClassVar[float]

    def __init__(self, launch: Launch) -> None:
        """Start it, and return when it answers.

        Raises:
            PortTaken: another process listens on one of its ports.
            ServerFailed: it did not start; with the end of its log.
        """
        self._launch = launch
        self.log = launch.log
        self._process = self._started()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def stop(self) -> None:
        """Let it end."""
        self._process.stop()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._process.kill()

    def restart(self) -> None:
        """Stop it if it still runs, and start it on the same ports and files; returns when it answers."""
        self._process.stop()
        self._process = self._started()

    def __enter__(self) -> Self:
        """The server itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it."""
        self._process.stop()

    @abstractmethod
    def _probe(self) -> Callable[[], bool]:
        """Return a check whether the server answers; asked for once at each start."""

    def _started(self) -> ServerProcess:
        process = ServerProcess(self._launch)
        process.wait_until(self._probe(), self.start_s)
        return process


def started_at(pid: int) -> str | None:
    """Return when the process began, in the operating system's own words; None when there is none, or it has ended.

    A process id is given again one day; together with this it means one process only.
    """
    stat = Path(f"/proc/{pid}/stat")
    if not stat.parent.parent.joinpath("self").exists():
        shown = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
        return shown.stdout.strip() or None
    try:
        fields = stat_fields(stat)
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def cpu_s(pid: int) -> float:
    """Return how long a process has computed, in seconds; on Linux."""
    fields = stat_fields(Path(f"/proc/{pid}/stat"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stat_fields(stat: Path) -> list[str]:
    """Return what /proc/PID/stat says after the name; raises OSError where the process has ended."""
    # proc(5): what follows the name, which may hold blanks and brackets, begins with field 3, the state; utime and
    # stime are fields 14 and 15, starttime is field 22
    return stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()


def _watch(pid: int) -> subprocess.Popen[bytes]:
    """A process that kills the server as soon as this one is gone."""
    return subprocess.Popen(["sh", "-c", _WATCH, "watch", str(pid)], stdin=subprocess.PIPE, start_new_session=True)
