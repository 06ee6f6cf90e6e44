"""Commands as processes of their own, killed with all that they started where that is wanted."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.flow.process import DEMUX, ENVIRONMENT, PROJECT

_PATIENCE_S = 600
_STOP_S = 180
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit code (negative: by this signal), what it printed, how long it took."""

    code: int
    text: str
    seconds: float


@dataclass
class Processes:
    """Starts commands on one root, and knows those that are alive.

    Attributes:
        root: the root's folder.
        options: what every command is given: its root and settings.
        logs: a folder with a file for each command's output.
    """

    root: Path
    options: Sequence[str]
    logs: Path
    _started: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _alive: set[subprocess.Popen[bytes]] = field(default_factory=set)

    def start(self, words: Sequence[str]) -> tuple[subprocess.Popen[bytes], Path]:
        """Start a command in a process group of its own; returns it with the file of its output."""
        with self._lock:
            self._started += 1
            log = self.logs / f"{self._started:03}-{words[0]}.txt"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [DEMUX, *words, *self.options],
                cwd=PROJECT,
                env=ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._alive.add(process)
        return process, log

    def run(self, words: Sequence[str], kill_after_s: float | None = None) -> Ended:
        """Return how a command ended; killed so long after it was at work, or where it does not end at all."""
        began = time.monotonic()
        process, log = self.start(words)
        try:
            if kill_after_s is not None:
                self._await_work(process)
            process.wait(_PATIENCE_S if kill_after_s is None else kill_after_s)
        except subprocess.TimeoutExpired:
            self.kill(process)
        self._alive.discard(process)
        return Ended(process.returncode, log.read_text("utf-8", "replace"), time.monotonic() - began)

    def _await_work(self, process: subprocess.Popen[bytes]) -> None:
        """Return when the command has the root, or has ended."""
        deadline = time.monotonic() + _PATIENCE_S
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(OSError):
                if f"(process {process.pid})" in (self.root / ".demux.step.holder").read_text("utf-8"):
                    return
            time.sleep(_LOOK_S)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a command and all that it started, as when the machine goes down."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._alive.discard(process)

    def kill_all(self) -> None:
        """Kill what is still alive."""
        for process in tuple(self._alive):
            self.kill(process)


class LiveRun:
    """A `demux run --every` that is always there: killed now and then, it is started again."""

    def __init__(self, processes: Processes, words: Sequence[str], report: Callable[[str], None]) -> None:
        """Start it; `report` is told when it ends by itself."""
        self._processes = processes
        self._words = words
        self._report = report
        self._lock = threading.Lock()
        self._process, self._log = processes.start(words)

    def kill(self) -> None:
        """Kill it, and start it again."""
        with self._lock:
            self._processes.kill(self._process)
            self._process, self._log = self._processes.start(self._words)

    def require(self) -> None:
        """Start it again where it has ended by itself, which it must not."""
        with self._lock:
            if self._process.poll() is not None:
                self._report(f"the run ended with {self._process.returncode}: {tail(self._text())}")
                self._process, self._log = self._processes.start(self._words)

    def stop(self) -> Ended:
        """Return how it ended when it was asked to, by SIGTERM; killed where it does not end."""
        began = time.monotonic()
        with self._lock, suppress(subprocess.TimeoutExpired):
            self._process.terminate()
            self._process.wait(_STOP_S)
        self._processes.kill(self._process)
        return Ended(self._process.returncode, self._text(), time.monotonic() - began)

    def _text(self) -> str:
        return self._log.read_text("utf-8", "replace")


def tail(text: str, lines: int = 12) -> str:
    """Return the last lines of what a command printed."""
    return "\n".join(text.rstrip().splitlines()[-lines:])
