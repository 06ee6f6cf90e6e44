"""Which payloads are surely canonical, found for a whole batch at once; a miss costs a look by `Canonical`.

Walks over all payloads side by side, field by field in ascending order, as every serializer writes them. Proven are
those of singular scalar fields only, each in its shortest form, with plain ASCII in strings; nested messages, lists,
maps, negative int32 and doubtful values (minus zero, ten-byte numbers) are left to the slow test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf.descriptor import FieldDescriptor as F

from demux.protobuf.payloads import Payloads
from demux.protobuf.varint import varint

_Bytes = npt.NDArray[np.uint8]
_Places = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
# of a number as its varint holds it, exclusive
_LIMITS = {
    F.TYPE_BOOL: 2,
    F.TYPE_INT32: 2**31,
    F.TYPE_ENUM: 2**31,
    F.TYPE_UINT32: 2**32,
    F.TYPE_SINT32: 2**32,
    F.TYPE_INT64: 2**63,
    F.TYPE_UINT64: 2**63,
    F.TYPE_SINT64: 2**63,
}
_WIDTHS = {
    F.TYPE_FIXED32: 4,
    F.TYPE_SFIXED32: 4,
    F.TYPE_FLOAT: 4,
    F.TYPE_FIXED64: 8,
    F.TYPE_SFIXED64: 8,
    F.TYPE_DOUBLE: 8,
}
_VARINT_BYTES = 9


@dataclass(frozen=True, slots=True)
class _Step:
    """One field: its tag, its type, and whether its default value is never written."""

    tag: bytes
    type: int
    implicit: bool


class FlatCheck:
    """Finds payloads of one message that are surely canonical."""

    def __init__(self, descriptor: Any) -> None:
        """Prepare for a message without required fields, whose enums are open."""
        fields = sorted(descriptor.fields, key=lambda field: int(field.number))
        self._steps = [_step(field) for field in fields if _is_simple(field)]

    def proven(self, payloads: Payloads) -> _Flags:
        """Return for each payload whether it is surely canonical."""
        data, starts, ends = payloads.bytes_and_ends()
        places, good = starts.copy(), np.ones(len(payloads), bool)
        for step in self._steps:
            _walk(data, places, ends, good, step)
        good &= places == ends
        return good


def _is_simple(field: Any) -> bool:
    oneof = field.containing_oneof
    return (
        not field.is_repeated
        and (oneof is None or len(oneof.fields) == 1)
        and (field.type in _LIMITS or field.type in _WIDTHS or field.type in (F.TYPE_STRING, F.TYPE_BYTES))
    )


def _step(field: Any) -> _Step:
    width = _WIDTHS.get(field.type)
    kind = {4: _FIXED32, 8: _FIXED64}[width] if width else _VARINT if field.type in _LIMITS else _LENGTH
    return _Step(varint(field.number << 3 | kind), field.type, not field.has_presence)


def _walk(data: _Bytes, places: _Places, ends: _Places, good: _Flags, step: _Step) -> None:
    """Move the places behind this field where it comes next; take `good` from those that hold it otherwise."""
    here = good & (places + len(step.tag) <= ends)
    for at, byte in enumerate(step.tag):
        here &= data[np.minimum(places + at, len(data) - 1)] == byte
    rows = np.flatnonzero(here)
    if not len(rows):
        return
    begin, limit = places[rows] + len(step.tag), ends[rows]
    if step.type in _WIDTHS:
        behind, fine = _fixed(data, begin, limit, step)
    elif step.type in _LIMITS:
        values, behind, fine = _varints(data, begin)
        fine &= (values < _LIMITS[step.type]) & (behind <= limit)
        if step.implicit:
            fine &= values != 0
    else:
        behind, fine = _delimited(data, begin, limit, step)
    places[rows] = behind
    good[rows[~fine]] = False


def _fixed(data: _Bytes, begin: _Places, limit: _Places, step: _Step) -> tuple[_Places, _Flags]:
    width = _WIDTHS[step.type]
    fine = begin + width <= limit
    if step.implicit:
        # the bytes are 16 at least
        window = data[np.where(fine, begin, 0)[:, None] + np.arange(width)]
        # some serializers leave minus zero out
        window[:, -1] &= 0x7F if step.type in (F.TYPE_FLOAT, F.TYPE_DOUBLE) else 0xFF
        fine &= window.any(axis=1)
    return begin + width, fine


def _delimited(data: _Bytes, begin: _Places, limit: _Places, step: _Step) -> tuple[_Places, _Flags]:
    sizes, inside, fine = _varints(data, begin)
    fine &= sizes <= len(data)
    sizes = np.where(fine, sizes, 0)
    behind = inside + sizes
    fine &= behind <= limit
    if step.implicit:
        fine &= sizes > 0
    if step.type == F.TYPE_STRING:
        lengths = np.where(fine, sizes, 0)
        # the places of all bytes of all texts, one after the other
        firsts = np.cumsum(lengths) - lengths
        owners = np.repeat(np.arange(len(lengths)), lengths)
        high = data[np.arange(int(lengths.sum())) + (inside - firsts)[owners]] > 0x7F
        fine[owners[high]] = False
    return behind, fine


def _varints(data: _Bytes, begin: _Places) -> tuple[_Places, _Places, _Flags]:
    """Return the numbers, the places behind them, and whether each is in its shortest form of nine bytes at most."""
    values = np.zeros(len(begin), np.int64)
    behind, fine = begin.copy(), np.zeros(len(begin), bool)
    rows = np.arange(len(begin))
    for at in range(_VARINT_BYTES):
        last = data[np.minimum(begin[rows] + at, len(data) - 1)]
        values[rows] |= (last & 0x7F).astype(np.int64) << (7 * at)
        ends_here = last < 0x80
        done = rows[ends_here]
        behind[done] = begin[done] + at + 1
        fine[done] = (last[ends_here] > 0) if at else True
        rows = rows[~ends_here]
        if not len(rows):
            break
    return values, behind, fine
