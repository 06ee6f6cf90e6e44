"""Runs a plan's tasks in drivers, a process for each cluster, some at a time; one that dies is started again."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from demux.errors import DemuxError, DriverDied, Kind
from demux.reports import GameReport
from demux.settings import Settings
from install_workflow.drivers import (
    Begun,
    Broken,
    Hello,
    Message,
    Over,
    Ready,
    Rest,
    Stop,
    Work,
    by_cluster,
    from_line,
    to_line,
)
from install_workflow.engine import Ended
from install_workflow.plan import Task

OnEnd = Callable[[Ended[GameReport]], None]

# between two looks at whether to stop
_LOOK_S = 0.2
# after SIGKILL nothing lives on for long; where nobody buries the dead they stay to be seen
_GONE_S = 10.0


@dataclass(frozen=True, slots=True)
class Start:
    """How a driver is started.

    Attributes:
        words: the command line; it says nothing of games or settings, as those may be many, and hostile.
        environ: the environment.
        logs: below it, each driver has a folder for its log files, by its cluster's name.
    """

    words: tuple[str, ...]
    environ: Mapping[str, str]
    logs: Path


def run_in_drivers(
    tasks: Iterable[Task],
    settings: Settings,
    start: Start,
    stop: threading.Event,
    on_end: OnEnd = lambda _: None,
    on_broken: Callable[[DemuxError], None] = lambda _: None,
) -> tuple[Ended[GameReport], ...]:
    """Return how each task ended, by game name; a task that was not begun when `stop` was set is left out.

    Each cluster's tasks are done by a driver of its own, at most `run.drivers` at a time. One that dies is started
    again for the games without a report; a game that was under way in more than `run.retries` deaths has failed with
    `DriverDied`. What a driver says that cannot work is the failure of all its games, at once where another driver
    would say the same. When this process dies, its drivers end at once. An exception in the calling thread ends them
    too.

    Args:
        tasks: what to run.
        settings: all settings.
        start: how a driver is started.
        stop: once set, tasks under way finish and no other begins.
        on_end: told of each end, in the calling thread, in order of time.
        on_broken: told at the end, for each cluster, why no driver could work and none will, if that is so.
    """
    ended: list[Ended[GameReport]] = []
    ends: queue.SimpleQueue[Ended[GameReport]] = queue.SimpleQueue()
    alive = _Alive()
    drivers = [
        _Driver(cluster, games, settings, start, stop, alive, ends.put, Rest(frozenset(games)))
        for cluster, games in by_cluster(tasks).items()
    ]
    with ThreadPoolExecutor(max_workers=settings.run.drivers, thread_name_prefix="driver") as pool:
        futures: list[Future[None]] = [pool.submit(driver.run) for driver in drivers]
        try:
            while not (all(future.done() for future in futures) and ends.empty()):
                with suppress(queue.Empty):
                    ended.append(ends.get(timeout=_LOOK_S))
                    on_end(ended[-1])
                if stop.is_set():
                    alive.tell(Stop())
        except BaseException:
            stop.set()
            alive.kill()
            raise
    for future in futures:
        future.result()
    for driver in drivers:
        if driver.verdict is not None:
            on_broken(driver.verdict)
    return tuple(sorted(ended, key=lambda result: result.task.game))


class _Alive:
    """The drivers that run now; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[subprocess.Popen[bytes], set[Message]] = {}
        self._killed = False

    @contextmanager
    def started(self, begin: Callable[[], subprocess.Popen[bytes]]) -> Iterator[subprocess.Popen[bytes]]:
        """Start a driver; when the block ends, it and all that it started are dead."""
        with self._lock:
            process = begin()
            self._told[process] = set()
            if self._killed:
                _kill(process)
        try:
            yield process
        finally:
            with self._lock:
                del self._told[process]
            _bury(process)

    def send(self, process: subprocess.Popen[bytes], message: Message) -> None:
        """Say something to a driver; one that is dead does not hear it."""
        assert process.stdin is not None
        with self._lock, suppress(OSError, ValueError):
            process.stdin.write(to_line(message))
            process.stdin.flush()

    def tell(self, message: Stop) -> None:
        """Say something to every driver, once."""
        with self._lock:
            new = [process for process, told in self._told.items() if message not in told]
            for process in new:
                self._told[process].add(message)
        for process in new:
            self.send(process, message)

    def kill(self) -> None:
        """Kill every driver, and those that are about to start."""
        with self._lock:
            self._killed = True
            for process in self._told:
                _kill(process)


@dataclass(slots=True)
class _Driver:
    """Sees the games of one cluster through, by as many processes as it takes.

    Attributes:
        why: how the last process ended.
        broken: what the last process said that cannot work.
        verdict: the same, once it is known that no other process could.
    """

    cluster: str
    tasks: Mapping[str, Task]
    settings: Settings
    start: Start
    stop: threading.Event
    alive: _Alive
    put: OnEnd
    rest: Rest
    why: str = ""
    broken: DemuxError | None = None
    verdict: DemuxError | None = None

    def run(self) -> None:
        began, deaths = time.monotonic(), 0
        while self.rest.games and not self.stop.is_set():
            under_way = self._one_process()
            if not self.rest.games or self.stop.is_set():
                return
            deaths += 1
            lost = self._given_up(under_way)
            for game in sorted(lost):
                self.put(Ended(self.tasks[game], None, self.broken or self._died(deaths), time.monotonic() - began))
            if self.rest.games:
                self.stop.wait(self.rest.wait_s(self.settings.run.retry_wait_s))

    def _given_up(self, under_way: frozenset[str]) -> frozenset[str]:
        """Return the games that are not tried again after a death; the rest is what is left."""
        if self.broken is not None and self.broken.kind is Kind.TERMINAL:
            # another driver would say the same
            self.verdict, lost = self.broken, self.rest.games
            self.rest = replace(self.rest, games=frozenset())
            return lost
        self.rest, lost = self.rest.after_death(under_way, self.settings.run.retries)
        return lost

    def _one_process(self) -> frozenset[str]:
        """Return the games that were under way when the process ended; what it reported is taken down."""
        under_way: set[str] = set()
        self.why, self.broken = "", None
        try:
            with self.alive.started(self._begin) as process:
                self._follow(process, under_way)
        except OSError as error:
            self.why = f"it could not be started: {error.strerror or error}"
        except (KeyError, TypeError, ValueError) as error:
            # the code was exchanged under way
            self.why = f"it said what cannot be read: {error}"
        else:
            self.why = _how(process.returncode)
        return frozenset(under_way)

    def _follow(self, process: subprocess.Popen[bytes], under_way: set[str]) -> None:
        """Take down what the process says, until its end.

        Args:
            process: the driver.
            under_way: the games that it has begun and not ended; kept up to date.
        """
        self.alive.send(process, Hello(self.settings.root, self.cluster, str(self._logs)))
        assert process.stdout is not None
        for line in _lines(process.stdout):
            match from_line(line):
                case Ready():
                    self.alive.send(process, self._work())
                case Begun(game):
                    under_way.add(game)
                case Over(game) as over:
                    under_way.discard(game)
                    self.rest = self.rest.without(game)
                    self.put(over.ended(self.tasks[game]))
                case Broken(error):
                    self.broken = error

    def _begin(self) -> subprocess.Popen[bytes]:
        self._logs.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            # a session of its own: Ctrl-C is for us, we tell the drivers
            return subprocess.Popen(
                self.start.words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=dict(self.start.environ),
                start_new_session=True,
            )

    def _work(self) -> Work:
        return Work(self.settings.model_dump(mode="json"), self.rest.together, self.rest.alone)

    def _died(self, deaths: int) -> DriverDied:
        times = "once" if deaths == 1 else f"{deaths} times"
        none = ", and none of its games came to an end" if self.rest.fruitless and len(self.tasks) > 1 else ""
        return DriverDied(
            f"The driver of {self.cluster} died {times} before the game's end{none}; the last time {self.why}.",
            f"See {self._log} and the files beside it. One that runs out of memory needs more in spark.driver_memory, "
            "or fewer at a time: run.drivers, run.parallelism.",
            cluster=self.cluster,
        )

    @property
    def _logs(self) -> Path:
        return self.start.logs / self.cluster

    @property
    def _log(self) -> Path:
        return self._logs / "driver.log"


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    # the last line of one that was killed may be half a line
    return (line for line in stream if line.endswith(b"\n"))


def _how(code: int) -> str:
    if code >= 0:
        return f"it ended by itself with exit code {code}"
    name = signal.Signals(-code).name if -code in {each.value for each in signal.Signals} else f"signal {-code}"
    return f"it was killed by {name}"


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the driver and all that it started; it is the first of its process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _bury(process: subprocess.Popen[bytes]) -> None:
    """Return when neither the driver nor its JVM is there: only then may another one write the same tables."""
    # before it is waited for, so that nobody else can have its number
    _kill(process)
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    process.wait()
    deadline = time.monotonic() + _GONE_S
    with suppress(ProcessLookupError, PermissionError):
        while time.monotonic() < deadline:
            os.killpg(process.pid, 0)
            time.sleep(0.02)
