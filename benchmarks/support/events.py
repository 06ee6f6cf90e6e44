"""Wrapped events of many games, made once and sent in every round, so that producing is not what a round waits for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from demux.core.registry.folder import FolderRegistry
from producer.records import EventSink, Records, TargetPosition
from producer.run import MADE_BY, ProduceRequest, produce
from producer.schemas import games as first_games


@dataclass(frozen=True, slots=True)
class Events:
    """Valid events, in the batches in which they are sent; sent again, they are the same bytes at other offsets."""

    batches: tuple[Records, ...]

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(len(batch.values) for batch in self.batches)

    def of_first(self, games: int) -> Events:
        """Return the events of the producer's first so many games."""
        wanted = {game.name.encode() for game in first_games(games)}
        return Events(tuple(kept for batch in self.batches if (kept := _only(batch, wanted)).values))

    def send(self, sink: EventSink) -> None:
        """Append all of them to the sink."""
        for batch in self.batches:
            sink.write(batch)


class Kept:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.batches: list[Records] = []

    def position(self) -> TargetPosition:
        return TargetPosition({})

    def write(self, records: Records) -> None:
        self.batches.append(records)

    def newest(self, count: int) -> Records:
        return Records([], [], np.empty(0, np.int32), np.empty(0, np.int64))

    def remove(self) -> bool:
        return False


def made_events(registry: Path, games: int, rows_each: int, versions: int) -> Events:
    """Return about so many events of each game, in so many schema versions, which are registered in this folder."""
    kept = Kept()
    request = ProduceRequest(events=games * rows_each, games=games, versions=versions, fault_rate=0.0)
    produce(request, FolderRegistry(registry, made_by=MADE_BY), kept, now=datetime.now(timezone.utc))
    return Events(tuple(kept.batches))


def _only(batch: Records, keys: set[bytes]) -> Records:
    at = [number for number, key in enumerate(batch.keys) if key in keys]
    return Records(
        [batch.values[number] for number in at],
        [batch.keys[number] for number in at],
        batch.partitions[at],
        batch.timestamps_us[at],
    )
