"""A silver table whose rows are rewritten, in one commit that says of itself that they are the same rows.

A column cannot be widened in place: Delta's own type widening is not there before Delta 3.2, and `deltalake` writes no
table that has it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from demux.core.catalog.spark_tables import read_table, save_table
from demux.core.columns.arrow import arrow_fields, project
from demux.core.columns.spark import columns_of_spark, spark_type
from demux.core.columns.types import Array, ColumnType, Map, Primitive, Struct
from demux.core.delta.commit import Replacement, replaces_files
from demux.core.delta.parquet_writer import TableFile, TableWriter, remove_files
from demux.core.delta.rewrite_rows import rewritten
from demux.core.delta.scan import sizes_of
from demux.core.extras import deltalake
from demux.core.names import quote_identifier
from demux.core.spark.connect import new_session
from demux.core.storage.files import Storage
from demux.core.storage.table_address import TableAddress
from demux.core.tables import SILVER_ORIGIN

_LOG = logging.getLogger("demux")
# what a session is to have that reads and writes single files of Delta tables, and replaces rows of any days by theirs
FILES_OF_TABLES = {
    "spark.databricks.delta.formatCheck.enabled": "false",
    "spark.databricks.delta.replaceWhere.constraintCheck.enabled": "false",
    # as bronze's own files have them: INT96 has no years after 2262
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
}
# of a table's files that one process rewrites; of more, Spark's tasks have a part each
MOST_BYTES = 512 * 2**20


def widen_schema(now: StructType, wanted: Struct) -> StructType:
    """Return the schema with its numbers as wide as wanted: columns, their order, and metadata stay.

    Args:
        now: a table's schema.
        wanted: columns, by name; what only one of the two has stays as the schema has it.
    """
    types = {column.name: column.type for column in wanted}
    return StructType(
        [
            StructField(one.name, _widen_type(one.dataType, types[one.name]), one.nullable, one.metadata)
            if one.name in types
            else one
            for one in now.fields
        ]
    )


def _widen_type(now: DataType, wanted: ColumnType) -> DataType:
    match now, wanted:
        case StructType(), Struct():
            return widen_schema(now, wanted)
        case ArrayType(), Array(element):
            return ArrayType(_widen_type(now.elementType, element), now.containsNull)
        case MapType(), Map(key, value):
            return MapType(spark_type(key), _widen_type(now.valueType, value), now.valueContainsNull)
        case _, Primitive():
            return spark_type(wanted)
        case _:
            return now


def widen(spark: SparkSession, table: TableAddress, now: StructType, wider: StructType) -> None:
    """Write the table again in these types, in one commit; properties, comments and transactions stay.

    Args:
        spark: the session.
        table: the table.
        now: its schema.
        wider: as `widen_schema` gives it.
    """
    rows = read_table(spark, table)
    columns = [
        F.col(quote_identifier(before.name)).cast(after.dataType).alias(after.name, metadata=after.metadata)
        if before.dataType != after.dataType
        else F.col(quote_identifier(before.name))
        for before, after in zip(now.fields, wider.fields, strict=True)
    ]
    replace_rows(rows.select(*columns), table, overwriteSchema="true")


def widen_by_files(
    storage: Storage, table: deltalake.DeltaTable, path: str, wider: StructType, description: str | None
) -> bool:
    """Write the table again in this schema, in one commit, without Spark; return whether that was possible.

    It is not where the table asks more of its writers, where it is large, or where another writer was faster.

    Args:
        storage: how the table is reached.
        table: the table as it was read.
        path: its path or URI.
        wider: its schema from then on: as `widen_schema` gives it, and further columns.
        description: what the table says of itself; None: what it said before.
    """
    sizes = sizes_of(table)
    if not replaces_files(table) or sum(sizes.values()) > MOST_BYTES:
        return False
    _LOG.info("%s gets wider columns: it is rewritten", path, extra={"table": path})
    files = rewritten(storage, path, sizes, columns_of_spark(wider), lambda rows: rows)
    replacement = Replacement("WRITE", sizes, files, schema=wider.jsonValue(), description=description)
    if replacement.commit(storage, table, path):
        return True
    remove_files(storage, path, [file.path for file in files])
    return False


def replacing_session(spark: SparkSession) -> SparkSession:
    """Return a session with settings of its own, in which `replace_rows` puts in rows of any days."""
    return new_session(spark, FILES_OF_TABLES)


def replace_rows(rows: DataFrame, table: TableAddress, **options: str) -> None:
    """Put these rows into the place of the table's own, in one commit; `options` of Delta's writer."""
    save_table(rows.sparkSession, rows.write.mode("overwrite").options(**options), table)


def in_columns(
    storage: Storage, files: Sequence[TableFile], table: str, before: Struct, after: Struct
) -> tuple[TableFile, ...]:
    """Return files with the same rows in other payload columns; the old ones are removed.

    Args:
        storage: how the table is reached.
        files: in no commit yet.
        table: the table's path.
        before: the payload columns that they have.
        after: those that they are to have (`demux.core.columns.schema_merge`).
    """
    schema = pa.schema(arrow_fields(Struct((*after, *SILVER_ORIGIN))))
    own = len(before.columns)
    with TableWriter(storage, table, Struct((*after, *SILVER_ORIGIN))) as writer:
        for file in files:
            with storage.open(f"{table}/{file.path}", file.bytes) as opened:
                for rows in pq.ParquetFile(opened).iter_batches():
                    payload = project(rows.columns[:own], before, after, len(rows))
                    writer.add(pa.RecordBatch.from_arrays([*payload, *rows.columns[own:]], schema=schema))
        made = tuple(writer.close())
    remove_files(storage, table, [file.path for file in files])
    return made
