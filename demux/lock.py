"""One command at a time on a root."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from demux.errors import RootLocked, StorageFailed

_FOREVER = -1.0


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
        RootLocked: another command holds the lock.
        StorageFailed: the root cannot be made or written.
    """
    if is_elsewhere(root):
        yield
        return
    path = Path(root)
    holder = path / ".demux.holder"
    lock = FileLock(path / ".demux.lock")
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=_FOREVER if wait else 0)
        holder.write_text(f"`demux {command}` (process {os.getpid()})", encoding="utf-8")
    except Timeout as error:
        raise RootLocked(
            f"{_read(holder)} is at work on {root}.",
            "Wait for it to end, or give --wait to do so automatically.",
            root=root,
        ) from error
    except OSError as error:
        lock.release()
        raise StorageFailed(
            f"The root {root} cannot be written: {error.strerror or error}.",
            "Free space, grant write permission, or name another folder with --root; nothing is lost.",
            root=root,
        ) from error
    try:
        yield
    finally:
        lock.release()


def _read(holder: Path) -> str:
    try:
        return holder.read_text(encoding="utf-8")
    except OSError:
        return "Another command"
