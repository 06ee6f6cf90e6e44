"""The column rules as Spark SQL over the struct that `from_protobuf` reads (`from_protobuf_checks`). Pure text."""

from __future__ import annotations

from google.protobuf.descriptor import FieldDescriptor

from demux.core.columns.types import NO_FIELD, Array, Column, ColumnType, Map, Struct
from demux.core.names import sql_string
from demux.core.protobuf.schema.column_mapping import (
    Cardinality,
    Enumeration,
    FieldMapping,
    FieldPresence,
    JsonText,
    Message,
    NullableScalar,
    Scalar,
    TimestampValue,
    Value,
)

_UNSIGNED_32 = {FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_FIXED32}
_UNSIGNED_64 = {FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64}
_TEXT_ZERO = {
    FieldDescriptor.TYPE_BOOL: "FALSE",
    FieldDescriptor.TYPE_STRING: "''",
    FieldDescriptor.TYPE_BYTES: "X''",
}


def row_sql(message: str, shape: Message, table: Struct) -> str:
    """Return the table's row as a struct of the same columns by position; NULL where the message is.

    Its columns have the writer's types and no names; a cast to the table's type gives both.

    Args:
        message: the SQL of the parsed struct.
        shape: the writer's message, without JSON text.
        table: columns into which the shape's fit (`demux.core.columns.schema_merge`).
    """
    return _struct(message, shape, table, 0)


def _struct(sql: str, shape: Message, table: Struct, depth: int) -> str:
    fields = {field.number: field for field in shape.fields}
    columns = ", ".join(_column(sql, shape, fields.get(column.number), column, depth) for column in table)
    return f"IF({sql} IS NULL, NULL, struct({columns}))"


def _column(sql: str, shape: Message, field: FieldMapping | None, column: Column, depth: int) -> str:
    if field is None:
        # the stand-in for a message without fields says that the message is set
        return "TRUE" if not shape.fields and column.number == NO_FIELD else "NULL"
    path, item = f"{sql}.f{field.number}", f"e{depth}"
    match field.cardinality, column.type:
        case Cardinality.REPEATED, Array(element):
            return _transformed("transform", path, item, _single(item, field.value, element, depth + 1), item)
        case Cardinality.MAP, Map(_, element):
            assert field.key is not None
            key = f"k{depth}"
            both = f"({key}, {item})"
            keyed = _transformed("transform_keys", path, key, _scalar(key, field.key), both)
            return _transformed("transform_values", keyed, item, _single(item, field.value, element, depth + 1), both)
        case _:
            if field.presence is FieldPresence.IMPLICIT and isinstance(field.value, Scalar | Enumeration):
                path = f"coalesce({path}, {_zero(field.value)})"
            return _single(path, field.value, column.type, depth)


def _transformed(function: str, sql: str, variable: str, result: str, parameters: str) -> str:
    return sql if result == variable else f"{function}({sql}, {parameters} -> {result})"


def _single(sql: str, value: Value, target: ColumnType, depth: int) -> str:
    match value:
        case Scalar():
            return _scalar(sql, value)
        case Enumeration(names):
            cases = " ".join(f"WHEN {number} THEN {sql_string(name)}" for number, name in names)
            return f"CASE {sql} {cases} ELSE CAST({sql} AS STRING) END"
        case NullableScalar(scalar):
            return f"IF({sql} IS NULL, NULL, {_scalar(f'coalesce({sql}.f1, {_zero(scalar)})', scalar)})"
        case TimestampValue():
            micros = f"coalesce({sql}.f1, 0L) * 1000000L + coalesce({sql}.f2, 0) DIV 1000"
            return f"IF({sql} IS NULL, NULL, timestamp_micros({micros}))"
        case JsonText(message):
            raise AssertionError(f"{message} has no fixed shape")
        case Message():
            assert isinstance(target, Struct)
            return _struct(sql, value, target, depth)


def _scalar(sql: str, scalar: Scalar) -> str:
    # spark reads unsigned numbers as signed ones of the same bits
    if scalar.proto_type in _UNSIGNED_32:
        return f"CAST({sql} AS BIGINT) & 4294967295L"
    if scalar.proto_type in _UNSIGNED_64:
        signed = f"CAST({sql} AS DECIMAL(20, 0))"
        return f"CAST(IF({sql} < 0, {signed} + 18446744073709551616BD, {signed}) AS DECIMAL(20, 0))"
    return sql


def _zero(value: Scalar | Enumeration) -> str:
    # a plain 0 takes the type of the value that it replaces
    return _TEXT_ZERO.get(value.proto_type, "0") if isinstance(value, Scalar) else "0"
