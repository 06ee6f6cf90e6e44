"""Spark's reads and writes of one table, by its path and by its name: the same rows, comments and transactions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import deltalake
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from demux.core.catalog.registration import look_again, make_known
from demux.core.catalog.spark_tables import open_table, read_table, save_table, sql_name
from demux.core.errors import CatalogConflict
from demux.core.storage.table_address import CatalogName, TableAddress

COLUMNS = StructType(
    [
        StructField("number", IntegerType(), True, {"comment": "who's", "demux.number": 3}),
        StructField("game", StringType(), True, {"comment": "x"}),
    ]
)
NAME = CatalogName("spark_catalog", "demux_t", "chess")


@pytest.fixture(params=["path", "name"])
def table(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[TableAddress]:
    """The address of a table that is not there, in a folder whose name must be quoted."""
    look_again()
    path = str(tmp_path / "it's a `root` ${env:HOME}" / "silver" / "chess")
    yield TableAddress(path, NAME if request.param == "name" else None)
    spark.sql("DROP SCHEMA IF EXISTS spark_catalog.demux_t CASCADE")


def rows(spark: SparkSession, *pairs: tuple[int, str]) -> DataFrame:
    return spark.createDataFrame(list(pairs), COLUMNS)


def held(spark: SparkSession, table: TableAddress, **options: str | int) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in read_table(spark, table, **options).collect())


def detail(spark: SparkSession, table: TableAddress) -> Row:
    found = open_table(spark, table).detail().first()
    assert found is not None
    return found


@pytest.mark.both_lanes
def test_the_first_write_makes_the_table_with_its_columns_metadata_and_partitions(
    spark: SparkSession, table: TableAddress
) -> None:
    save_table(spark, rows(spark, (1, "a")).write.mode("append").partitionBy("game"), table)
    assert held(spark, table) == [(1, "a")]
    assert [field.metadata for field in read_table(spark, table).schema] == [field.metadata for field in COLUMNS]
    assert list(detail(spark, table).partitionColumns) == ["game"]
    # whoever reads files finds it at its path
    assert deltalake.DeltaTable(table.path).count() == 1


@pytest.mark.both_lanes
def test_rows_come_once_for_each_transaction_and_beside_those_that_others_wrote(
    spark: SparkSession, table: TableAddress
) -> None:
    save_table(spark, rows(spark, (1, "a")).write.mode("append"), table)
    for _ in range(2):
        once = rows(spark, (2, "b")).write.mode("append").option("txnAppId", "query").option("txnVersion", 7)
        save_table(spark, once, table)
    assert deltalake.DeltaTable(table.path).transaction_version("query") == 7
    deltalake.write_deltalake(table.path, deltalake.DeltaTable(table.path).to_pyarrow_table(), mode="append")
    # columns go by their names
    save_table(spark, rows(spark, (5, "c")).select("game", "number").write.mode("append"), table)
    assert held(spark, table) == [(1, "a"), (1, "a"), (2, "b"), (2, "b"), (5, "c")]
    assert held(spark, table, versionAsOf=0) == [(1, "a")]
    assert len(read_table(spark, table, versionAsOf=0).inputFiles()) == 1


@pytest.mark.both_lanes
def test_rows_are_replaced_by_others_that_were_read_from_them(spark: SparkSession, table: TableAddress) -> None:
    save_table(spark, rows(spark, (1, "a"), (2, "b"), (3, "b")).write.mode("append"), table)
    spark.sql(f"COMMENT ON TABLE {sql_name(spark, table)} IS 'It\\'s one.'")
    there = read_table(spark, table).where("game = 'b'").withColumn("number", F.col("number") * 10)
    where = there.write.mode("overwrite").option("replaceWhere", "game = 'b'")
    save_table(spark, where.option("txnAppId", "query").option("txnVersion", 1), table)
    assert held(spark, table) == [(1, "a"), (20, "b"), (30, "b")]
    # all of them, in columns that are wider
    wide = read_table(spark, table).withColumn("number", F.col("number").cast("long"))
    save_table(spark, wide.write.mode("overwrite").option("overwriteSchema", "true"), table)
    assert read_table(spark, table).schema["number"].dataType.simpleString() == "bigint"
    assert held(spark, table) == [(1, "a"), (20, "b"), (30, "b")]
    found = detail(spark, table)
    assert (found.description, deltalake.DeltaTable(table.path).transaction_version("query")) == ("It's one.", 1)
    assert f"{found.location}".removeprefix("file:") == table.path


@pytest.mark.both_lanes
def test_columns_are_added_moved_and_explained_and_rows_merged(spark: SparkSession, table: TableAddress) -> None:
    save_table(spark, rows(spark, (1, "a"), (2, "b")).write.mode("append"), table)
    more = rows(spark, (3, "c")).withColumn("more", F.lit("x"))
    save_table(spark, more.write.mode("append").option("mergeSchema", "true"), table)
    name = sql_name(spark, table)
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN `more` FIRST")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN `more` COMMENT 'y'")
    spark.sql(f"OPTIMIZE {name} ZORDER BY (`number`)")
    gone = rows(spark, (2, "b")).alias("g")
    open_table(spark, table).alias("t").merge(gone, "t.number = g.number").whenMatchedDelete().execute()
    open_table(spark, table).delete("number = 1")
    open_table(spark, table).update("number = 3", {"game": F.lit("d")})
    open_table(spark, table).vacuum(200.0)
    found = read_table(spark, table)
    assert [(field.name, field.metadata.get("comment")) for field in found.schema] == [
        ("more", "y"),
        ("number", "who's"),
        ("game", "x"),
    ]
    assert held(spark, table) == [("x", 3, "d")]


@pytest.mark.both_lanes
def test_a_table_with_a_name_is_in_the_catalog_at_its_place(spark: SparkSession, tmp_path: Path) -> None:
    look_again()
    table = TableAddress(str(tmp_path / "chess"), NAME)
    try:
        save_table(spark, rows(spark, (1, "a")).write.mode("append"), table)
        described = spark.sql(f"DESCRIBE TABLE EXTENDED {NAME.sql}").collect()
        said = {row.col_name: row.data_type for row in described}
        assert (said["Type"], said["Location"]) == ("EXTERNAL", f"file:{table.path}")
        # its files were taken away, and its name was not
        spark.sql(f"DROP TABLE {NAME.sql}")
        make_known(spark, TableAddress(table.path, NAME))
        look_again()
        (tmp_path / "chess").rename(tmp_path / "elsewhere")
        save_table(spark, rows(spark, (2, "b")).write.mode("append"), table)
        assert held(spark, table) == [(2, "b")]
    finally:
        spark.sql("DROP SCHEMA IF EXISTS spark_catalog.demux_t CASCADE")


@pytest.mark.both_lanes
def test_no_row_goes_to_another_table_of_that_name(spark: SparkSession, tmp_path: Path) -> None:
    look_again()
    theirs, ours = TableAddress(str(tmp_path / "theirs"), NAME), TableAddress(str(tmp_path / "ours"), NAME)
    try:
        save_table(spark, rows(spark, (1, "a")).write.mode("append"), theirs)
        for mode in ("append", "overwrite"):
            with pytest.raises(CatalogConflict):
                save_table(spark, rows(spark, (2, "b")).write.mode(mode), ours)
        rows(spark, (3, "c")).write.format("delta").save(ours.path)
        with pytest.raises(CatalogConflict):
            read_table(spark, ours)
        with pytest.raises(CatalogConflict):
            save_table(spark, rows(spark, (2, "b")).write.mode("append"), ours)
        assert (held(spark, theirs), deltalake.DeltaTable(ours.path).count()) == ([(1, "a")], 1)
    finally:
        spark.sql("DROP SCHEMA IF EXISTS spark_catalog.demux_t CASCADE")
