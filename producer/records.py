"""Records to send, and the target that takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from demux.core.protobuf.wire.wire_fields import varint


@dataclass(frozen=True, slots=True)
class Records:
    """Records by column, in the order in which they are sent.

    Attributes:
        values: wrapper bytes, or None for a record without a value.
        keys: the game name in UTF-8.
        timestamps_us: microseconds since 1970.
    """

    values: list[bytes | None]
    keys: list[bytes]
    partitions: npt.NDArray[np.int32]
    timestamps_us: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TargetPosition:
    """The end offsets of the target.

    Attributes:
        next_offsets: the offset that the next record gets, by partition; no partition = 0.
    """

    next_offsets: Mapping[int, int]

    @property
    def sent(self) -> int:
        """How many records were ever sent to the target."""
        return sum(self.next_offsets.values())


class EventSink(Protocol):
    """A target that gives offsets: a Delta table, or a topic."""

    def position(self) -> TargetPosition:
        """Return the end offsets of the target; a target that is not there yet is at 0.

        Raises:
            SettingsInvalid: the target is there, and other code made it.
            StorageFailed, KafkaUnavailable, KafkaRefused: the target cannot be read.
        """
        ...

    def write(self, records: Records) -> None:
        """Append the records; made with the producer's mark if the target is not there yet.

        A table gets all of them or none; after an error a topic may have some.

        Raises:
            StorageFailed: the target cannot be written, or another producer wrote to it at the same time.
            KafkaUnavailable, KafkaRefused, NotAcknowledged: the topic cannot be written.
        """
        ...

    def newest(self, count: int) -> Records:
        """Return the newest records of the target, at most `count`, oldest first."""
        ...

    def remove(self) -> bool:
        """Remove the target if it is there and carries the producer's mark; return whether it did."""
        ...


_GAME_NAME = b"\x0a"
_SCHEMA_ID = b"\x10"
_PAYLOAD = b"\x1a"


def head(game_name: str, schema_id: int) -> bytes:
    """Return the wrapper's bytes up to the payload, for many payloads of one game and schema id (an int32)."""
    name = game_name.encode()
    return _GAME_NAME + varint(len(name)) + name + _SCHEMA_ID + varint(schema_id)


def wrap_payload(head_bytes: bytes, payload: bytes) -> bytes:
    """Return the wrapper around the payload."""
    size = len(payload)
    return head_bytes + _PAYLOAD + (bytes((size,)) if size < 128 else varint(size)) + payload
