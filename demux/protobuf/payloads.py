"""The payloads of a batch, as Arrow has them; as Python's bytes only where somebody looks at a single one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

# so that a look behind the last payload stays inside
_PADDING = np.zeros(16, np.uint8)


class Payloads:
    """Payloads without NULLs."""

    def __init__(self, array: pa.Array) -> None:
        self.array = array

    @classmethod
    def of(cls, payloads: Payloads | pa.Array | Sequence[bytes]) -> Payloads:
        """Return them; an array (BINARY) is not copied."""
        if isinstance(payloads, Payloads):
            return payloads
        return cls(payloads if isinstance(payloads, pa.Array) else pa.array(payloads, pa.binary()))

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, position: int) -> bytes:
        return self._listed[position]

    @cached_property
    def _listed(self) -> list[bytes]:
        listed: list[bytes] = self.array.to_pylist()
        return listed

    def chosen(self, positions: Sequence[int]) -> pa.Array:
        """Return the payloads at these positions, which are in ascending order."""
        return self.array if len(positions) == len(self) else self.array.take(pa.array(positions, pa.int64()))

    def bytes_and_ends(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return bytes in which all payloads stand, and where each begins and ends there."""
        _, offsets, content = self.array.buffers()
        if offsets is None or content is None or content.size < len(_PADDING):
            joined = np.frombuffer(b"".join(self._listed), np.uint8)
            ends = np.cumsum(np.fromiter(map(len, self._listed), np.int64, len(self)))
            starts = np.concatenate([ends[:0], [0], ends[:-1]]).astype(np.int64)[: len(self)]
            return np.concatenate([joined, _PADDING]), starts, ends
        places = np.frombuffer(offsets, np.int32, len(self) + 1, self.array.offset * 4).astype(np.int64)
        return np.frombuffer(content, np.uint8), places[:-1], places[1:]
