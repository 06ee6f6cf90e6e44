"""A game's silver table that only Spark can reach or write; what is in `silver.py` for all others."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from demux.core.columns.spark import COMMENT, columns_of_spark, message_in
from demux.core.columns.types import Struct
from demux.core.delta import batch_commit as commits
from demux.core.delta.app_transactions import Batch, transaction_of
from demux.core.delta.log import commit_name, newest_version
from demux.core.names import quoted
from demux.core.storage import exists, read_text, table_exists
from deserializer.silver.comments import Description
from deserializer.silver.file_table import COMMITS_LOOKED_AT, last_written_by, payload_in, schema_of


class SilverBySpark:
    """One game's table, there or not yet; what is known of it is read when it is wanted, and kept.

    Attributes:
        path: where it is.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        """Prepare for the table at this path or URI."""
        self.path = path
        self._spark = spark
        self._exists = table_exists(spark, path)
        self._schema: StructType | None = None
        self._versions: dict[str, int | None] = {}

    @property
    def exists(self) -> bool:
        """Whether there is a table."""
        return self._exists

    @property
    def everything(self) -> Struct:
        """Its columns; none of a table that is not there."""
        return columns_of_spark(self._now())

    @property
    def columns(self) -> Struct:
        """Its payload columns."""
        return payload_in(self.everything)

    @property
    def message(self) -> str | None:
        """The full name of the message that it holds; None while no column says so."""
        return message_in(self._now())

    def has_rows(self) -> bool:
        """Return whether it has rows."""
        return self._exists and bool(self._rows().limit(1).count())

    def transaction(self, app_id: str) -> int | None:
        """Return the newest version of the application's transactions; None when there is none."""
        if app_id not in self._versions:
            self._versions[app_id] = transaction_of(self._spark, self.path, app_id)
        return self._versions[app_id]

    def last_written_by(self, app_id: str, version: int) -> bool:
        """Return whether no batch was written since this transaction, and nothing taken away: at most rows that moved.

        Looks at the newest 100 commits.
        """
        return last_written_by(self._newest_commits(), app_id, version)

    def ids_among(self, wanted: pa.Array) -> frozenset[str]:
        """Return which of these record ids (STRING) the table has; reads one column."""
        if not self._exists:
            return frozenset()
        ids = self._spark.createDataFrame([(one,) for one in wanted.to_pylist()], "_record_id STRING")
        found = self._rows().select("_record_id").join(ids, "_record_id", "left_semi").distinct().collect()
        return frozenset(row[0] for row in found)

    def create(self, columns: Struct, message: str | None, comment: str) -> None:
        """Make the table with these columns, the origin's too; a second call does nothing."""
        if not self._exists:
            nothing = self._spark.createDataFrame([], StructType.fromJson(schema_of(columns, message)))
            writer = nothing.writeTo(f"delta.{quoted(self.path)}").using("delta")
            (writer.tableProperty(COMMENT, comment) if comment else writer).create()
            self.refresh()

    def alter(self, description: Description, message: str | None) -> bool:
        """Return that files are not enough for this table."""
        return False

    def refresh(self) -> None:
        """Read what others did to the table."""
        self._exists = table_exists(self._spark, self.path)
        self._schema = None
        self._versions = {}

    def append(self, rows: DataFrame, app_id: str, version: int) -> None:
        """Append rows and say with which transaction, in one commit; once, however often it is called.

        A version that is not above the one before writes nothing.
        """
        try:
            commits.append(rows, self.path, Batch(app_id, version, retried=False))
        except Exception:
            # the commit may be there all the same
            self.refresh()
            if self.transaction(app_id) != version:
                raise
        self._versions[app_id] = version

    def mark(self, app_id: str, version: int) -> None:
        """Commit a transaction of this version, which must be above the one before, and no rows."""
        self.append(self._spark.createDataFrame([], self._now()), app_id, version)

    def _now(self) -> StructType:
        if self._schema is None:
            self._schema = self._rows().schema if self._exists else StructType([])
        return self._schema

    def _rows(self) -> DataFrame:
        return self._spark.read.format("delta").load(self.path)

    def _newest_commits(self) -> Iterator[tuple[int, str]]:
        newest = newest_version(self._spark, self.path)
        for version in range(newest, max(-1, newest - COMMITS_LOOKED_AT), -1):
            file = f"{self.path}/_delta_log/{commit_name(version)}"
            yield version, read_text(self._spark, file) if exists(self._spark, file) else ""
