"""Columns added to a silver table: before the origin's, inside messages too, and again without effect."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from demux.columns import Array, Column, Map, Primitive, Struct
from demux.spark_types import spark_struct
from demux.tables import SILVER_ORIGIN
from deserializer.sink import Silver, evolve, silver_table
from tests.spark.tables import names_in

ORIGIN = [column.name for column in SILVER_ORIGIN]
INT, TEXT = Primitive.INT, Primitive.STRING


def inner(*names: str) -> Struct:
    return Struct(tuple(Column(name, INT, number) for number, name in enumerate(names, start=1)))


BEFORE = Struct(
    (
        Column("a", INT, 1),
        Column("one", inner("x"), 2),
        Column("many", Array(inner("x")), 3),
        Column("by_name", Map(TEXT, inner("x")), 4),
    )
)
AFTER = Struct(
    (
        Column("a", INT, 1),
        Column("one", inner("x", "y"), 2),
        Column("many", Array(inner("x", "y")), 3),
        Column("by_name", Map(TEXT, inner("x", "y")), 4),
        Column("b", TEXT, 5),
        Column("select", Primitive.DECIMAL_20_0, 6),
    )
)


@pytest.fixture
def table(tmp_path: Path) -> str:
    # a folder that must be quoted
    return str(tmp_path / "it's `a` folder" / "table")


def make(spark: SparkSession, table: str, payload: Struct) -> None:
    columns = spark_struct(Struct((*payload, *SILVER_ORIGIN)))
    row = [1, (2,), [(3,)], {"k": (4,)}][: len(payload.columns)] + [None] * len(ORIGIN)
    spark.createDataFrame([tuple(row)], columns).coalesce(1).write.format("delta").save(table)


def test_a_table_that_is_not_there_has_no_columns(spark: SparkSession, table: str) -> None:
    assert silver_table(spark, table) is None


def test_columns_are_read_back_with_their_field_numbers(spark: SparkSession, table: str) -> None:
    make(spark, table, BEFORE)
    assert silver_table(spark, table) == Silver(BEFORE, None)


def test_new_columns_come_before_the_origin_and_new_fields_into_their_messages(spark: SparkSession, table: str) -> None:
    make(spark, table, BEFORE)
    evolve(spark, table, AFTER, "game.v1.Event")
    assert silver_table(spark, table) == Silver(AFTER, "game.v1.Event")
    assert names_in(table) == ["a", "one", "many", "by_name", "b", "select", *ORIGIN]
    (row,) = DeltaTable(table).to_pyarrow_table().to_pylist()
    assert {name: row[name] for name in ("a", "one", "many", "by_name", "b", "select")} == {
        "a": 1,
        "one": {"x": 2, "y": None},
        "many": [{"x": 3, "y": None}],
        "by_name": [("k", {"x": 4, "y": None})],
        "b": None,
        "select": None,
    }


def test_a_second_call_changes_nothing(spark: SparkSession, table: str) -> None:
    make(spark, table, BEFORE)
    evolve(spark, table, AFTER)
    version = DeltaTable(table).version()
    evolve(spark, table, AFTER)
    assert DeltaTable(table).version() == version


def test_the_first_columns_of_an_empty_message_come_first(spark: SparkSession, table: str) -> None:
    make(spark, table, Struct(()))
    evolve(spark, table, inner("x", "y"))
    assert names_in(table) == ["x", "y", *ORIGIN]


def test_columns_that_a_crash_left_behind_the_origin_are_moved(spark: SparkSession, table: str) -> None:
    make(spark, table, BEFORE)
    new = spark_struct(Struct((*AFTER, *SILVER_ORIGIN)))
    spark.createDataFrame([], new).write.format("delta").mode("append").option("mergeSchema", "true").save(table)
    assert names_in(table)[-2:] == ["b", "select"]
    evolve(spark, table, AFTER)
    assert names_in(table) == ["a", "one", "many", "by_name", "b", "select", *ORIGIN]
