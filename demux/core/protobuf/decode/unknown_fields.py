"""The fields of a payload that a table has no column for: the value of `_rescued`, for every decoder.

It is the payload itself without what has a column, as Protobuf writes it: fields that the row's own schema does not
know, at any depth, numbers of a closed enum that have no name among them, and those that the table has no column for. A
message stays where something in it is left over. In a list of messages each keeps its place, empty ones in between; an
entry of a map keeps its key, and is left over as a whole where it has an unknown field of its own, as `google.protobuf`
does not take it into the map. What is inside a `google.protobuf.Any` counts as known.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.unknown_fields import UnknownFieldSet

from demux.core.columns.types import Array, Column, ColumnType, Map, Struct
from demux.core.protobuf.schema.column_mapping import is_map
from demux.core.protobuf.schema.descriptor_pool import Readable, is_repeated

# an entry's fields: 1 is the key
_VALUE = 2

Row = Mapping[str, Any]


class Leftovers:
    """Finds the fields without a column in payloads of one message, one by one."""

    def __init__(self, readable: Readable) -> None:
        """Prepare for a message."""
        # with maps as lists of entries, nothing in them is lost and their order is that of the payload
        self._message = readable.listed
        self._declared: Any = readable.message.DESCRIPTOR

    def of(self, payload: bytes, table: Struct, row: Row | None = None) -> bytes | None:
        """Return the fields of a valid payload that the table has no column for; None for nothing.

        Args:
            row: what they hold already (`rescue_fill`); a field whose column is not free is left over.
        """
        message = self._message()
        message.ParseFromString(payload)
        _clear(message, self._declared, table, row)
        # a required field may be gone
        return message.SerializePartialToString() or None


def is_free(field: FieldDescriptor, row: Row, columns: Mapping[int, Column]) -> bool:
    """Return whether a row has room for a field: its column is NULL or an empty list, its oneof has no other member.

    Args:
        row: values by column name.
        columns: of the row, by field number.
    """
    now = row[columns[field.number].name]
    if now is not None and not (is_repeated(field) and not now):
        return False
    members = field.containing_oneof.fields if field.containing_oneof is not None else ()
    return all(row[columns[other.number].name] is None for other in members if other.number in columns)


def _clear(message: Any, declared: Any, columns: Struct | None, row: Row | None) -> None:
    """Clear the fields of the message that have a column; without columns, all that its schema knows."""
    known = None if columns is None else columns.by_number()
    for field, value in message.ListFields():
        if known is not None and field.number not in known:
            continue
        own = field if field.is_extension else declared.fields_by_number[field.number]
        inside = None if known is None else _struct_in(known[field.number].type)
        now: Any = None
        if row is not None and known is not None and not is_free(own, row, known):
            now = row[known[field.number].name]
            if now is None or (inside is None and not is_map(own)):
                continue
        if field.message_type is None or not _left_in(value, own, inside, now):
            if field.is_extension:
                message.ClearExtension(field)
            else:
                message.ClearField(field.name)


def _left_in(value: Any, field: Any, inside: Struct | None, now: Any) -> bool:
    """Clear the messages of a field, and return whether anything is left in them."""
    if is_map(field):
        rows = dict(now or ())
        for at in reversed(range(len(value))):
            key, row = value[at].key, rows.get(value[at].key)
            if (key in rows and inside is None) or _left_in_entry(value[at], field.message_type, inside, row):
                continue
            del value[at]
        return bool(value)
    parts = value if is_repeated(field) else [value]
    rows_of_parts = (now if is_repeated(field) else [now]) or []
    for part, row in zip_longest(parts, rows_of_parts[: len(parts)]):
        _clear(part, field.message_type, inside, row)
    return any(map(_holds, parts))


def _left_in_entry(entry: Any, declared: Any, inside: Struct | None, row: Row | None) -> bool:
    """Clear an entry's value, and return whether anything is left besides the key."""
    if len(UnknownFieldSet(entry)):
        return True
    held = declared.fields_by_number[_VALUE].message_type
    if held is not None and entry.HasField("value"):
        _clear(entry.value, held, inside, row)
    if held is None or not _holds(entry.value):
        entry.ClearField("value")
    return bool(entry.HasField("value"))


def _holds(message: Any) -> bool:
    # not by its size, which a message without its required fields does not tell
    return bool(message.ListFields() or len(UnknownFieldSet(message)))


def _struct_in(column_type: ColumnType) -> Struct | None:
    """Return the columns that a column's messages fill; None where it holds a message as one value, or none."""
    match column_type:
        case Struct():
            return column_type
        case Array(inside) | Map(_, inside):
            return _struct_in(inside)
        case _:
            return None
