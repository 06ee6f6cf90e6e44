"""What every command needs: settings, lock, Spark session, and the stages tied together."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import tempfile
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

from demux.core.errors import SettingsInvalid, StorageFailed
from demux.core.extras import on_databricks
from demux.core.log_format import formatter_of
from demux.core.root.layout import Layout, layout_of, s3_access
from demux.core.root.lease import hold_of
from demux.core.root.lock import Access, Hold, is_elsewhere, locked
from demux.core.secrets import is_secret_option
from demux.core.settings.loading.loader import load, with_absolute_paths
from demux.core.settings.settings import Decoder, LogFormat, Settings
from demux.core.text import printable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from demux.pipeline.context import CommandContext

# what `signal.signal` takes and gives back
_Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None

# what it prints comes from outside: `[b]` and `:heart:` in a name are not for the terminal
console = Console(highlight=False, markup=False, emoji=False)

_warnings = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)

SETTINGS = typer.Option(None, "--settings", "-c", help="Settings file. Default: demux.yml, if there is one.")
ROOT = typer.Option(None, "--root", help="Folder or URI of all tables; overrides `root`.")
SET = typer.Option([], "--set", help="Override one setting: --set games.limit=5. May be repeated.", metavar="KEY=VALUE")
BY_SPARK = typer.Option(
    False, "--spark", help="Start Spark, for tables that nothing else reads: deletion vectors, column mapping."
)
DECODER = typer.Option(None, help="What decodes payloads; overrides `decoder`.")
WAIT = typer.Option(False, "--wait", help="Wait while another command works on this root, instead of refusing.")
# of commands that are made to run beside a `demux run --every`: they take turns with it
TAKE_TURNS = typer.Option(True, "--wait/--no-wait", help="Wait while another command works on this root, or refuse.")


def settings_of(
    file: Path | None,
    root: str | None,
    changes: list[str],
    decoder: Decoder | None = None,
    defaults: Mapping[str, object] | None = None,
) -> Settings:
    """Return the settings from defaults, file, environment and command line, in this order.

    With `defaults`, a command has others than the settings themselves, by dotted key.

    Raises:
        SettingsInvalid: mistakes in any of them, all at once.
    """
    overrides: dict[str, object] = {}
    for change in changes:
        key, separator, value = change.partition("=")
        if not separator:
            shown = _without_secret(change)
            raise SettingsInvalid(f"--set {shown!r} has no `=`.", "Write --set KEY=VALUE.", option=shown)
        overrides[key.strip()] = value
    if root is not None:
        overrides["root"] = root
    if decoder is not None:
        overrides["decoder"] = decoder.value
    return with_absolute_paths(load(file, os.environ, overrides, defaults))


def warn(sentence: str) -> None:
    """Print a sentence on standard error, so that JSON on standard output stays JSON."""
    _warnings.print(printable(sentence), style="yellow")


class AfterRemoval(Enum):
    """What a command does on a root whose tables or checkpoints are half removed."""

    REFUSE = "refuse"
    GO_ON = "go on"


class Pace:
    """Gives way, when called between two steps, each time that we had the root for so many seconds."""

    def __init__(self, place: CommandContext, after_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin to count."""
        self._place = place
        self._after_s = after_s
        self._clock = clock
        self._began = clock()

    def __call__(self) -> None:
        """Give way, if it is time; raises as `CommandContext.away`."""
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
        settings: all settings.
        command: its name, which other commands show.
        access: what the command does with the root.
        wait: wait for the lock.
        after_removal: what to do where a removal was interrupted.

    Raises:
        RootLocked, StorageFailed: as `demux.core.root.lock.locked`.
        RuntimeMissing: Spark is not installed or did not start.
        RemovalUnfinished: see `after_removal`.
    """
    # the tasks of a job share a root
    hold = None if on_databricks() else hold_of(layout_of(settings).storage, settings.root, command, access)
    with locked(settings.root, command, wait, access, hold) as hold:
        yield from _with_spark(settings, after_removal, hold)


@contextmanager
def session_to_look(
    settings: Settings, command: str, *, by_spark: bool = False, also: Iterable[str] = ()
) -> Iterator[SparkSession | None]:
    """Yield None, or a session where one is asked for or nothing else reaches the tables; takes no lock.

    Args:
        settings: all settings.
        command: its name, which other commands show.
        by_spark: whether a session is asked for.
        also: paths of further tables that the command reads.

    Raises:
        RemovalUnfinished: a removal of tables was interrupted.
    """
    from install_workflow.destroy.apply import require_whole

    layout = layout_of(settings)
    if by_spark or not all(map(layout.storage.reaches_tables, (settings.root, *also))):
        with command_context(settings, command, Access.LOOK) as place:
            yield place.spark
    else:
        require_whole(layout)
        yield None


def _with_spark(settings: Settings, after_removal: AfterRemoval, hold: Hold) -> Iterator[CommandContext]:
    # a command that only looks does without them
    from demux.core.spark.classic import is_classic
    from demux.core.streaming.progress_log import ProgressLog
    from demux.core.streaming.session import has_session, session, stop
    from demux.pipeline.context import place_of
    from install_workflow.destroy.apply import require_whole

    log_to(logs_of(settings), settings.log.format)
    if after_removal is AfterRemoval.REFUSE:
        # before a Spark is started for nothing: so a root that nothing reaches is told, too
        require_whole(layout_of(settings))
    shared = has_session()
    with console.status("starting Spark …"):
        spark = session(settings.spark, logs_of(settings), s3_access(settings))
    stopping = threading.Event()
    progress = ProgressLog()
    before = _catch_signals(stopping)
    try:
        if is_classic(spark):
            spark.streams.addListener(progress)
        yield replace(place_of(settings, spark, stopping, hold.tables), hold=hold, warn=warn)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if shared and is_classic(spark):
            spark.streams.removeListener(progress)
        else:
            stop(spark)


def logs_of(settings: Settings) -> Path:
    """Return the folder of log files: below a root on this machine, else beside us.

    On Databricks it is a temporary one of this process: many tasks share a driver, and may not write where they begin.
    """
    if not is_elsewhere(settings.root):
        return Path(Layout(settings.root).logs)
    if on_databricks():
        return Path(tempfile.gettempdir()) / f"demux-logs-{os.getpid()}"
    return Path("demux-logs")


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
    log = logging.getLogger("demux")
    log.handlers, log.propagate = handlers, False
    log.setLevel(logging.INFO)


def _catch_signals(stopping: threading.Event) -> Mapping[int, _Handler]:
    def on_signal(number: int, frame: FrameType | None) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()
        console.print("stopping: what is under way finishes; once more to stop at once", style="yellow")

    # python gives signals to the main thread alone, and a cluster may call us in another
    if threading.current_thread() is not threading.main_thread():
        return {}
    # after the session: PySpark sets a handler of its own that cancels every job
    return {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}


def _without_secret(change: str) -> str:
    key = re.split(r"[^\w.-]", change, maxsplit=1)[0]
    return key if is_secret_option(key) else change
