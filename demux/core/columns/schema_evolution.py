"""A table's schema with further columns, in one step. Pure."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from demux.core.columns.spark import COMMENT, MESSAGE, message_in, metadata_of, spark_type
from demux.core.columns.types import Array, Column, ColumnType, Map, Primitive, Struct


def with_columns(
    schema: StructType, columns: Struct, message: str | None = None, *, comments: bool = False
) -> StructType | None:
    """Return the schema with these columns, in their order; None where that would rewrite rows.

    Columns that are there keep their types and their metadata; those that only the table has come first.

    Args:
        schema: the table's.
        columns: what the table is to have.
        message: the full name of the message that it holds; the first column says so where none does yet.
        comments: whether columns that are there get the comments of `columns`, where these have one.
    """
    fields = _fields(schema, columns, comments)
    if fields and message is not None and message_in(schema) is None:
        first, *others = fields
        fields = [
            StructField(first.name, first.dataType, first.nullable, {**first.metadata, MESSAGE: message}),
            *others,
        ]
    return None if fields is None else StructType(fields)


def _fields(schema: StructType, columns: Struct, comments: bool) -> list[StructField] | None:
    before = {field.name.lower(): field for field in schema.fields}
    wanted = {column.name.lower() for column in columns}
    kept: list[StructField | None] = [field for name, field in before.items() if name not in wanted]
    fields = kept + [_field(before.get(column.name.lower()), column, comments) for column in columns]
    return None if None in fields else [field for field in fields if field is not None]


def _field(before: StructField | None, column: Column, comments: bool) -> StructField | None:
    if before is None:
        return StructField(column.name, spark_type(column.type), nullable=True, metadata=metadata_of(column))
    data_type = _type(before.dataType, column.type, comments)
    comment = {COMMENT: column.comment} if comments and column.comment else {}
    metadata = {**before.metadata, **comment}
    return None if data_type is None else StructField(before.name, data_type, before.nullable, metadata)


def _type(before: DataType, wanted: ColumnType, comments: bool) -> DataType | None:
    match before, wanted:
        case StructType(), Struct():
            fields = _fields(before, wanted, comments)
            return None if fields is None else StructType(fields)
        case ArrayType(), Array(element):
            inside = _type(before.elementType, element, comments)
            return None if inside is None else ArrayType(inside, before.containsNull)
        case MapType(), Map(key, value):
            inside = _type(before.valueType, value, comments)
            if inside is None or before.keyType != spark_type(key):
                return None
            return MapType(before.keyType, inside, before.valueContainsNull)
        case _, Primitive():
            return before if before == spark_type(wanted) else None
        case _:
            return None
