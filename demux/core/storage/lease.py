"""A lock as an object of a store: its last writer holds it, for as long as it is written again in time.

No two clocks are compared. A waiter watches the object: if it stays the same for the whole period, its holder is dead
or cut off. The holder counts from its own last success, and stops working before a waiter may take over.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from demux.core.errors import ConcurrentChange, DemuxError
from demux.core.storage.backend import Tagged
from demux.core.storage.files import Storage

PERIOD_S = 30.0
# of a period
_RENEWED_AFTER = 0.2
_LOST_AFTER = 0.6
_LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class LeaseState:
    """What the object says.

    Attributes:
        number: one more each time that the lock changes hands.
        holder: who has it, for people.
        token: tells this holder from every other.
        since: when the holder took it, by its own clock, for people.
        period_s: how long the object stays the same before others may take it.
        beat: one more each time that it is written again.
        free: whether the holder gave it back.
    """

    number: int
    holder: str
    token: str
    since: str
    period_s: float
    beat: int = 0
    free: bool = False

    @property
    def data(self) -> bytes:
        """The object's bytes."""
        return json.dumps(asdict(self)).encode()


class LeaseHeld(Exception):
    """Another holder has it.

    Attributes:
        state: what the object says.
    """

    def __init__(self, state: LeaseState) -> None:
        super().__init__(state.holder)
        self.state = state


class Lease:
    """The lock at a path; for one process, which takes and frees it again and again."""

    def __init__(
        self,
        storage: Storage,
        path: str,
        holder: str,
        now: Callable[[], str],
        period_s: float = PERIOD_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare.

        Args:
            holder: the holder's name, which other commands show.
            now: gives the time for people.
            period_s: how long others wait for a holder that is dead.
            clock: gives seconds that never go back.
        """
        self._storage = storage
        self._path = path
        self._holder = holder
        self._token = uuid.uuid4().hex
        self._now = now
        self._period_s = period_s
        self._clock = clock
        self._state: LeaseState | None = None
        self._tag = ""
        self._renewed_s = 0.0
        self._lost = False
        self._ended = threading.Event()
        self._keeper: threading.Thread | None = None

    def take(self, wait: bool, stop: threading.Event | None = None) -> bool:
        """Return when the lock is ours; return whether another had it since we did.

        Args:
            wait: wait for a holder that lives, instead of refusing.
            stop: once set, waiting ends.

        Raises:
            LeaseHeld: another process has it, and was seen alive.
            KeyboardInterrupt: `stop` was set.
            DemuxError: the store.
        """
        seen: tuple[str, float] | None = None
        while True:
            found = self._read()
            state = None if found is None else LeaseState(**json.loads(found.data))
            if found is None or state is None or state.free:
                if self._taken(found, state):
                    return state is not None and state.token != self._token
                continue
            if seen is None or seen[0] != found.tag:
                if seen is not None and not wait:
                    raise LeaseHeld(state)
                seen = found.tag, self._clock()
            elif self._clock() - seen[1] >= state.period_s and self._taken(found, state):
                return True
            if stop is not None and stop.is_set():
                raise KeyboardInterrupt
            threading.Event().wait(min(_LOOK_S, state.period_s / 10))

    def check(self) -> None:
        """Check that the lock is still ours for a while.

        Raises:
            ConcurrentChange: another process may have it by now.
        """
        if self._state is None or self._lost or self._clock() - self._renewed_s > _LOST_AFTER * self._period_s:
            raise ConcurrentChange(
                f"This command does not hold {self._path} any more: it was stopped, or cut off from the store.",
                "Run the same command again; nothing is lost.",
            )

    def free(self) -> None:
        """Give the lock back; a second call does nothing. Where the store does not answer, others wait a period."""
        self._ended.set()
        if self._keeper is not None:
            self._keeper.join()
        state, self._state, self._keeper = self._state, None, None
        if state is not None and not self._lost:
            try:
                self._storage.replace(self._path, replace(state, free=True).data, self._tag)
            except (DemuxError, OSError):
                return

    def _taken(self, tagged: Tagged | None, before: LeaseState | None) -> bool:
        number = 1 if before is None else before.number + 1
        state = LeaseState(number, self._holder, self._token, self._now(), self._period_s)
        asked_s = self._clock()
        if tagged is not None:
            tag = self._storage.replace(self._path, state.data, tagged.tag)
        else:
            tag = self._storage.read_tagged(self._path).tag if self._storage.create(self._path, state.data) else None
        if tag is None:
            return False
        self._state, self._tag, self._renewed_s, self._lost = state, tag, asked_s, False
        self._ended = threading.Event()
        self._keeper = threading.Thread(target=self._keep, args=(self._ended,), name="lease", daemon=True)
        self._keeper.start()
        return True

    def _keep(self, ended: threading.Event) -> None:
        while not ended.wait(_RENEWED_AFTER * self._period_s):
            if not self._renew():
                return

    def _renew(self) -> bool:
        """Write the object again; return whether the lock is still ours, as far as is known."""
        assert self._state is not None
        state, asked_s = replace(self._state, beat=self._state.beat + 1), self._clock()
        try:
            tag = self._storage.replace(self._path, state.data, self._tag)
        except (DemuxError, OSError):  # `check` counts how long
            return True
        if tag is None:
            self._lost = True
            return False
        self._state, self._tag, self._renewed_s = state, tag, asked_s
        return True

    def _read(self) -> Tagged | None:
        try:
            return self._storage.read_tagged(self._path)
        except FileNotFoundError:
            return None
