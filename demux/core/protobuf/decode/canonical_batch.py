"""Which payloads are surely canonical, found for a whole batch at once; a miss costs a look by `Canonical`.

`ptars` reads the batch and writes it again (in Rust). A writer says a thing in one way only, so bytes that come back as
they were hold each field once, in its place and its shortest form, and nothing else. Three things come back that need
not be canonical: several members of a oneof, messages that are read as bytes (JSON text), and a list that is packed
although the schema says it is not. They are looked for in the columns. A map key that comes twice and a number of a
closed enum without a name are left to `demux.core.protobuf.decode.arrow_columns`, which looks at each of them anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import ptars
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorSet

from demux.core.protobuf.decode.lowered_descriptor import ROOT, can_lower, lower_message
from demux.core.protobuf.schema.column_mapping import (
    Cardinality,
    FieldMapping,
    JsonText,
    Message,
    TimestampValue,
    Value,
)
from demux.core.protobuf.schema.descriptor_pool import NOT_PACKABLE, fields_of, has_required, pool_of


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


_Flags = npt.NDArray[np.bool_]
# tells for each value of a column whether bytes that come back as they were leave it doubtful
_Doubt = Callable[[pa.Array], _Flags]

# ptars (0.0.25) skips groups inside groups by recursion, a byte or more a level: deeper ones end the process
_MOST_BYTES = 4096
# each costs something in every row, set or not; the slow test looks at what is set. With more than 100, a message could
# be nested deeper than google.protobuf reads
_MOST_COLUMNS = 100
# without map_value_nullable it panics at an entry that has no value
_PTARS_CONFIG = ptars.PtarsConfig(list_value_name="element", map_value_nullable=True)


class CanonicalReader(Protocol):
    """Reads payloads into columns; unchecked ones by `read_all` alone."""

    def array_to_record_batch(self, payloads: pa.Array) -> pa.RecordBatch:
        """Return one row for each payload."""


class Parser(CanonicalReader, Protocol):
    """Also writes columns as payloads."""

    def record_batch_to_array(self, read: pa.RecordBatch) -> pa.Array:
        """Return one payload for each row."""

    def schema(self) -> pa.Schema:
        """Return the columns."""


class QuickCheck:
    """Finds payloads of one message that are surely canonical."""

    def __init__(self, descriptor: Descriptor, shape: Message) -> None:
        """Prepare for a message with fields, without required ones and groups."""
        self._writer = parser(with_listed_maps(lower_message(shape, "proto3")))
        self._written = self._writer.schema()
        self._doubt = _in_message(descriptor, shape)

    def proven(self, payloads: Payloads, read: pa.RecordBatch) -> _Flags:
        """Return for each payload whether it is surely canonical."""
        try:
            same = _flags(pc.equal(self._writer.record_batch_to_array(self._listed(read)), payloads.array))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a Rust panic is a BaseException
            return np.zeros(len(payloads), bool)
        return same & ~self._doubt(read.to_struct_array()) if self._doubt else same

    def _listed(self, read: pa.RecordBatch) -> pa.RecordBatch:
        # a map and a list of entries are the same buffers
        columns = [
            column if column.type == field.type else column.view(field.type)
            for column, field in zip(read.columns, self._written, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._written)


def parser(files: FileDescriptorSet) -> Parser:
    """Return the parser of a lowered message, which writes it too (`demux.core.protobuf.decode.lowered_descriptor`)."""
    root = pool_of(files).FindMessageTypeByName(ROOT)
    made: Parser = ptars.HandlerPool([root.file], config=_PTARS_CONFIG).get_for_message(root)
    return made


def read_all(reader: CanonicalReader, payloads: Payloads) -> pa.RecordBatch | None:
    """Parse the payloads, correctly or not; None where the parser cannot read one, or could crash."""
    if payloads.longest > _MOST_BYTES:
        return None
    try:
        return reader.array_to_record_batch(payloads.array)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a Rust panic is a BaseException
        return None


def can_parse(shape: Message) -> bool:
    """Return whether there is a parser of the lowered message: it has fields, and no groups."""
    return bool(shape.fields) and can_lower(shape)


def quick_check(descriptor: Descriptor, shape: Message) -> QuickCheck | None:
    """Return the batch check for payloads of a message; None where it is not exact, or not faster."""
    if not can_parse(shape) or has_required(descriptor) or _columns(shape) > _MOST_COLUMNS:
        return None
    return QuickCheck(descriptor, shape)


def _columns(value: Value) -> int:
    match value:
        case Message(_, fields):
            return 1 + sum(_columns(field.value) + (field.key is not None) for field in fields)
        case TimestampValue():
            return 3
    return 1


def _flags(array: pa.Array) -> _Flags:
    flags: _Flags = array.to_numpy(zero_copy_only=False)
    return flags


def with_listed_maps(files: FileDescriptorSet) -> FileDescriptorSet:
    """Return the set with maps as lists of entries: a map's writer leaves out zeros, others write them."""
    for file in files.file:
        for message in file.message_type:
            for entry in message.nested_type:
                entry.options.ClearField("map_entry")
                for part in entry.field:
                    _always_written(part, entry)
    return files


def _always_written(part: FieldDescriptorProto, entry: DescriptorProto) -> None:
    if part.type != FieldDescriptorProto.TYPE_MESSAGE:
        part.proto3_optional = True
        part.oneof_index = len(entry.oneof_decl)
        entry.oneof_decl.add(name=f"_{part.name}")


def _in_message(descriptor: Descriptor, shape: Message) -> _Doubt | None:
    declared: dict[int, FieldDescriptor] = {field.number: field for field in fields_of(descriptor)}
    inside = [
        (f"f{field.number}", doubt) for field in shape.fields if (doubt := _in_field(declared[field.number], field))
    ]
    oneofs = [[f"f{field.number}" for field in oneof.fields] for oneof in descriptor.oneofs if len(oneof.fields) > 1]
    if not inside and not oneofs:
        return None

    def doubtful(column: pa.StructArray) -> _Flags:
        found = np.zeros(len(column), bool)
        for name, doubt in inside:
            found |= doubt(column.field(name))
        for names in oneofs:
            found |= np.sum([_flags(column.field(name).is_valid()) for name in names], axis=0) > 1
        return found

    return doubtful


def _in_field(declared: FieldDescriptor, field: FieldMapping) -> _Doubt | None:
    message = declared.message_type
    if field.cardinality is Cardinality.MAP:
        assert message is not None
        message = message.fields_by_number[2].message_type
    doubt = _in_value(message, field.value)
    match field.cardinality:
        case Cardinality.SINGULAR:
            return doubt
        case Cardinality.REPEATED if _is_unpacked(declared):
            return _in_list(_always)
        case Cardinality.REPEATED | Cardinality.MAP:
            return doubt and _in_list(doubt)


def _is_unpacked(declared: FieldDescriptor) -> bool:
    # ptars packs every list that can be
    return declared.type not in NOT_PACKABLE and not declared.is_packed


def _always(column: pa.Array) -> _Flags:
    return np.ones(len(column), bool)


def _in_value(descriptor: Descriptor | None, value: Value) -> _Doubt | None:
    match value:
        case JsonText() | Message(fields=()):
            return _not_empty
        case Message():
            assert descriptor is not None
            return _in_message(descriptor, value)
    return None


def _not_empty(column: pa.BinaryArray) -> _Flags:
    return _flags(pc.greater(pc.binary_length(column).fill_null(0), 0))


def _in_list(doubt: _Doubt) -> _Doubt:
    def doubtful(column: pa.ListArray | pa.MapArray) -> _Flags:
        values = column.items if isinstance(column, pa.MapArray) else column.values
        before = np.concatenate([[0], np.cumsum(doubt(values))])
        found: _Flags = np.diff(before[column.offsets.to_numpy()]) > 0
        return found

    return doubtful
