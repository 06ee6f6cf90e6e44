"""A game's silver table that only Spark can open or write; what `file_table.py` is for all others.

The fleet's tasks write its rows, too: to files beside the table's own, which are in no commit. Spark's writer copies
them. What a process leaves behind that dies is removed by VACUUM.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType

from demux.core.catalog.spark_tables import open_table, read_table, save_table, sql_name
from demux.core.columns.spark import COMMENT, NUMBER, columns_of_spark, message_in
from demux.core.columns.types import Struct
from demux.core.delta import batch_commit as commits
from demux.core.delta.app_transactions import Batch, transaction_of
from demux.core.delta.parquet_writer import TableFile, remove_files
from demux.core.errors import ConcurrentChange, DemuxError
from demux.core.names import quote_identifier, sql_string
from demux.core.spark.connect import new_session
from demux.core.storage.files import Storage
from demux.core.storage.location import literal_path
from demux.core.tables import SILVER_RESERVED
from deserializer.offsets.days import Span
from deserializer.silver.comments import Description, statements
from deserializer.silver.evolve import evolve, say
from deserializer.silver.file_table import SilverReplacement, payload_in, schema_of
from deserializer.silver.rewrite import FILES_OF_TABLES

# `ALTER COLUMN` takes several columns from Spark 4.0 on
_AT_ONCE = not pyspark.__version__.startswith("3.")
# of few rows: Spark takes longer to write code than to do without, above all to read the log for a transaction
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
_FEW_ROWS = 50_000


class SilverBySpark:
    """One game's table, there or not yet; what is known of it is read when it is wanted, and kept.

    Attributes:
        path: where it is.
        address: the same, and its name in a catalog.
    """

    def __init__(self, spark: SparkSession, storage: Storage, path: str) -> None:
        """Prepare for the table at this path or URI."""
        self.path = path
        self.address = storage.address(path)
        self._spark = spark
        self._storage = storage
        self._exists = storage.table_exists(path)
        self._schema: StructType | None = None
        self._versions: dict[str, int | None] = {}

    @property
    def exists(self) -> bool:
        """Whether there is a table."""
        return self._exists

    @property
    def everything(self) -> Struct:
        """Its columns; none of a table that is not there."""
        return columns_of_spark(self.schema)

    @property
    def columns(self) -> Struct:
        """Its payload columns."""
        return payload_in(self.everything)

    @property
    def message(self) -> str | None:
        """The full name of the message that it holds; None while no column says so."""
        return message_in(self.schema)

    @property
    def schema(self) -> StructType:
        """Its schema, with all that columns say of themselves; empty of a table that is not there."""
        if self._schema is None:
            self._schema = self._rows().schema if self._exists else StructType([])
        return self._schema

    @property
    def needs_upkeep(self) -> bool:
        """False: Spark's own writer looks after the table's files."""
        return False

    def files_of(self, span: Span | None) -> dict[str, int]:
        """Return no files: Spark finds the rows that go."""
        return {}

    def has_rows(self) -> bool:
        """Return whether it has rows."""
        return self._exists and bool(self._rows().limit(1).count())

    def transaction(self, app_id: str) -> int | None:
        """Return the version on which our next commit follows: the newest one when first asked; None for none."""
        if app_id not in self._versions:
            self._versions[app_id] = transaction_of(self._storage, self.path, app_id)
        return self._versions[app_id]

    def create(self, columns: Struct, message: str | None, comment: str) -> None:
        """Make the table with these columns, the origin's too; a second call does nothing."""
        if not self._exists:
            nothing = self._spark.createDataFrame([], StructType.fromJson(schema_of(columns, message)))
            writer = nothing.writeTo(f"delta.{quote_identifier(self.path)}").using("delta")
            (writer.tableProperty(COMMENT, comment) if comment else writer).create()
            self.refresh()

    def alter(self, description: Description, message: str | None) -> bool:
        """Add columns, and make others wider, with comments; a second call does what a crash left over."""
        before = self.everything
        evolve(self._spark, self.address, description.columns, message)
        say(self._spark, statements(sql_name(self._spark, self.address), before, description, _AT_ONCE))
        self.refresh()
        return True

    def refresh(self) -> None:
        """Read the table's columns again, if it is there now."""
        self._exists = self._storage.table_exists(self.path)
        self._schema = None

    def append_rows(self, rows: DataFrame, app_id: str, version: int) -> None:
        """Append rows and say with which transaction, in one commit; once, however often it is called.

        Raises:
            ConcurrentChange: another process has written a transaction of the application since this one asked for it;
                nothing was committed.
        """
        seen = self.transaction(app_id)
        # Spark leaves a version that is not above the newest one out without a word, and takes any that is
        found = transaction_of(self._storage, self.path, app_id)
        if found == version:
            return
        if found != seen:
            raise ConcurrentChange(
                f"Another process decoded rows of {self.path} meanwhile.",
                "Run the same command again; nothing is lost.",
            )
        try:
            commits.append(rows, self.address, Batch(app_id, version, retried=False))
        except Exception:
            # the commit may have succeeded
            if transaction_of(self._storage, self.path, app_id) != version:
                raise
        self._versions[app_id] = version

    def append(self, files: Sequence[TableFile], app_id: str, version: int) -> None:
        """Append the rows of files in the table's folder, which are removed; else as `append_rows`."""
        with staged_rows(self._spark, self._storage, self.path, files, self._ours()) as rows:
            self.append_rows(rows, app_id, version)

    def replace(self, replacement: SilverReplacement) -> None:
        """Copy the rows of the added files into the place of others, in one commit; the files are removed."""
        rebuilt = replacement.rebuilt
        columns = self._ours() if rebuilt is None else rebuilt[0]
        with staged_rows(self._spark, self._storage, self.path, replacement.added, columns) as rows:
            writer = rows.write.mode("overwrite")
            if replacement.condition is not None:
                writer = writer.option("replaceWhere", replacement.condition)
            for app_id, version in replacement.transactions.items():
                # Spark writes nothing, and says nothing, where a transaction's version is not above the one before
                if self.transaction(app_id) != version:
                    writer = writer.option("txnAppId", app_id).option("txnVersion", version)
            if self._exists and rebuilt is not None and self.schema != rebuilt[0]:
                names = {field.name for field in columns.fields}
                parts = [name for name in self._detail()["partitionColumns"] if name in names]
                writer = writer.option("overwriteSchema", "true").partitionBy(*parts)
            save_table(self._spark, writer, self.address)
        if rebuilt is not None and rebuilt[1] and self._detail()["description"] != rebuilt[1]:
            name = sql_name(self._spark, self.address)
            say(self._spark, [f"COMMENT ON TABLE {name} IS {sql_string(rebuilt[1])}"])

    def ids_among(self, wanted: pa.ChunkedArray) -> frozenset[str]:
        """Return which of these record ids (STRING) the table has."""
        if not self._exists:
            return frozenset()
        asked = self._spark.createDataFrame([(each,) for each in wanted.to_pylist()], "_record_id STRING")
        found = self._rows().select("_record_id").join(asked, "_record_id", "left_semi").distinct()
        return frozenset(row[0] for row in found.collect())

    def _ours(self) -> StructType:
        # columns that somebody else added get their default, or what they are generated from
        return StructType([one for one in self.schema.fields if NUMBER in one.metadata or one.name in SILVER_RESERVED])

    def _detail(self) -> Row:
        detail = open_table(self._spark, self.address).detail().select("description", "partitionColumns").first()
        assert detail is not None
        return detail

    def _rows(self) -> DataFrame:
        return read_table(self._spark, self.address)


@contextmanager
def staged_rows(
    spark: SparkSession, storage: Storage, table: str, files: Sequence[TableFile], columns: StructType
) -> Iterator[DataFrame]:
    """Yield the rows of files in a table's folder, in these columns; then the files are removed."""
    session = _copying_session(spark, sum(file.rows for file in files) <= _FEW_ROWS)
    paths = [literal_path(f"{table}/{file.path}") for file in files]
    try:
        yield session.read.schema(columns).parquet(*paths) if paths else session.createDataFrame([], columns)
    finally:
        with suppress(OSError, DemuxError):
            remove_files(storage, table, [file.path for file in files])


@lru_cache(maxsize=4)
def _copying_session(spark: SparkSession, is_small: bool) -> SparkSession:
    """Return a session of this one that reads single files of tables; kept, as making one takes a while."""
    return new_session(spark, {**FILES_OF_TABLES, **(_INTERPRETED if is_small else {})})
