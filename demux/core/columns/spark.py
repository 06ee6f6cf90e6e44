"""Column types as Spark types and back; a column's field number and comment travel in the Spark field's metadata."""

from __future__ import annotations

import json

from pyspark.sql import types as spark
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from demux.core.columns.types import NO_FIELD, Array, Column, ColumnType, Map, Primitive, Struct

# Delta keeps a field's metadata in the table's schema: the table itself knows which field filled which column
NUMBER = "protobuf.number"
# spark's own key: catalogs show it
COMMENT = "comment"
# and which message a silver table holds
MESSAGE = "protobuf.message"

_PRIMITIVES: dict[Primitive, spark.DataType] = {
    Primitive.BOOLEAN: spark.BooleanType(),
    Primitive.INT: spark.IntegerType(),
    Primitive.BIGINT: spark.LongType(),
    Primitive.FLOAT: spark.FloatType(),
    Primitive.DOUBLE: spark.DoubleType(),
    Primitive.DECIMAL_20_0: spark.DecimalType(20, 0),
    Primitive.STRING: spark.StringType(),
    Primitive.BINARY: spark.BinaryType(),
    Primitive.TIMESTAMP: spark.TimestampType(),
}
_FROM_SPARK = {spark_type: primitive for primitive, spark_type in _PRIMITIVES.items()}


def spark_type(column_type: ColumnType) -> spark.DataType:
    """Return the Spark type of a column."""
    match column_type:
        case Primitive():
            return _PRIMITIVES[column_type]
        case Array(element):
            return spark.ArrayType(spark_type(element))
        case Map(key, value):
            return spark.MapType(_PRIMITIVES[key], spark_type(value))
        case Struct():
            return spark_struct(column_type)


def spark_struct(struct: Struct) -> spark.StructType:
    """Return the Spark fields of the columns, all nullable, numbers and comments in their metadata."""
    return spark.StructType([_spark_field(column) for column in struct])


def metadata_of(column: Column) -> dict[str, object]:
    """Return the metadata of the column's Spark field: its number and its comment, where it has them."""
    number = {NUMBER: column.number} if column.number != NO_FIELD else {}
    comment = {COMMENT: column.comment} if column.comment else {}
    return {**number, **comment}


def columns_of_spark(struct: spark.StructType) -> Struct:
    """Return the columns of a Spark schema that `spark_struct` made (also after Delta stored it).

    Raises:
        KeyError: a type that no column rule makes.
    """
    return Struct(
        tuple(
            Column(
                f.name,
                _column_type(f.dataType),
                int(f.metadata.get(NUMBER, NO_FIELD)),
                str(f.metadata.get(COMMENT, "")),
            )
            for f in struct.fields
        )
    )


def message_in(schema: spark.StructType) -> str | None:
    """Return the full name of the message that a silver table of this schema holds; None while no column says so."""
    messages = (field.metadata.get(MESSAGE) for field in schema.fields)
    return next((name for name in messages if name is not None), None)


def columns_in_json(text: str) -> Struct:
    """Return the columns of such a schema in Spark's JSON.

    Raises:
        KeyError: a type that no column rule makes.
    """
    return columns_of_spark(spark.StructType.fromJson(json.loads(text)))


def _spark_field(column: Column) -> spark.StructField:
    return spark.StructField(column.name, spark_type(column.type), nullable=True, metadata=metadata_of(column))


def _column_type(data_type: spark.DataType) -> ColumnType:
    match data_type:
        case spark.ArrayType():
            return Array(_column_type(data_type.elementType))
        case spark.MapType():
            return Map(_FROM_SPARK[data_type.keyType], _column_type(data_type.valueType))
        case spark.StructType():
            return columns_of_spark(data_type)
        case _:
            return _FROM_SPARK[data_type]


def with_columns(
    schema: StructType, columns: Struct, message: str | None = None, *, comments: bool = False
) -> StructType | None:
    """Return the schema with these columns, in their order; None where that would rewrite rows.

    Columns that are there keep their types and their metadata; those that only the table has come first.

    Args:
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
