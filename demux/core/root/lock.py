"""One command at a time on a root, which may let others in between its steps; and one writer at a time on a table.

On this machine by files that the operating system locks, in a store by leases (`LeasedHold`).
"""

from __future__ import annotations

import os
import platform
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from enum import Enum
from pathlib import Path
from urllib.parse import unquote, urlsplit

from filelock import FileLock, Timeout

from demux.core.errors import RootLocked, StorageFailed
from demux.core.storage.files import Storage
from demux.core.storage.lease import Lease, LeaseHeld
from demux.core.storage.location import has_scheme

# holds the lock of the table at a path while a block runs
TableLock = Callable[[str], AbstractContextManager[object]]

_FOREVER = -1.0
# between two looks at whether to stop waiting
_LOOK_S = 0.2
_LEASED_STEP_S = 30.0


def is_elsewhere(root: str) -> bool:
    """Return whether the root is not on this machine: a URI, or a volume of a workspace, which looks like a folder."""
    # a Mac has its disks there
    volume = re.match(r"/Volumes/", root) is not None and platform.system() != "Darwin"
    return has_scheme(root) or volume


class Access(Enum):
    """What a command does with a root.

    Attributes:
        LOOK: it changes nothing, and needs no lock.
        ALONE: there is one such command at a time; where it pauses, it lets those have the root who take turns.
        TURNS: it works in steps, between those of others.
    """

    LOOK = "look"
    ALONE = "alone"
    TURNS = "turns"


class Hold:
    """A root that a command holds, and may let others have for a while.

    Attributes:
        visits: how often others had the root meanwhile: what was read of its tables before may be old.
    """

    def __init__(self, root: str, command: str, access: Access) -> None:
        """Prepare; `command` is the holder's name, which other commands show. A root that is elsewhere has no lock."""
        folder = Path(root)
        self.visits = 0
        self._root = root
        self._here = access is not Access.LOOK and not is_elsewhere(root)
        self._name = f"`demux {command}` (process {os.getpid()})"
        self._alone = _LockFile(folder, ".demux") if access is Access.ALONE else None
        self._step = _LockFile(folder, ".demux.step")
        # waiters queue on a second lock, so that a process that just released the step lock cannot take it again first
        self._door = FileLock(folder / ".demux.door.lock")

    def take(self, wait: bool) -> None:
        """Return when the root is held; as `hold_root`."""
        if not self._here:
            return
        timeout_s = _FOREVER if wait else 0.0
        if self._alone is not None:
            with _lock_errors(self._root, self._alone.busy(self._root)):
                self._alone.folder.mkdir(parents=True, exist_ok=True)
                self._alone.lock.acquire(timeout=timeout_s)
                self._alone.holder.write_text(self._name, encoding="utf-8")
            # a step of another command ends soon
            timeout_s = _FOREVER
        self._take_step(lambda lock: lock.acquire(timeout=timeout_s))

    @property
    def tables(self) -> TableLock | None:
        """What is to be held while a table is written that others may write too; None where the root's lock will do."""
        return None

    def is_wanted(self) -> bool:
        """Return whether another command waits for our step to end."""
        if not self._here:
            return False
        try:
            self._door.acquire(timeout=0.0)
        except Timeout:
            return True
        self._door.release()
        return False

    def free(self) -> None:
        """Let others have the root; a second call does nothing."""
        self._step.lock.release()
        if self._alone is not None:
            self._alone.lock.release()

    @contextmanager
    def away(self, stop: threading.Event) -> Iterator[None]:
        """Let those have the root who take turns, while the block runs; who waits for it has it before us.

        Args:
            stop: once set, waiting for the others ends.

        Raises:
            KeyboardInterrupt: `stop` was set while another command had the root: it is not held any more.
        """
        if not self._here:
            yield
            return
        self._step.lock.release()
        yield
        self._take_step(lambda lock: _take_turn(lock, stop))

    def _take_step(self, acquire: Callable[[FileLock], object]) -> None:
        step, root = self._step, self._root
        with _lock_errors(root, step.busy(root)):
            step.folder.mkdir(parents=True, exist_ok=True)
            acquire(self._door)
            try:
                acquire(step.lock)
            finally:
                self._door.release()
            self.visits += _read(step.holder) != self._name
            step.holder.write_text(self._name, encoding="utf-8")


class _LockFile:
    """A lock below a root, and the file that says who holds it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.lock = FileLock(folder / f"{name}.lock")
        self.holder = folder / f"{name}.holder"

    def busy(self, root: str) -> Callable[[], str]:
        """Return what gives the sentence for a refused command."""
        return lambda: f"{_read(self.holder)} is at work on {root}."


@contextmanager
def hold_root(
    root: str, command: str, wait: bool, access: Access = Access.ALONE, hold: Hold | None = None
) -> Iterator[Hold]:
    """Hold the root's lock while the block runs; the operating system frees it when the process dies.

    In a store it is a lease: after a process that died, the next one waits for half a minute.

    A root on a mount has no lock, nor has one that tasks of a job share. There the scheduler must keep
    runs apart, as a job does with `max_concurrent_runs` 1; tasks of different games may work side by side, as Delta's
    commits to a store are safe between processes. On a disk of this machine they are not.

    Args:
        command: what the holder is called in the sentence that a second command prints.
        wait: wait for the other command to end, or for our turn, instead of refusing.
        hold: what is taken; by default files of this machine.

    Raises:
        RootLocked: another command holds the lock.
        StorageFailed: the root cannot be made or written.
    """
    hold = hold or Hold(root, command, access)
    try:
        hold.take(wait)
        yield hold
    finally:
        hold.free()


def no_lock(table: str) -> AbstractContextManager[object]:
    """Return what holds nothing: no other process writes the table."""
    return nullcontext()


def table_lock(root: str) -> TableLock:
    """Return what keeps writers apart that write the same table below the root, by a file of the operating system.

    On a disk, Delta commits are safe between threads of a process, not between processes. On a root that is elsewhere
    nothing is held: there the store sees to it (`spark.delta.logStore`).
    """
    folder = _folder_here(root)
    if folder is None:
        return no_lock

    def of(table: str) -> AbstractContextManager[object]:
        name = table.removeprefix(root).strip("/").replace("/", ".")
        return FileLock(folder / f".demux.table.{name}.lock")

    return of


@contextmanager
def _lock_errors(root: str, busy: Callable[[], str]) -> Iterator[None]:
    """Say why the root could not be locked; `busy` gives the sentence where another process holds the lock."""
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


def _take_turn(lock: FileLock, stop: threading.Event) -> None:
    while True:
        try:
            lock.acquire(timeout=_LOOK_S)
        except Timeout:
            if stop.is_set():
                raise KeyboardInterrupt from None
        else:
            return


def _folder_here(root: str) -> Path | None:
    """Return the root's folder if a disk of this machine has it, written as a path or as a file URI."""
    parts = urlsplit(root)
    if parts.scheme == "file" and parts.netloc in {"", "localhost"}:
        return Path(unquote(parts.path))
    return None if is_elsewhere(root) else Path(root)


def _read(holder: Path) -> str:
    try:
        return holder.read_text(encoding="utf-8")
    except OSError:
        return "Another command"


def hold_of(storage: Storage, root: str, command: str, access: Access) -> Hold:
    """Return what a command takes to work on a root: leases in a store, else files of this machine."""
    return LeasedHold(storage, root, command, access) if storage.is_store(root) else Hold(root, command, access)


class LeasedHold(Hold):
    """A root in a store that a command holds, and may let others have for a while."""

    def __init__(self, storage: Storage, root: str, command: str, access: Access) -> None:
        """Prepare; `command` is the holder's name, which other commands show."""
        super().__init__(root, command, access)
        name = f"`demux {command}` (process {os.getpid()} on {platform.node()})"
        self._alone_lease = Lease(storage, f"{root}/control/lock", name, _now) if access is Access.ALONE else None
        self._step_lease = Lease(storage, f"{root}/control/lock-step", name, _now)
        self._looks = access is Access.LOOK
        self._taken_s = 0.0

    def take(self, wait: bool) -> None:
        """Return when the root is held; as `demux.core.root.lock.hold_root`."""
        if self._looks:
            return
        try:
            if self._alone_lease is not None:
                self._alone_lease.take(wait)
            # a step of another command ends soon
            self.visits += self._step_lease.take(wait or self._alone_lease is not None)
            self._taken_s = time.monotonic()
        except LeaseHeld as held:
            raise RootLocked(
                f"{held.state.holder} is at work on {self._root}, since {held.state.since}.",
                "Wait for it to end, or give --wait to do so automatically.",
                root=self._root,
            ) from held

    @property
    def tables(self) -> TableLock:
        """What checks that the root is still ours before a table is written that others may write too."""

        @contextmanager
        def of(table: str) -> Iterator[None]:
            self._step_lease.check()
            yield

        return of

    def is_wanted(self) -> bool:
        """Return whether we had the root for half a minute: who waits for a lease leaves no sign of it."""
        return not self._looks and time.monotonic() - self._taken_s > _LEASED_STEP_S

    def free(self) -> None:
        """Let others have the root; a second call does nothing."""
        self._step_lease.free()
        if self._alone_lease is not None:
            self._alone_lease.free()

    @contextmanager
    def away(self, stop: threading.Event) -> Iterator[None]:
        """Let those have the root who take turns, while the block runs; as `Hold.away`.

        Raises:
            ConcurrentChange: another command has taken the root for itself meanwhile.
        """
        if self._looks:
            yield
            return
        self._step_lease.free()
        yield
        if self._alone_lease is not None:
            self._alone_lease.check()
        self.visits += self._step_lease.take(wait=True, stop=stop)
        self._taken_s = time.monotonic()


def _now() -> str:
    return datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
