"""Moves the rescued fields of a payload (`unknown_fields`) into columns that its table got later.

Only what is free is filled (`unknown_fields.is_free`; in a map, a key that it does not have), and only with
what is on the wire: a field that is unset in the leftover tells nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import DecodeError

from demux.core.columns.arrow import arrow_type, project
from demux.core.columns.types import Array, Column, Map, Struct
from demux.core.protobuf.decode.reference_parser import MalformedRow, Row, column_value
from demux.core.protobuf.decode.unknown_fields import Leftovers, is_free
from demux.core.protobuf.schema.column_mapping import Cardinality, FieldMapping, Message, column_of, shape_of
from demux.core.protobuf.schema.descriptor_pool import Readable, pool_of


class RescueFill:
    """Fills rows of a table by one schema."""

    def __init__(self, descriptor_set: bytes, message: str, reserved: frozenset[str]) -> None:
        """Prepare for a message of a descriptor set; `reserved` as for `shape_of`."""
        files = FileDescriptorSet.FromString(descriptor_set)
        self._pool = pool_of(files)
        self._shape = shape_of(self._pool.FindMessageTypeByName(message), reserved)
        readable = Readable(files, self._pool, message)
        self._message = readable.message
        self._leftovers = Leftovers(readable)

    def filled(self, row: Mapping[str, Any], leftover: bytes, table: Struct) -> tuple[Row, bytes | None]:
        """Return the row with what this schema makes of the leftover, and what is still left over; None for nothing.

        What the schema cannot read, or has no place in its column, stays as it is.
        """
        try:
            parsed = self._message.FromString(leftover)
            result, rest = self._in(row, parsed, self._shape, table), self._leftovers.of(leftover, table, row)
        except (DecodeError, MalformedRow, UnicodeDecodeError):
            return dict(row), leftover
        # written again, the same fields may be in another order
        return result, leftover if rest is not None and len(rest) == len(leftover) else rest

    def _in(self, row: Mapping[str, Any], message: Any, shape: Message, table: Struct) -> Row:
        present = {field.number: (field, value) for field, value in message.ListFields()}
        columns = table.by_number()
        result = dict(row)
        for field in shape.fields:
            if field.number in present and field.number in columns:
                column = columns[field.number]
                declared, value = present[field.number]
                result[column.name] = (
                    self._fresh(field, value, column)
                    if is_free(declared, row, columns)
                    else self._inside(row[column.name], value, field, column)
                )
        return result

    def _inside(self, now: Any, value: Any, field: FieldMapping, column: Column) -> Any:
        """Return a column's value with its messages filled, and its map with further keys; any other value stays."""
        shape = field.value
        match field.cardinality, column.type:
            case Cardinality.SINGULAR, Struct() if isinstance(shape, Message) and now is not None:
                return self._in(now, value, shape, column.type)
            case Cardinality.REPEATED, Array(Struct() as inside) if isinstance(shape, Message):
                # in a leftover each message has the place that it had
                parts = zip(now, value, strict=False)
                return [*(self._in(one, part, shape, inside) for one, part in parts), *now[len(value) :]]
            case Cardinality.MAP, Map():
                return self._in_map(dict(now), dict(value.items()), field, column)
            case _:
                return now

    def _in_map(self, now: dict[Any, Any], sent: dict[Any, Any], field: FieldMapping, column: Column) -> list[Any]:
        result = dict(now)
        match field.value, column.type:
            case Message() as shape, Map(_, Struct() as inside):
                result |= {key: self._in(now[key], sent[key], shape, inside) for key in now if key in sent}
        further = {key: value for key, value in sent.items() if key not in now}
        return [*result.items(), *self._fresh(field, further, column)]

    def _fresh(self, field: FieldMapping, value: Any, column: Column) -> Any:
        """Return the value of a column that the row has none for, as if it had been decoded with this schema."""
        writer = column_of(field)
        values = pa.array([column_value(field, {field.number: value}, self._pool)], arrow_type(writer.type))
        (projected,) = project([values], Struct((writer,)), Struct((column,)), 1)
        return projected[0].as_py()


@lru_cache(maxsize=256)
def filling_of(descriptor_set: bytes, message: str, reserved: frozenset[str]) -> RescueFill:
    """Return the process's one filling by this message."""
    return RescueFill(descriptor_set, message, reserved)
