"""The payloads of a batch, as Arrow has them; as Python's bytes only where a single one is read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc


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

    @property
    def longest(self) -> int:
        """The bytes of the longest one; 0 of none."""
        return pc.max(pc.binary_length(self.array)).as_py() or 0

    @cached_property
    def _listed(self) -> list[bytes]:
        listed: list[bytes] = self.array.to_pylist()
        return listed

    def chosen(self, positions: Sequence[int]) -> pa.Array:
        """Return the payloads at these positions, which are in ascending order."""
        return self.array if len(positions) == len(self) else self.array.take(pa.array(positions, pa.int64()))
