"""One command at a time on a root; and one driver of it at a time on a table that several write."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from urllib.parse import unquote, urlsplit

from filelock import FileLock, Timeout

from demux.errors import RootLocked, StorageFailed

# holds the lock of the table at a path while a block runs
TableLock = Callable[[str], AbstractContextManager[object]]

_FOREVER = -1.0
# drivers notice at once that their command is dead; this is only for a machine that is very busy
_DRIVERS_END_S = 30.0


def is_elsewhere(root: str) -> bool:
    """Return whether the root is not on this machine: a URI, or a volume of a workspace, which looks like a folder."""
    # a Mac has its disks there
    volume = re.match(r"/Volumes/", root) is not None and platform.system() != "Darwin"
    return "://" in root or volume


@contextmanager
def locked(root: str, command: str, wait: bool) -> Iterator[None]:
    """Hold the root's lock while the block runs; the operating system frees it when the process dies.

    A root that is elsewhere has no lock: clusters would not see each other's. There the scheduler must keep runs apart,
    as a job does with `max_concurrent_runs` 1; tasks of different games may work side by side, as Delta's commits to a
    store are safe between processes. On a disk of this machine they are not.

    Args:
        root: the root's path.
        command: what the holder is called in the sentence that a second command prints.
        wait: wait for the other command to end instead of refusing.

    Raises:
        RootLocked: another command holds the lock, or a driver of one that was killed does not end.
        StorageFailed: the root cannot be made or written.
    """
    if is_elsewhere(root):
        yield
        return
    path = Path(root)
    holder = path / ".demux.holder"
    lock = FileLock(path / ".demux.lock")
    try:
        with _said_of(root, lambda: f"{_read(holder)} is at work on {root}."):
            path.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=_FOREVER if wait else 0)
        with _said_of(root, lambda: f"{_read(holder)} is gone, and a driver that it started still works on {root}."):
            _await_drivers(path, wait)
            holder.write_text(f"`demux {command}` (process {os.getpid()})", encoding="utf-8")
        yield
    finally:
        lock.release()


@contextmanager
def driver_locked(root: str, cluster: str) -> Iterator[None]:
    """Hold the lock of a cluster's driver while the block runs: the next command waits for it, should ours be killed.

    Must be taken before the driver is told its work, by a command that holds the root's lock.

    Raises:
        RootLocked: another driver of the cluster does not end.
        StorageFailed: the lock's file cannot be made.
    """
    if is_elsewhere(root):
        yield
        return
    lock = FileLock(Path(root) / f".demux.driver.{cluster}.lock")
    try:
        with _said_of(root, lambda: f"Another driver of {cluster} is at work on {root}."):
            lock.acquire(timeout=_DRIVERS_END_S)
        yield
    finally:
        lock.release()


def unlocked(table: str) -> AbstractContextManager[object]:
    """Return what holds nothing: no other process writes the table."""
    return nullcontext()


def table_lock(root: str) -> TableLock:
    """Return what keeps drivers apart that write the same table below the root, by a file of the operating system.

    On a disk, Delta commits are safe between threads of a process, not between processes. On a root that is elsewhere
    nothing is held: there the store sees to it (`spark.delta.logStore`).
    """
    folder = _folder_here(root)
    if folder is None:
        return unlocked

    def of(table: str) -> AbstractContextManager[object]:
        name = table.removeprefix(root).strip("/").replace("/", ".")
        return FileLock(folder / f".demux.table.{name}.lock")

    return of


@contextmanager
def _said_of(root: str, busy: Callable[[], str]) -> Iterator[None]:
    """Say why the root could not be locked; `busy` gives the sentence where somebody else holds the lock."""
    try:
        yield
    except Timeout as error:
        raise RootLocked(busy(), "Wait for it to end, or give --wait to do so automatically.", root=root) from error
    except OSError as error:
        raise StorageFailed(
            f"The root {root} cannot be written: {error.strerror or error}.",
            "Free space, grant write permission, or name another folder with --root; nothing is lost.",
            root=root,
        ) from error


def _folder_here(root: str) -> Path | None:
    """Return the root's folder if a disk of this machine has it, written as a path or as a file URI."""
    parts = urlsplit(root)
    if parts.scheme == "file" and parts.netloc in {"", "localhost"}:
        return Path(unquote(parts.path))
    return None if is_elsewhere(root) else Path(root)


def _await_drivers(path: Path, wait: bool) -> None:
    """Return when no driver of a command that was killed is left; raises `Timeout`."""
    for file in path.glob(".demux.driver.*.lock"):
        with FileLock(file).acquire(timeout=_FOREVER if wait else _DRIVERS_END_S):
            pass


def _read(holder: Path) -> str:
    try:
        return holder.read_text(encoding="utf-8")
    except OSError:
        return "Another command"
