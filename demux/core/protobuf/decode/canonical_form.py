"""Which payloads are canonical: they encode each value in the one way that every correct parser reads alike.

`google.protobuf` reads the payload with its maps as plain lists, forgets what the schema does not have, and writes it
again. The same bytes mean: only declared fields, each once, in its shortest form and its own wire type, each number of
a closed enum with a name, nothing merged or overwritten. What this cannot see is a map key that comes twice
(`arrow_columns` does). Most ordinary payloads are known for canonical without it (`canonical_batch`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor_pb2 import FieldDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message

from demux.core.protobuf.decode.canonical_batch import Payloads, QuickCheck
from demux.core.protobuf.schema.descriptor_pool import (
    NOT_PACKABLE,
    Readable,
    all_fields,
    files_of,
    has_required,
    message_class,
    pool_of,
)

# below, the quick look's start costs more than the slow test
_ENOUGH = 50
# the quick look costs about half of the slow test
_USEFUL = 0.5


class Canonical:
    """Separates canonical payloads of one message from all others."""

    def __init__(self, readable: Readable, quick: QuickCheck | None = None) -> None:
        """Prepare for a message; the batch check, where there is one, runs before the slow test."""
        self._readable = readable
        self._quick = quick

    def split(
        self, payloads: Payloads | Sequence[bytes], read: pa.RecordBatch | None = None
    ) -> tuple[Sequence[int], list[int]]:
        """Return the positions of the payloads that are canonical, a range where all are, and the others."""
        payloads = Payloads.of(payloads)
        quick = self._quick if len(payloads) >= _ENOUGH else None
        if quick is None or read is None:
            others = self._others(payloads, range(len(payloads)))
        else:
            doubtful: list[int] = np.flatnonzero(~quick.proven(payloads, read)).tolist()
            others = self._others(payloads, doubtful)
            if len(doubtful) - len(others) > len(payloads) * _USEFUL:
                # written in another order, say: the next ones will be like these
                self._quick = None
        positions = range(len(payloads))
        rest = set(others)
        return [position for position in positions if position not in rest] if rest else positions, others

    def _others(self, payloads: Payloads, positions: Sequence[int]) -> list[int]:
        """Return those of the positions whose payload is not canonical."""
        others: list[int] = []
        if not positions:
            return others
        scratch = self._readable.listed()
        parse, forget_unknown = scratch.ParseFromString, scratch.DiscardUnknownFields
        # not SerializeToString: to name a missing field it reads memory that is not its own
        write, complete = scratch.SerializePartialToString, scratch.IsInitialized if self._has_required else None
        for position in positions:
            payload = payloads[position]
            try:
                parse(payload)
                forget_unknown()
                again = write()
                known = again == payload or (len(again) == len(payload) and self._in_any_order(payload))
                known = known and (complete is None or complete())
            except Exception:  # whatever the complaint is, the reference will say it again
                known = False
            if not known:
                others.append(position)
        return others

    @cached_property
    def _has_required(self) -> bool:
        return has_required(self._readable.declared)

    @cached_property
    def _in_any_order(self) -> Callable[[bytes], bool]:
        """A test for payloads that `write` gave back with other bytes: are only their fields in another order?"""
        descriptor: Any = self._readable.listed.DESCRIPTOR
        scratch = _never_longer(descriptor.file.pool, descriptor.full_name)()
        plain = self._readable.listed()

        def test(payload: bytes) -> bool:
            scratch.ParseFromString(payload)
            scratch.DiscardUnknownFields()
            # what `scratch` does not see, a number of a closed enum without a name, `write` left out: that many more
            plain.ParseFromString(payload)
            return scratch.ByteSize() == plain.ByteSize() == len(payload)

        return test


def _never_longer(pool: DescriptorPool, full_name: str) -> type[Message]:
    """Return a class that writes no payload longer than it was: the same size then means that nothing was changed.

    Two things become longer elsewhere: a negative int32 in five bytes, a packed list that came unpacked. Here the one
    is an int64, the other bytes, so that unpacked values are unknown and count as lost.
    """
    files = files_of(pool, full_name)
    for file in files.file:
        for field in all_fields(file):
            if field.type in NOT_PACKABLE:
                continue
            if field.label == FieldDescriptorProto.LABEL_REPEATED:
                field.type = FieldDescriptorProto.TYPE_BYTES
                field.ClearField("options")
            elif field.type in (FieldDescriptorProto.TYPE_INT32, FieldDescriptorProto.TYPE_ENUM):
                field.type = FieldDescriptorProto.TYPE_INT64
            field.ClearField("type_name")
            field.ClearField("default_value")
    return message_class(pool_of(files), full_name)
