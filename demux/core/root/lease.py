"""One command at a time on a root in a store, by two leases; `demux/core/root/lock.py` says what they are for."""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from demux.core.errors import RootLocked
from demux.core.root.lock import Access, Hold, TableLock
from demux.core.storage.files import Storage
from demux.core.storage.lease import Lease, LeaseHeld


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

    def take(self, wait: bool) -> None:
        """Return when the root is held; as `demux.core.root.lock.locked`."""
        if self._looks:
            return
        try:
            if self._alone_lease is not None:
                self._alone_lease.take(wait)
            # a step of another command ends soon
            self.visits += self._step_lease.take(wait or self._alone_lease is not None)
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

    def free(self) -> None:
        """Let others have the root; a second call does nothing."""
        self._step_lease.free()
        if self._alone_lease is not None:
            self._alone_lease.free()

    @contextmanager
    def away(self, stop: threading.Event) -> Iterator[None]:
        """Let those have the root who take turns, while the block runs; as `Hold.away`.

        Raises:
            TaskInterrupted: another command has taken the root for itself meanwhile.
        """
        if self._looks:
            yield
            return
        self._step_lease.free()
        yield
        if self._alone_lease is not None:
            self._alone_lease.check()
        self.visits += self._step_lease.take(wait=True, stop=stop)


def _now() -> str:
    return datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
