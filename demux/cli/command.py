"""The context of every command: settings, lock, Spark session; one game after the other."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

from demux.core.error_mapping import as_demux_error
from demux.core.errors import DemuxError, ExitCode, SettingsInvalid, StorageFailed
from demux.core.extras import on_databricks
from demux.core.log_format import formatter_of
from demux.core.root.layout import layout_of, logs_of, require_root, s3_access
from demux.core.root.lock import Access, Hold, hold_of, hold_root
from demux.core.settings.settings import LogFormat, Settings
from demux.core.text import printable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from demux.pipeline.context import CommandContext, HeldRoot

# what `signal.signal` takes and gives back
_Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None

# of a file or a pipe: programs read it, and nothing in it is folded or cut
_NO_WIDTH = 1_000_000

# what it prints comes from outside: `[b]` and `:heart:` in a name are not for the terminal
console = Console(highlight=False, markup=False, emoji=False)
if not console.is_terminal:
    console.width = _NO_WIDTH

# ours, and those of the libraries that send traces and lineage
_LOGGERS = {"demux": logging.INFO, "opentelemetry": logging.WARNING, "openlineage": logging.WARNING}

_warnings = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


def warn(sentence: str) -> None:
    """Print a sentence on standard error, so that JSON on standard output stays JSON."""
    _warnings.print(printable(sentence), style="yellow")


def print_failure(sentence: str) -> None:
    """Print a failure among the results; on standard error, where results are not printed."""
    (_warnings if console.quiet else console).print(printable(sentence), style="red", soft_wrap=True)


class AfterRemoval(Enum):
    """The behaviour of a command on a root whose removal was interrupted."""

    REFUSE = "refuse"
    GO_ON = "go on"


class Pace:
    """Gives way, when called between two steps, each time that we had the root for so many seconds."""

    def __init__(self, place: HeldRoot, after_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin to count."""
        self._place = place
        self._after_s = after_s
        self._clock = clock
        self._began = clock()

    def __call__(self) -> None:
        """Give way, if it is time; raises as `HeldRoot.away`."""
        if self._clock() - self._began > self._after_s:
            self._place.give_way()
            self._began = self._clock()


@contextmanager
def command_context(
    settings: Settings,
    command: str,
    access: Access,
    *,
    wait: bool = False,
    after_removal: AfterRemoval = AfterRemoval.REFUSE,
) -> Iterator[CommandContext]:
    """Hold the lock and a Spark session while the block runs; a session that was there before stays after it.

    SIGINT and SIGTERM set `stop`: what is under way finishes. A second signal ends the process at once.

    Args:
        command: its name, which other commands show.

    Raises:
        RootLocked, StorageFailed: as `demux.core.root.lock.hold_root`.
        RuntimeMissing: Spark is not installed or did not start.
        RemovalUnfinished: see `after_removal`.
    """
    with hold_root(settings.root, command, wait, access, _hold(settings, command, access)) as hold:
        log_to(logs_of(settings.root), settings.log.format)
        yield from _with_spark(settings, after_removal, hold, threading.Event())


@contextmanager
def held_root(settings: Settings, command: str, access: Access, *, wait: bool = False) -> Iterator[HeldRoot]:
    """Hold the lock while the block runs, without a session; signals and `Raises` as `command_context`."""
    from demux.pipeline.context import root_of
    from install_workflow.destroy.apply import require_whole

    with hold_root(settings.root, command, wait, access, _hold(settings, command, access)) as hold:
        log_to(logs_of(settings.root), settings.log.format)
        stopping = threading.Event()
        with _signals_caught(stopping):
            require_whole(layout_of(settings))
            yield root_of(settings, None, stopping, hold)


@contextmanager
def session_beside(root: HeldRoot) -> Iterator[CommandContext]:
    """Start a session for a root that is held, or take the one that is there, while the block runs."""
    assert root.hold is not None
    yield from _with_spark(root.settings, AfterRemoval.REFUSE, root.hold, root.stop)


def _hold(settings: Settings, command: str, access: Access) -> Hold | None:
    # the tasks of a job share a root
    return None if on_databricks() else hold_of(layout_of(settings).storage, settings.root, command, access)


@contextmanager
def session_to_look(
    settings: Settings, command: str, *, by_spark: bool = False, also: Iterable[str] = (), may_be_new: bool = False
) -> Iterator[SparkSession | None]:
    """Yield None, or a session where one is asked for or nothing else reaches the tables; takes no lock.

    Args:
        command: its name, which other commands show.
        by_spark: whether a session is asked for.
        also: paths of further tables that the command reads.
        may_be_new: whether the root may not be there yet.

    Raises:
        SettingsInvalid, StorageFailed: as `require_root`.
        RemovalUnfinished: a removal of tables was interrupted.
    """
    from install_workflow.destroy.apply import require_whole

    layout = layout_of(settings)
    require_root(layout, may_be_new=may_be_new)
    if by_spark or not all(map(layout.storage.reaches_tables, (settings.root, *also))):
        with command_context(settings, command, Access.LOOK) as place:
            yield place.spark
    else:
        require_whole(layout)
        yield None


def _with_spark(
    settings: Settings, after_removal: AfterRemoval, hold: Hold, stopping: threading.Event
) -> Iterator[CommandContext]:
    # a command that only looks does without them
    from demux.core.spark.classic import is_classic
    from demux.core.streaming.session import has_session, session, stop
    from demux.pipeline.context import place_of
    from install_workflow.destroy.apply import require_whole

    if after_removal is AfterRemoval.REFUSE:
        # before a Spark is started for nothing; a root that nothing reaches is refused here, too
        require_whole(layout_of(settings))
    shared = has_session()
    with console.status("starting Spark …"):
        spark = session(settings.spark, logs_of(settings.root), s3_access(settings))
    # after the session: PySpark sets a handler of its own that cancels every job
    with _signals_caught(stopping):
        try:
            yield replace(place_of(settings, spark, stopping, hold.tables), hold=hold, warn=warn)
        finally:
            if not (shared and is_classic(spark)):
                stop(spark)


def log_to(folder: Path, log_format: LogFormat = LogFormat.TEXT) -> None:
    """Send our own log records to `demux.log`; the terminal is for people, but a job's output outlives its cluster."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handler: logging.Handler = logging.FileHandler(folder / "demux.log", encoding="utf-8")
    except OSError as error:
        raise StorageFailed(
            f"The log folder {folder} cannot be written: {error.strerror or error}.",
            "Free space, grant write permission, or name another folder with --root; nothing is lost.",
            path=str(folder),
        ) from error
    handlers = [handler, logging.StreamHandler(sys.stderr)] if on_databricks() else [handler]
    for each in handlers:
        each.setFormatter(formatter_of(as_json=log_format is LogFormat.JSON))
    for name, level in _LOGGERS.items():
        log = logging.getLogger(name)
        log.handlers, log.propagate = handlers, False
        log.setLevel(level)


@contextmanager
def _signals_caught(stopping: threading.Event) -> Iterator[None]:
    def on_signal(number: int, frame: FrameType | None) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()
        console.print("stopping: what is under way finishes; once more to stop at once", style="yellow")

    # python gives signals to the main thread alone, and a cluster may call us in another
    is_main = threading.current_thread() is threading.main_thread()
    caught = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    before: Mapping[int, _Handler] = {number: signal.signal(number, on_signal) for number in caught}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ask_to_remove(yes: bool) -> None:
    """Ask, unless the answer was given before; end the command unless it is yes.

    Raises:
        SettingsInvalid: there is no terminal to ask on.
    """
    if yes:
        return
    if not can_ask():
        raise SettingsInvalid(
            "There is no terminal to ask on, and --yes is not given.", "Give --yes; nothing was removed."
        )
    ask("Remove all this?")


def can_ask() -> bool:
    """Return whether there is a terminal to ask on."""
    # a task on a cluster may have no standard input at all
    return sys.stdin is not None and sys.stdin.isatty()


def ask(question: str, *, err: bool = False) -> None:
    """Ask, and end the command unless the answer is yes; with `err` on standard error, where the output is JSON."""
    if not typer.confirm(question, err=err):
        console.print("nothing was changed")
        raise typer.Exit(ExitCode.INTERRUPTED)


def each_game(place: CommandContext, games: Iterable[str], doing: str, act: Callable[[str], str]) -> None:
    """Act on each game and print how it ended; when all are through, raise why the first one failed, if one did.

    Between two games other commands may have the root. Once the place's `stop` is set, no other game begins.

    Args:
        doing: what is done, such as `decoding`.
        act: does it to one game and returns how it ended, in words.
    """
    failed: list[DemuxError] = []
    for number, game in enumerate(games):
        if number:
            place.give_way()
        if place.stop.is_set():
            raise typer.Exit(ExitCode.INTERRUPTED)
        try:
            with console.status(Text(f"{doing} {printable(game)} …")):
                ended = act(game)
        except Exception as error:  # one game's failure must not stop its neighbours
            failed.append(as_demux_error(error))
            print_failure(f"{game}: {failed[-1]}")
            continue
        console.print(f"{printable(game)}: {ended}")
    if failed:
        raise failed[0]
