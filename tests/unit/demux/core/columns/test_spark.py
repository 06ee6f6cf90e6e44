"""Column types as Spark's, and back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as spark

from demux.core.columns.spark import columns_of_spark, spark_struct, spark_type
from demux.core.columns.types import EMPTY_STRUCT, NO_FIELD, Array, Column, ColumnType, Map, Primitive, Struct
from demux.core.tables import BRONZE, GAMES, QUARANTINE, ROUNDS, SCHEMAS, SILVER_ORIGIN, SOURCE_OPTIONAL

primitives = st.sampled_from(Primitive)


def structs(types: st.SearchStrategy[ColumnType]) -> st.SearchStrategy[Struct]:
    columns = st.builds(Column, st.text("abc_é.", min_size=1, max_size=5), types, st.integers(NO_FIELD, 536_870_911))
    return st.lists(columns, max_size=4, unique_by=lambda column: column.name).map(lambda some: Struct(tuple(some)))


column_types = st.recursive(
    primitives,
    lambda types: st.builds(Array, types) | st.builds(Map, primitives, types) | structs(types),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("column_type", "text"),
    [
        (Primitive.BOOLEAN, "boolean"),
        (Primitive.INT, "int"),
        (Primitive.BIGINT, "bigint"),
        (Primitive.FLOAT, "float"),
        (Primitive.DOUBLE, "double"),
        (Primitive.DECIMAL_20_0, "decimal(20,0)"),
        (Primitive.STRING, "string"),
        (Primitive.BINARY, "binary"),
        (Primitive.TIMESTAMP, "timestamp"),
        (Array(Primitive.INT), "array<int>"),
        (Map(Primitive.STRING, Array(Primitive.BIGINT)), "map<string,array<bigint>>"),
        (Struct((Column("a", Primitive.INT, 1), Column("b", Primitive.BINARY, 2))), "struct<a:int,b:binary>"),
        (EMPTY_STRUCT, "struct<_empty:boolean>"),
    ],
)
def test_every_type_has_its_name_in_spark(column_type: ColumnType, text: str) -> None:
    assert spark_type(column_type).simpleString() == text


def test_a_column_carries_its_field_number_and_is_nullable() -> None:
    fields = spark_struct(Struct((Column("a", Primitive.INT, 7), Column("b", Primitive.INT)))).fields
    assert [(field.name, field.metadata, field.nullable) for field in fields] == [
        ("a", {"protobuf.number": 7}, True),
        ("b", {}, True),
    ]


@given(structs(column_types))
def test_columns_come_back_also_through_the_schema_that_delta_stores(columns: Struct) -> None:
    stored = spark.StructType.fromJson(json.loads(spark_struct(columns).json()))
    assert columns_of_spark(spark_struct(columns)) == columns
    assert columns_of_spark(stored) == columns


@pytest.mark.parametrize("table", [BRONZE, QUARANTINE, SILVER_ORIGIN, SCHEMAS, GAMES, ROUNDS, SOURCE_OPTIONAL])
def test_the_columns_of_every_table_come_back(table: Struct) -> None:
    assert columns_of_spark(spark_struct(table)) == table


def test_a_type_that_no_column_rule_makes_is_refused() -> None:
    with pytest.raises(KeyError):
        columns_of_spark(spark.StructType([spark.StructField("a", spark.ShortType())]))
