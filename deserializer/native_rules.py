"""The column rules as Spark SQL over the struct that `from_protobuf` reads by the lowered descriptor. Pure text.

The struct has a field `f<number>` for each field of the shape: NULL where a singular field is not on the wire, its
value where it is, lists and maps never NULL. Every expression is NULL-safe under a NULL struct.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from google.protobuf.descriptor import FieldDescriptor

from demux.columns import NO_FIELD, Array, Column, ColumnType, Map, Struct
from demux.names import sql_string
from demux.protobuf.reference import MAX_NANOS, MAX_SECONDS, MIN_SECONDS
from demux.protobuf.shape import (
    Cardinality,
    Enumeration,
    Field,
    JsonText,
    Message,
    Presence,
    Scalar,
    TimestampValue,
    Value,
    Wrapped,
)

# message name -> the numbers of each of its oneofs' members
Oneofs = Mapping[str, tuple[tuple[int, ...], ...]]

_UNSIGNED_32 = {FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_FIXED32}
_UNSIGNED_64 = {FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64}
_ZERO = {
    FieldDescriptor.TYPE_DOUBLE: "0D",
    FieldDescriptor.TYPE_FLOAT: "CAST(0 AS FLOAT)",
    FieldDescriptor.TYPE_INT64: "0L",
    FieldDescriptor.TYPE_SINT64: "0L",
    FieldDescriptor.TYPE_SFIXED64: "0L",
    FieldDescriptor.TYPE_UINT64: "0L",
    FieldDescriptor.TYPE_FIXED64: "0L",
    FieldDescriptor.TYPE_BOOL: "FALSE",
    FieldDescriptor.TYPE_STRING: "''",
    FieldDescriptor.TYPE_BYTES: "X''",
}


def row_sql(message: str, shape: Message, table: Struct) -> str:
    """Return the table's row as a struct, by position and before widening; NULL where the message is.

    Args:
        message: the SQL of the parsed struct.
        shape: the writer's message.
        table: the table's payload columns, into which the shape's fit (`demux.alignment`).
    """
    return _struct(message, shape, table, 0)


def canonical_sql(message: str, shape: Message, oneofs: Oneofs) -> str:
    """Return a condition that, on bytes equal to the struct written again, says that every parser reads them alike.

    It asks for what the lowered descriptor leaves open: distinct map keys, at most one member of a oneof, nothing
    inside a message without fields.
    """

    def of_message(sql: str, inner: Message, depth: int) -> Iterator[str]:
        for members in oneofs.get(inner.full_name, ()):
            yield f"{' + '.join(f'IF({sql}.f{number} IS NULL, 0, 1)' for number in members)} <= 1"
        for field in inner.fields:
            path = f"{sql}.f{field.number}"
            if field.cardinality is Cardinality.MAP:
                yield f"size(array_distinct(map_keys({path}))) = size({path})"
            yield from _for_each(path, field, depth, of_value)

    def of_value(sql: str, value: Value, depth: int) -> Iterator[str]:
        match value:
            case Message(fields=()):
                yield f"octet_length({sql}) = 0"
            case Message():
                yield from of_message(sql, value, depth)
            case _:
                pass

    return _all(of_message(message, shape, 0))


def lawful_sql(message: str, shape: Message) -> str:
    """Return the condition that the message has its required fields and only times that a column can hold."""

    def of_message(sql: str, inner: Message, depth: int) -> Iterator[str]:
        for field in inner.fields:
            if field.presence is Presence.REQUIRED:
                yield f"{sql}.f{field.number} IS NOT NULL"
            yield from _for_each(f"{sql}.f{field.number}", field, depth, of_value)

    def of_value(sql: str, value: Value, depth: int) -> Iterator[str]:
        match value:
            case TimestampValue():
                yield f"coalesce({sql}.f1, 0L) BETWEEN {MIN_SECONDS}L AND {MAX_SECONDS}L"
                yield f"coalesce({sql}.f2, 0) BETWEEN 0 AND {MAX_NANOS}"
            case Message():
                yield from of_message(sql, value, depth)
            case _:
                pass

    return _all([f"{message} IS NOT NULL", *of_message(message, shape, 0)])


def _for_each(
    path: str, field: Field, depth: int, conditions: Callable[[str, Value, int], Iterator[str]]
) -> Iterator[str]:
    """Yield one condition that holds for every value of the field, or none where there is nothing to ask."""
    if field.cardinality is Cardinality.SINGULAR:
        if inside := [*conditions(path, field.value, depth)]:
            yield f"({path} IS NULL OR {_all(inside)})"
        return
    element = f"e{depth}"
    if inside := [*conditions(element, field.value, depth + 1)]:
        values = f"map_values({path})" if field.cardinality is Cardinality.MAP else path
        yield f"forall({values}, {element} -> {_all(inside)})"


def _all(conditions: Iterator[str] | list[str]) -> str:
    return " AND ".join(conditions) or "TRUE"


def _struct(sql: str, shape: Message, table: Struct, depth: int) -> str:
    fields = {field.number: field for field in shape.fields}
    columns = ", ".join(_column(sql, shape, fields.get(column.number), column, depth) for column in table)
    return f"IF({sql} IS NULL, NULL, struct({columns}))"


def _column(sql: str, shape: Message, field: Field | None, column: Column, depth: int) -> str:
    if field is None:
        # the stand-in of a message without fields says that the message is set
        return "TRUE" if not shape.fields and column.number == NO_FIELD else "NULL"
    path = f"{sql}.f{field.number}"
    match field.cardinality, column.type:
        case Cardinality.REPEATED, Array(element):
            item = f"e{depth}"
            return _transformed("transform", path, item, _single(item, field.value, element, depth + 1))
        case Cardinality.MAP, Map(_, element):
            assert field.key is not None
            key, item = f"k{depth}", f"e{depth}"
            keyed = _transformed("transform_keys", path, key, _scalar(key, field.key), f"({key}, {item})")
            value = _single(item, field.value, element, depth + 1)
            return _transformed("transform_values", keyed, item, value, f"({key}, {item})")
        case _:
            if field.presence is Presence.IMPLICIT and isinstance(field.value, Scalar | Enumeration):
                path = f"coalesce({path}, {_zero(field.value)})"
            return _single(path, field.value, column.type, depth)


def _transformed(function: str, sql: str, name: str, result: str, parameters: str | None = None) -> str:
    return sql if result == name else f"{function}({sql}, {parameters or name} -> {result})"


def _single(sql: str, value: Value, target: ColumnType, depth: int) -> str:
    match value:
        case Scalar():
            return _scalar(sql, value)
        case Enumeration(names):
            cases = " ".join(f"WHEN {number} THEN {sql_string(name)}" for number, name in names)
            return f"CASE {sql} {cases} ELSE CAST({sql} AS STRING) END"
        case Wrapped(scalar):
            return f"IF({sql} IS NULL, NULL, {_scalar(f'coalesce({sql}.f1, {_zero(scalar)})', scalar)})"
        case TimestampValue():
            micros = f"coalesce({sql}.f1, 0L) * 1000000L + coalesce({sql}.f2, 0) DIV 1000"
            return f"IF({sql} IS NULL, NULL, timestamp_micros({micros}))"
        case JsonText(message):
            raise AssertionError(f"{message} is not for from_protobuf")
        case Message():
            assert isinstance(target, Struct)
            return _struct(sql, value, target, depth)


def _scalar(sql: str, scalar: Scalar) -> str:
    if scalar.proto_type in _UNSIGNED_32:
        return f"CAST({sql} AS BIGINT) & 4294967295L"
    if scalar.proto_type in _UNSIGNED_64:
        signed = f"CAST({sql} AS DECIMAL(20, 0))"
        return f"IF({sql} < 0, {signed} + 18446744073709551616BD, {signed})"
    return sql


def _zero(value: Scalar | Enumeration) -> str:
    return "0" if isinstance(value, Enumeration) else _ZERO.get(value.proto_type, "0")
