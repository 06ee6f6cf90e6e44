"""Which installers of this machine are alive: each holds a lock of the operating system, which ends with it."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

# longer than another process needs to find out that the file is locked
_LOOK_S = 1.0
# what a claim says comes from a file that others can write
_PROCESS = re.compile(r"[0-9A-Za-z-]{1,100}")


class InstallerPresence(Protocol):
    """What can be known of other installers without asking the workspace."""

    def hold(self, process: str) -> None:
        """Show from now on that this process, ours, is at work; a second call changes nothing."""
        ...

    def leave(self, process: str) -> None:
        """Show no longer that this process, ours, is at work."""
        ...

    def is_dead(self, process: str) -> bool:
        """Return whether the process was at work on this machine and has ended; False where that is not known."""
        ...


class NothingKnown:
    """Knows of no process."""

    def hold(self, process: str) -> None:
        """Do nothing."""

    def leave(self, process: str) -> None:
        """Do nothing."""

    def is_dead(self, process: str) -> bool:
        """Return False."""
        return False


class LocalPresence:
    """A locked file for each process, in a folder of the user on this machine.

    Where no such file can be made or locked, nothing is known, and others wait for the claim's end.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, FileLock] = {}

    def hold(self, process: str) -> None:
        """Lock a file of this name until `leave`, or until the process ends."""
        lock = self._held.setdefault(process, FileLock(self._path(process)))
        with suppress(OSError, Timeout, NotImplementedError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not lock.is_locked:
                lock.acquire(timeout=_LOOK_S)

    def leave(self, process: str) -> None:
        """Remove the file; safe to call twice."""
        lock = self._held.pop(process, None)
        if lock is not None:
            with suppress(OSError):
                self._path(process).unlink(missing_ok=True)
            lock.release()

    def is_dead(self, process: str) -> bool:
        """Return whether there is a file of this name that no process locks."""
        if not _PROCESS.fullmatch(process) or not self._path(process).is_file():
            return False
        try:
            with FileLock(self._path(process)).acquire(timeout=0):
                return True
        except (OSError, Timeout, NotImplementedError):
            return False

    def _path(self, process: str) -> Path:
        return self._folder / f"{process}.lock"
