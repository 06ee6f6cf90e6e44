"""What a query's checkpoint says."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from demux.core.storage.files import Storage
from demux.core.streaming.bronze_offset import BronzeOffset, position_in


@dataclass(frozen=True, slots=True)
class StreamCheckpoint:
    """How far a checkpoint is.

    Attributes:
        query_id: the query's own id; None when there is no checkpoint.
        begun: the last batch begun, -1 for none.
        done: the last batch done, -1 for none.
    """

    query_id: str | None
    begun: int
    done: int

    @property
    def unfinished(self) -> int | None:
        """The batch that was begun and not done."""
        return self.begun if self.begun > self.done else None


def read_checkpoint(storage: Storage, checkpoint: str) -> StreamCheckpoint:
    """Return how far the checkpoint is."""
    found = [file.key for file in storage.files(checkpoint)]
    if "metadata" not in found:
        return StreamCheckpoint(None, -1, -1)
    query_id = json.loads(storage.read_text(f"{checkpoint}/metadata"))["id"]
    return StreamCheckpoint(query_id, _last(found, "offsets"), _last(found, "commits"))


def end_of(storage: Storage, checkpoint: str, batch: int) -> BronzeOffset:
    """Return the position in bronze after a batch of a game's stream: Spark writes it down before the batch begins."""
    return position_in(storage.read_text(f"{checkpoint}/offsets/{batch}"))


def _last(paths: Iterable[str], folder: str) -> int:
    parted = (path.rpartition("/") for path in paths)
    return max((int(name) for within, _, name in parted if within == folder and name.isdigit()), default=-1)
