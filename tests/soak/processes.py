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

from tests.flow.process import DEMUX, ENVIRONMENT, PROJECT

_PATIENCE_S = 600


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
        logs: a folder with a file for each command's output.
        say: told of each thing that happens.
    """

    root: Path
    logs: Path
    say: Callable[[str], None]
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
                [DEMUX, *words, "--root", str(self.root)],
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
        """Return how a command ended; one that does not end at all is killed too."""
        began = time.monotonic()
        process, log = self.start(words)
        try:
            process.wait(_PATIENCE_S if kill_after_s is None else kill_after_s)
        except subprocess.TimeoutExpired:
            self.kill(process)
        self._alive.discard(process)
        return Ended(process.returncode, log.read_text("utf-8", "replace"), time.monotonic() - began)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a command and all that it started, as when the machine goes down."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def kill_all(self) -> None:
        """Kill what is still alive."""
        for process in tuple(self._alive):
            self.kill(process)
