"""Spark's reads and writes of tables: by name where a table has one, else by path.

Streams read by path: by name Delta holds the schema of their first version against that of now (4.4), or refuses the
comments of columns (2.4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from demux.core.names import quote_identifier
from demux.core.storage.table_address import TableAddress

if TYPE_CHECKING:
    from delta.tables import DeltaTable
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

# each function raises CatalogConflict and CatalogRefused, as `make_known`, where the table has a name


def sql_name(spark: SparkSession, table: TableAddress) -> str:
    """Return what SQL calls the table, which is there; the catalog has it then."""
    if table.name is None:
        return f"delta.{quote_identifier(table.path)}"
    # commands that only look import this module, and have no Spark
    from demux.core.catalog.registration import make_known

    make_known(spark, table)
    name = table.name
    # Delta 2.4 takes names of two parts alone, which are those of Spark's own catalog
    two = name.catalog.lower() == "spark_catalog"
    return ".".join(map(quote_identifier, (name.schema, name.table))) if two else name.sql


def read_table(spark: SparkSession, table: TableAddress, **options: str | int) -> DataFrame:
    """Return a frame of the table, which is there; `options` of Delta's reader."""
    reader = spark.read.format("delta").options(**options)
    return reader.load(table.path) if table.name is None else reader.table(sql_name(spark, table))


def save_table(spark: SparkSession, writer: DataFrameWriter, table: TableAddress) -> None:
    """Write the rows, in the writer's mode and with its options; a table that is not there is made, under its name."""
    writer = writer.format("delta")
    if table.name is None:
        writer.save(table.path)
        return
    from demux.core.catalog.registration import make_room

    if make_room(spark, table):
        writer.option("path", table.path).saveAsTable(table.name.sql)
    elif spark.version.startswith("3."):
        # by name, Delta 2.4 may put what replaces a table into a folder of its own
        writer.save(table.path)
    else:
        writer.saveAsTable(table.name.sql)


def open_table(spark: SparkSession, table: TableAddress) -> DeltaTable:
    """Return the table, which is there, for what frames cannot do."""
    from delta.tables import DeltaTable

    if table.name is None:
        return DeltaTable.forPath(spark, table.path)
    return DeltaTable.forName(spark, sql_name(spark, table))
