"""A driver of `demux run --drivers`: decodes the games of one cluster in a session of its own, told by the command.

`python -m demux.cli.driver`, started by `install_workflow.driver_process`; what is said is in
`install_workflow.drivers`. Ends at once when the command does, however that ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from demux.cli.fleet import engine_of
from demux.cli.take_all import taking_all
from demux.cli.workplace import Workplace, log_to, place_of
from demux.errors import DemuxError, DriverDied, TaskFailed
from demux.failures import named
from demux.lock import driver_locked, table_lock
from demux.names import names_of
from demux.reports import GameReport
from demux.roots import s3_access
from demux.settings import Settings
from demux.spark import answers, session, stop
from install_workflow.drivers import Begun, Broken, Hello, Message, Over, Ready, Stop, Work, from_line, to_line
from install_workflow.engine import Ended, run_tasks
from install_workflow.plan import Task
from install_workflow.run import RunTasks

WORDS = (sys.executable, "-m", "demux.cli.driver")
# set for what runs below spark-submit: a driver has a JVM of its own
_NOT_INHERITED = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")

Tell = Callable[[Message], None]


def environ_for_drivers() -> dict[str, str]:
    """Return this process's environment as its drivers get it."""
    return {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}


def main() -> None:
    """Do the work of one driver."""
    tell = _standard_output()
    hello = _next()
    if not isinstance(hello, Hello):
        return
    try:
        with driver_locked(hello.root, hello.cluster):
            tell(Ready())
            # our command was alive after we had the lock: the next one sees it
            work = _next()
            if isinstance(work, Work):
                _work(hello, work, tell)
    except Exception as error:
        tell(Broken(why_not(error, hello)))


def why_not(error: Exception, hello: Hello) -> DemuxError:
    """Return why the driver cannot work; transient where another driver may."""
    told = named(error)
    if not isinstance(told, TaskFailed):
        return told
    # nobody knows what it is, a JVM that died maybe: another driver is worth a try
    return DriverDied(
        f"The driver of {hello.cluster} could not work: {told.cause}", f"See the log files in {hello.logs}."
    )


def _work(hello: Hello, work: Work, tell: Tell) -> None:
    stopping = threading.Event()
    threading.Thread(target=_listen, args=(stopping,), daemon=True).start()
    settings = Settings.model_validate(dict(work.settings))
    log_to(Path(hello.logs))
    spark = session(settings.spark, Path(hello.logs), s3_access(settings))
    # a second signal is the command's to act on; PySpark has set a handler of its own
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    try:
        place = place_of(settings, spark, stopping, table_lock(settings.root))
        together, alone = (
            tuple(Task(game, names_of(game).task_key, hello.cluster) for game in games)
            for games in (work.together, work.alone)
        )
        fleet = engine_of(place, settings.round_engine)
        if fleet is None:
            _streams(place, together, alone, tell)
        else:
            _fleet(place, taking_all(fleet, stopping), (together, *((task,) for task in alone)), tell)
    finally:
        stop(spark)


def _streams(place: Workplace, together: tuple[Task, ...], alone: tuple[Task, ...], tell: Tell) -> None:
    run = place.settings.run
    for tasks, how in ((together, run), (alone, run.model_copy(update={"parallelism": 1}))):
        run_tasks(place.spark, tasks, _telling(place, tell), how, place.stop, on_end=lambda end: _tell_end(end, tell))


def _fleet(place: Workplace, decode: RunTasks, groups: Iterable[tuple[Task, ...]], tell: Tell) -> None:
    """Decode one group of games after the other, each together; where the JVM is gone, without a report."""

    def on_end(end: Ended[GameReport]) -> None:
        if end.error is not None and not answers(place.spark):
            _end_at_once()
        _tell_end(end, tell)

    for tasks in groups:
        if place.stop.is_set():
            return
        for task in tasks:
            tell(Begun(task.game))
        decode(tasks, on_end)


def _telling(place: Workplace, tell: Tell) -> Callable[[Task], GameReport]:
    """Return what decodes a task's game; where the JVM is gone, the process ends without a report."""

    def work(task: Task) -> GameReport:
        tell(Begun(task.game))
        try:
            return place.deserialize(task.game)
        except Exception:
            if not answers(place.spark):
                _end_at_once()
            raise

    return work


def _tell_end(end: Ended[GameReport], tell: Tell) -> None:
    tell(Over(end.task.game, end.report, end.error, end.seconds))


def _next() -> Message | None:
    """Return the command's next message; None when the command is gone."""
    line = bytearray()
    # not by a buffered reader: the process could not end while a thread waits in one
    while not line.endswith(b"\n"):
        found = os.read(0, 1)
        if not found:
            return None
        line += found
    return from_line(bytes(line))


def _listen(stopping: threading.Event) -> None:
    for message in iter(_next, None):
        if isinstance(message, Stop):
            stopping.set()
    _end_at_once()


def _end_at_once() -> None:
    """Kill this process, its JVM, and all that they started; what was begun, the next run finishes."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _standard_output() -> Tell:
    """Return what sends a message to the command; all else that is printed goes where errors go."""
    told = os.dup(1)
    os.dup2(2, 1)
    lock = threading.Lock()

    def tell(message: Message) -> None:
        # a command that is gone is noticed elsewhere
        with lock, suppress(BrokenPipeError):
            _write_all(told, to_line(message))

    return tell


def _write_all(file: int, content: bytes) -> None:
    while content:
        content = content[os.write(file, content) :]


if __name__ == "__main__":
    main()
