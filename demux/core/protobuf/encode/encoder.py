"""Encodes columns of a table to payloads of one message: by a fast writer, and by the reference where they differ.

`ptars` writes whole columns (in Rust). Three things it writes otherwise than `google.protobuf`: it packs every list
that can be, it puts fields where the descriptor has them, and it leaves out -0.0. So the lowered message has its fields
in order of number, and messages with unpacked lists, groups or extensions, and rows with -0.0 where zero is not
written, go to the reference. The bytes are those of `google.protobuf`, but for the order of map entries, which is the
column's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from demux.core.columns.arrow import spread
from demux.core.protobuf.decode.canonical_batch import can_parse, parser, with_listed_maps
from demux.core.protobuf.decode.lowered_descriptor import lower_message
from demux.core.protobuf.encode.lowered_columns import LoweredColumns
from demux.core.protobuf.encode.reference_writer import JsonReader, ReferenceWriter
from demux.core.protobuf.encode.row_faults import RowFaults
from demux.core.protobuf.schema.column_mapping import Cardinality, FieldMapping, Message, shape_of
from demux.core.protobuf.schema.descriptor_pool import NOT_PACKABLE, Readable, fields_of, pool_of

_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """The result of encoding a batch of rows.

    Attributes:
        payloads: BINARY, NULL for bad rows.
        bad: place in the batch, and why, of each row that cannot be written.
    """

    payloads: pa.Array
    bad: Mapping[int, str]


class PayloadEncoder:
    """Encodes rows of one message; costly to make, kept for the life of a process by `encoder_of`."""

    def __init__(self, descriptor_set: bytes, message: str) -> None:
        """Prepare for a message that the descriptor set has."""
        files = FileDescriptorSet.FromString(descriptor_set)
        pool = pool_of(files)
        self.descriptor: Descriptor = pool.FindMessageTypeByName(message)
        self.shape: Message = shape_of(self.descriptor)
        self._reference = ReferenceWriter(Readable(files, pool, message).message, self.shape)
        self._columns = LoweredColumns(self.descriptor, self.shape, JsonReader(pool))
        self._is_fast = can_parse(self.shape) and _suits(self.descriptor, self.shape)
        if self.shape.fields:
            self._writer = parser(with_listed_maps(lower_message(_by_number(self.shape), "proto3")))
            self._schema: pa.Schema = self._writer.schema()

    def encode(self, columns: Mapping[str, pa.Array], count: int) -> EncodedBatch:
        """Return each row's payload or the reason why it has none.

        Args:
            columns: by lower-case name, in the types of the column rules or narrower ones.
        """
        if not self.shape.fields:
            return EncodedBatch(pa.array([b""] * count, pa.binary()), {})
        faults = RowFaults()
        rows = pa.RecordBatch.from_arrays(
            self._columns.lower(columns, self._schema, count, faults), schema=self._schema
        )
        bad = faults.sentences()
        slow = np.full(count, not self._is_fast)
        for places in faults.doubtful:
            slow[places] = True
        fast = ~slow
        fast[list(bad)] = slow[list(bad)] = False
        return EncodedBatch(self._written(rows, fast, slow), bad)

    def _written(self, rows: pa.RecordBatch, fast: _Flags, slow: _Flags) -> pa.Array:
        if fast.all():
            return self._fast(rows)
        parts = [self._fast(rows.filter(pa.array(fast))), self._slow(rows.filter(pa.array(slow)))]
        places = np.concatenate([np.flatnonzero(fast), np.flatnonzero(slow)])
        return spread(pa.concat_arrays(parts), places, len(rows))

    def _fast(self, rows: pa.RecordBatch) -> pa.Array:
        try:
            return self._writer.record_batch_to_array(rows)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a Rust panic is a BaseException
            return self._slow(rows)

    def _slow(self, rows: pa.RecordBatch) -> pa.Array:
        return pa.array([self._reference.payload(row) for row in rows.to_pylist()], pa.binary())


def _by_number(shape: Message) -> Message:
    fields = sorted(shape.fields, key=lambda field: field.number)
    return Message(shape.full_name, tuple(_in_order(field) for field in fields))


def _in_order(field: FieldMapping) -> FieldMapping:
    return replace(field, value=_by_number(field.value)) if isinstance(field.value, Message) else field


def _suits(descriptor: Descriptor, shape: Message) -> bool:
    """Return whether the fast writer writes every field as the reference does."""
    declared = {field.number: field for field in fields_of(descriptor)}
    for field in shape.fields:
        one = declared[field.number]
        is_unpacked = field.cardinality is Cardinality.REPEATED and one.type not in NOT_PACKABLE and not one.is_packed
        if one.is_extension or is_unpacked:
            return False
        message = one.message_type
        if field.cardinality is Cardinality.MAP and message is not None:
            message = message.fields_by_number[2].message_type
        if isinstance(field.value, Message) and (message is None or not _suits(message, field.value)):
            return False
    return True


@lru_cache(maxsize=1024)
def encoder_of(descriptor_set: bytes, message: str) -> PayloadEncoder:
    """Return the process's one encoder of this message."""
    return PayloadEncoder(descriptor_set, message)
