"""Decodes payloads of one schema to columns: canonical ones by a fast parser, all others by the reference.

`ptars` reads the whole batch straight into Arrow. What it read counts where the payload, written again, is the same
bytes (`canonical_form`): then it holds only known fields in their shortest form. Where it is not (unknown or
doubled fields, foreign encodings), or the reference refuses it, the row is decided by the reference alone. So the two
cannot disagree, and a bad row costs itself, and its batch the quick look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from demux.core.columns.arrow import arrow_type
from demux.core.columns.schema_merge import align
from demux.core.columns.types import Struct
from demux.core.errors import SchemaInvalid
from demux.core.protobuf.decode.arrow_columns import ArrowRules
from demux.core.protobuf.decode.canonical_batch import (
    CanonicalReader,
    Payloads,
    can_parse,
    parser,
    quick_check,
    read_all,
)
from demux.core.protobuf.decode.canonical_form import Canonical
from demux.core.protobuf.decode.lowered_descriptor import lower_message
from demux.core.protobuf.decode.reference_parser import MalformedRow, ReferenceParser, Row
from demux.core.protobuf.decode.unknown_fields import Leftovers
from demux.core.protobuf.schema.column_mapping import Message as MessageShape
from demux.core.protobuf.schema.column_mapping import columns_of, shape_of
from demux.core.protobuf.schema.descriptor_pool import Readable, pool_of


@dataclass(frozen=True, slots=True)
class DecodedBatch:
    """The result of decoding a batch of payloads.

    Attributes:
        good: positions in the batch, in the order of `columns`' rows; a range where all rows are there, in their order.
        columns: one array for each column of the schema's own shape.
        bad: position in the batch and why, for each row that is not good.
        doubtful: positions of the good ones that may hold fields which the schema does not know.
    """

    good: Sequence[int]
    columns: list[pa.Array]
    bad: tuple[tuple[int, str], ...]
    doubtful: tuple[int, ...] = ()


class PayloadDecoder:
    """Decodes payloads of one message; costly to make, kept for the life of a process by `decoder_of`."""

    def __init__(self, descriptor_set: bytes, message: str, reserved: frozenset[str]) -> None:
        """Prepare for a message of a descriptor set; `reserved` as for `shape_of`.

        Raises:
            SchemaInvalid: the set has no such message.
        """
        files = FileDescriptorSet.FromString(descriptor_set)
        pool = pool_of(files)
        try:
            descriptor = pool.FindMessageTypeByName(message)
        except KeyError:
            raise SchemaInvalid(
                f"The schema has no message {message!r}.", "Name one of its messages.", message=message
            ) from None
        self.shape: MessageShape = shape_of(descriptor, reserved)
        self.columns: Struct = columns_of(self.shape)
        self._pool = pool
        self._readable = Readable(files, pool, message)
        self._canonical = Canonical(self._readable, quick_check(descriptor, self.shape))
        self._rules = ArrowRules(pool)
        self._fast: CanonicalReader | None = (
            parser(lower_message(self.shape, "proto3")) if can_parse(self.shape) else None
        )

    def decode(self, given: pa.Array | Sequence[bytes]) -> DecodedBatch:
        """Return every payload's row or the reason why it has none; an array is BINARY, without NULLs."""
        payloads = Payloads.of(given)
        parsed = read_all(self._fast, payloads) if self._fast is not None else None
        fast, slow = self._split(payloads, parsed)
        parts = self._parse_by_halves(payloads, fast, slow) if parsed is None else self._good_part(parsed, fast, slow)
        if len(parts) == 1 and not slow:
            return DecodedBatch(*parts[0], ())
        good = [position for positions, _ in parts for position in positions]
        pieces = [columns for _, columns in parts]
        bad: list[tuple[int, str]] = []
        read: list[Row] = []
        doubtful: list[int] = []
        for position in slow:
            try:
                read.append(self._reference.row(payloads[position]))
                doubtful.append(position)
            except MalformedRow as refused:
                bad.append((position, str(refused)))
        good += doubtful
        if read or not pieces:
            pieces.append(self._from_rows(read))
        columns = [pa.concat_arrays(parts) if len(parts) > 1 else parts[0] for parts in zip(*pieces, strict=True)]
        return DecodedBatch(tuple(good), columns, tuple(sorted(bad)), tuple(doubtful))

    def rescued(self, given: pa.Array | Sequence[bytes], decoded: DecodedBatch, table: Struct) -> pa.Array:
        """Return the fields of the good payloads that the table has no column for (BINARY), in the order of `good`.

        Costs nothing for payloads that the fast parser read, where the table has a column for each of their fields.

        Args:
            table: columns into which the schema's fit, or which are too few for it (`demux.core.columns.schema_merge`).
        """
        some = decoded.good if drops(self.columns, table) else decoded.doubtful
        if not some:
            return pa.nulls(len(decoded.good), pa.binary())
        payloads = Payloads.of(given)
        left = {position: self._leftovers.of(payloads[position], table) for position in some}
        return pa.array([left.get(position) for position in decoded.good], pa.binary())

    def leftover(self, payload: bytes, table: Struct) -> bytes | None:
        """Return the fields of one payload that the table has no column for."""
        return self._leftovers.of(payload, table)

    def require_readable(self) -> None:
        """Check what is otherwise made when the first unusual payload comes.

        Raises:
            SchemaInvalid: it cannot be made, so that not every payload could be read.
        """
        self._readable.require()

    @cached_property
    def _reference(self) -> ReferenceParser:
        return ReferenceParser(self._readable.message, self.shape, self._pool)

    @cached_property
    def _leftovers(self) -> Leftovers:
        return Leftovers(self._readable)

    def _split(self, payloads: Payloads, parsed: pa.RecordBatch | None) -> tuple[Sequence[int], list[int]]:
        """Return the positions that the fast parser surely reads right, and the others."""
        if self._fast is None:
            return [], list(range(len(payloads)))
        return self._canonical.split(payloads, parsed)

    def _good_part(
        self, parsed: pa.RecordBatch, positions: Sequence[int], slow: list[int]
    ) -> list[tuple[Sequence[int], list[pa.Array]]]:
        """Return the columns of these of all rows; rows that break a rule are added to `slow`."""
        if not positions:
            return []
        chosen = parsed if len(positions) == len(parsed) else parsed.take(pa.array(positions, pa.int64()))
        return [self._apply_rules(chosen, positions, slow)]

    def _parse_by_halves(
        self, payloads: Payloads, positions: Sequence[int], slow: list[int]
    ) -> list[tuple[Sequence[int], list[pa.Array]]]:
        """Return the fast parser's columns; rows that it refuses or that break a rule are added to `slow`."""
        if not positions:
            return []
        assert self._fast is not None
        try:
            parsed = self._fast.array_to_record_batch(payloads.chosen(positions))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a Rust panic is a BaseException: halve until the row at fault is alone
            if len(positions) == 1:
                slow.extend(positions)
                return []
            half = len(positions) // 2
            return [
                *self._parse_by_halves(payloads, positions[:half], slow),
                *self._parse_by_halves(payloads, positions[half:], slow),
            ]
        return [self._apply_rules(parsed, positions, slow)]

    def _apply_rules(
        self, parsed: pa.RecordBatch, positions: Sequence[int], slow: list[int]
    ) -> tuple[Sequence[int], list[pa.Array]]:
        columns, broken = self._rules.columns(parsed, self.shape)
        if not len(broken):
            return positions, columns
        slow.extend(positions[row] for row in broken)
        kept = np.delete(np.arange(len(positions)), broken)
        return [positions[int(row)] for row in kept], [column.take(pa.array(kept)) for column in columns]

    def _from_rows(self, rows: list[Row]) -> list[pa.Array]:
        return [pa.array([row[column.name] for row in rows], arrow_type(column.type)) for column in self.columns]


@lru_cache(maxsize=4096)
def drops(writer: Struct, table: Struct) -> bool:
    """Return whether some of the writer's fields have no column in the table, at any depth."""
    return bool(align(table, writer).added)


@lru_cache(maxsize=4096)
def decoder_of(descriptor_set: bytes, message: str, reserved: frozenset[str] = frozenset()) -> PayloadDecoder:
    """Return the process's one decoder of this message."""
    return PayloadDecoder(descriptor_set, message, reserved)
