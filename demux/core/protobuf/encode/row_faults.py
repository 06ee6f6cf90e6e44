"""Which rows of a batch cannot be written, and why; and which ones only the reference writes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Rows = npt.NDArray[np.int64]


@dataclass(slots=True)
class RowFaults:
    """The faults of values of one level of nesting, by their place in its arrays.

    Attributes:
        doubtful: places of values that the fast writer would write otherwise than the reference.
    """

    bad: list[tuple[Rows, list[str]]] = field(default_factory=list)
    doubtful: list[Rows] = field(default_factory=list)

    def refuse(self, places: Iterable[int] | Rows, sentence: Callable[[int], str]) -> None:
        """Remember these places, each with its sentence."""
        rows = np.fromiter(places, dtype=np.int64)
        if len(rows):
            self.bad.append((rows, [sentence(int(row)) for row in rows]))

    def doubt(self, flags: pa.Array) -> None:
        """Remember the places where the flag (BOOLEAN) is true."""
        rows = places_of(flags)
        if len(rows):
            self.doubtful.append(rows)

    def adopt(self, inside: RowFaults, offsets: Rows) -> None:
        """Remember the faults inside of lists, which begin at these offsets, as faults of the lists."""
        self.bad += [(_owners(rows, offsets), sentences) for rows, sentences in inside.bad]
        self.doubtful += [_owners(rows, offsets) for rows in inside.doubtful]

    def sentences(self) -> dict[int, str]:
        """Return the first sentence of each bad place, in order of place."""
        found: dict[int, str] = {}
        for row, sentence in self._pairs():
            found.setdefault(row, sentence)
        return dict(sorted(found.items()))

    def _pairs(self) -> Iterator[tuple[int, str]]:
        for rows, sentences in self.bad:
            yield from zip(rows.tolist(), sentences, strict=True)


def places_of(flags: pa.Array) -> Rows:
    """Return the places where a BOOLEAN is true."""
    return np.flatnonzero(flags.fill_null(False).to_numpy(zero_copy_only=False)).astype(np.int64)


def _owners(rows: Rows, offsets: Rows) -> Rows:
    return np.searchsorted(offsets, rows, side="right").astype(np.int64) - 1
