"""Columns added to a silver table: before the origin's, inside messages too, and again without effect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from demux.core.columns.spark import spark_struct
from demux.core.columns.types import Array, Column, Map, Primitive, Struct
from demux.core.names import quote_identifier
from demux.core.storage.files import Storage
from demux.core.storage.table_address import TableAddress
from demux.core.tables import SILVER_ORIGIN
from deserializer.silver.evolve import evolve
from deserializer.silver.spark_table import SilverBySpark
from tests.support.spark.tables import names_in

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


def columns_and_message(spark: SparkSession, table: str) -> tuple[Struct, str | None]:
    found = SilverBySpark(spark, Storage(), table)
    return found.columns, found.message


def test_a_table_that_is_not_there_has_no_columns(spark: SparkSession, table: str) -> None:
    assert not SilverBySpark(spark, Storage(), table).exists


def test_columns_are_read_back_with_their_field_numbers(spark: SparkSession, table: str) -> None:
    make(spark, table, BEFORE)
    assert columns_and_message(spark, table) == (BEFORE, None)


def test_new_columns_come_before_the_origin_and_new_fields_into_their_messages(spark: SparkSession, table: str) -> None:
    make(spark, table, BEFORE)
    evolve(spark, TableAddress(table), AFTER, "game.v1.Event")
    assert columns_and_message(spark, table) == (AFTER, "game.v1.Event")
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
    evolve(spark, TableAddress(table), AFTER)
    version = DeltaTable(table).version()
    evolve(spark, TableAddress(table), AFTER)
    assert DeltaTable(table).version() == version


def test_the_first_columns_of_an_empty_message_come_first(spark: SparkSession, table: str) -> None:
    make(spark, table, Struct(()))
    evolve(spark, TableAddress(table), inner("x", "y"))
    assert names_in(table) == ["x", "y", *ORIGIN]


def test_columns_that_a_crash_left_behind_the_origin_are_moved(spark: SparkSession, table: str) -> None:
    make(spark, table, BEFORE)
    new = spark_struct(Struct((*AFTER, *SILVER_ORIGIN)))
    spark.createDataFrame([], new).write.format("delta").mode("append").option("mergeSchema", "true").save(table)
    assert names_in(table)[-2:] == ["b", "select"]
    evolve(spark, TableAddress(table), AFTER)
    assert names_in(table) == ["a", "one", "many", "by_name", "b", "select", *ORIGIN]


def test_wider_columns_hold_the_same_rows_under_the_same_comments_properties_and_transactions(
    spark: SparkSession, table: str
) -> None:
    def level(number: Primitive, real: Primitive, *more: Column) -> Struct:
        inner = Struct((Column("n", number, 1, comment="Inside."), Column("r", real, 2), *more))
        return Struct(
            (
                Column("a", number, 1, comment="A number."),
                Column("one", inner, 2),
                Column("many", Array(inner), 3),
                Column("by_name", Map(number, inner), 4),
                *more,
            )
        )

    before = level(INT, Primitive.FLOAT)
    after = level(Primitive.BIGINT, Primitive.DOUBLE, Column("new", TEXT, 9))
    columns = spark_struct(Struct((*before, *SILVER_ORIGIN)))
    row = (7, (-1, 0.5), [(2, None)], {3: (None, 1.5)}, *[None] * len(ORIGIN))
    frame = spark.createDataFrame([row], columns).coalesce(1).write.format("delta")
    frame.option("txnAppId", "app").option("txnVersion", 4).save(table)
    spark.sql(f"ALTER TABLE delta.{quote_identifier(table)} SET TBLPROPERTIES ('mine' = 'kept')")
    version = DeltaTable(table).version()

    evolve(spark, TableAddress(table), after)

    found = DeltaTable(table)
    assert columns_and_message(spark, table) == (after, None)
    assert names_in(table) == ["a", "one", "many", "by_name", "new", *ORIGIN]
    (read,) = found.to_pyarrow_table().to_pylist()
    assert {name: read[name] for name in ("a", "one", "many", "by_name", "new")} == {
        "a": 7,
        "one": {"n": -1, "r": 0.5, "new": None},
        "many": [{"n": 2, "r": None, "new": None}],
        "by_name": [(3, {"n": None, "r": 1.5, "new": None})],
        "new": None,
    }
    assert (found.transaction_version("app"), found.metadata().configuration["mine"]) == (4, "kept")
    schema = spark.read.format("delta").load(table).schema
    assert schema["a"].metadata["comment"] == "A number."
    inside: Any = schema["one"].dataType
    assert inside["n"].metadata["comment"] == "Inside."
    # the rows in one commit, the new columns in another, and their place
    assert found.version() <= version + 3
    evolve(spark, TableAddress(table), after)
    assert DeltaTable(table).version() == found.version()
