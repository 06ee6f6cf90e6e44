"""A producer that goes on and on: events with faults, some of them in schemas that are registered only later."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from demux.core.registry.folder import MANIFEST, FolderRegistry
from producer.delta_sink import DeltaSink
from producer.run import MADE_BY, ProduceRequest, produce

# shares of the time at which events of the next version come, and at which its schemas are registered
_SENT_FROM = (0.0, 0.1, 0.5)
_KNOWN_FROM = (0.0, 0.3, 0.7)


@dataclass(frozen=True, slots=True)
class Load:
    """How much is sent.

    Attributes:
        games: games with plain names.
        hostile: games more, with names that try to do harm.
        events: events each time; a tenth of them twice.
        pause_s: between two times.
    """

    games: int = 4
    hostile: int = 2
    events: int = 300
    pause_s: float = 3.0
    fault_rate: float = 0.05


class Sending:
    """Sends until it is told to stop. Its registry is not the root's: schemas are published later."""

    def __init__(self, root: Path, registry: Path, load: Load, seed: int) -> None:
        """Prepare; `registry` is a folder of the sender's own."""
        self._root = root
        self._folder = registry
        self._registry = FolderRegistry(registry, made_by=MADE_BY)
        self._sink = DeltaSink(str(root / "source"))
        self._load = load
        self._seed = seed
        self._published = 0
        self.sent = 0

    def until(self, stop: threading.Event, begun: float, seconds: float, clock: Callable[[], float]) -> None:
        """Send at once, and again after each pause."""
        while True:
            self.at(min(1.0, (clock() - begun) / seconds))
            if stop.wait(self._load.pause_s):
                return

    def at(self, share: float) -> None:
        """Send what is due when this share of the time is over."""
        self.send(_count(_SENT_FROM, share), _count(_KNOWN_FROM, share))

    def send(self, versions: int, known: int) -> None:
        """Send events of so many schema versions, the first `known` of which the root's registry has."""
        load = self._load
        if known > self._published:
            self._produce(known, 0)
            publish(self._folder, self._root / "registry")
            self._published = known
        self._produce(versions, load.events, load.events // 10)

    def publish_all(self) -> None:
        """Register what is not yet."""
        publish(self._folder, self._root / "registry")

    def _produce(self, versions: int, events: int, resend: int = 0) -> None:
        request = ProduceRequest(
            events,
            self._load.games,
            self._load.hostile,
            versions,
            self._load.fault_rate,
            seed=self._seed,
            resend=min(resend, self.sent),
        )
        report = produce(request, self._registry, self._sink, now=datetime.now(timezone.utc))
        self.sent += report.events + report.resent


def publish(registry: Path, target: Path) -> None:
    """Give the target all schemas of the registry; whoever reads it meanwhile sees all of them or none."""
    shutil.copytree(registry, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns(MANIFEST, ".*"))
    new = target / f"{MANIFEST}.new"
    shutil.copyfile(registry / MANIFEST, new)
    new.replace(target / MANIFEST)


def _count(shares: tuple[float, ...], share: float) -> int:
    return sum(begins <= share for begins in shares)
