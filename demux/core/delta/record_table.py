"""A Delta table of records that the driver reads and writes by itself: the control tables.

Without Spark where `deltalake` opens the table, and by Spark elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random

from demux.core.catalog.spark_tables import open_table, read_table, save_table
from demux.core.columns.arrow import arrow_fields, table_of
from demux.core.columns.types import Map, Struct
from demux.core.delta.commit import append_rows
from demux.core.delta.scan import only_spark_reads
from demux.core.error_mapping import as_demux_error
from demux.core.errors import ErrorKind
from demux.core.extras import deltalake
from demux.core.storage.files import Storage
from demux.core.storage.open_tables import OpenTables
from demux.core.storage.table_address import TableAddress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RETRYING = Retrying(
    stop=stop_after_attempt(5),
    wait=wait_random(0, 1),
    retry=retry_if_exception(lambda error: as_demux_error(error).kind is ErrorKind.TRANSIENT),
    reraise=True,
)

_NAME = "records"


@dataclass(frozen=True, slots=True)
class RecordTable:
    """A table of some thousand records; the first write makes it.

    Attributes:
        spark: the session; None where tables are only read, and reached without it.
        columns: what it is made with.
    """

    spark: SparkSession | None
    storage: Storage
    path: str
    columns: Struct
    _tables: OpenTables = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Prepare; opens nothing yet."""
        object.__setattr__(self, "_tables", OpenTables(self.storage))

    def exists(self) -> bool:
        """Return whether the table is there."""
        return self.storage.table_exists(self.path)

    def select(self, query: str) -> list[Mapping[str, Any]]:
        """Return the rows of a query, times in UTC; none where there is no table.

        Args:
            query: SQL that DataFusion and Spark read alike, from the table `{records}`.
        """
        if not self.exists():
            return []
        if self._is_reached:
            builder = deltalake.QueryBuilder().register(_NAME, self.storage.table(self.path))
            # pyarrow lets other threads run while it waits for the store, as the one that renews the lease
            return list(table_of(builder.execute(query.format(records=_NAME))).to_pylist())
        rows = self._session.sql(query, records=read_table(self._session, self._address)).collect()
        return [{name: _utc(value) for name, value in row.asDict().items()} for row in rows]

    def append(self, records: Sequence[Sequence[object]]) -> None:
        """Add records, a value for each column, in one transaction; others may append at the same time."""
        self.append_batches([self._rows(records)])

    def append_batches(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Add records in the table's columns, as `append`; by Spark, all of them are in memory."""
        if self._is_reached:
            table = self._tables.create(self.path, self.columns)
            append_rows(self.storage, table, self.path, self.columns, batches)
            return
        maps = [isinstance(column.type, Map) for column in self.columns]
        records = [
            tuple(
                dict(value) if is_map and value is not None else value
                for value, is_map in zip(row.values(), maps, strict=True)
            )
            for batch in batches
            for row in batch.to_pylist()
        ]
        # a process that makes the table at the same time gets a conflict error, and appends the next time
        _RETRYING(self._write, records, "append")

    def replace(self, records: Sequence[Sequence[object]]) -> None:
        """Make the table hold exactly these records, in one transaction; a second time changes nothing."""
        _RETRYING(self._write, records, "overwrite")

    def update(self, where: Mapping[str, str | int], values: Mapping[str, str | int]) -> None:
        """Set columns of the records that have these values in other columns; a second time changes nothing.

        Args:
            where: the values by column that a record has to have.
            values: what to set, by column.
        """
        if self._is_reached:
            same = " AND ".join(f"{name} = {_literal(value)}" for name, value in where.items())
            updates = {name: _literal(value) for name, value in values.items()}
            _RETRYING(lambda: self.storage.table(self.path).update(updates=updates, predicate=same))
            return
        from pyspark.sql import functions as F

        condition = reduce(and_, (F.col(name) == value for name, value in where.items()))
        open_table(self._session, self._address).update(condition, {name: F.lit(one) for name, one in values.items()})

    def _write(self, records: Sequence[Sequence[object]], mode: Literal["append", "overwrite"]) -> None:
        if not self._is_reached:
            from demux.core.columns.spark import spark_struct

            frame = self._session.createDataFrame(records, spark_struct(self.columns)).coalesce(1)
            save_table(self._session, frame.write.mode(mode), self._address)
            return
        self.storage.write_table(self.path, pa.Table.from_batches([self._rows(records)]), mode)

    def _rows(self, records: Sequence[Sequence[object]]) -> pa.RecordBatch:
        fields = arrow_fields(self.columns)
        columns = zip(*records, strict=True) if records else [()] * len(fields)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    @property
    def _address(self) -> TableAddress:
        return self.storage.address(self.path)

    @property
    def _session(self) -> SparkSession:
        if self.spark is None:
            raise only_spark_reads(self.path)
        return self.spark

    @property
    def _is_reached(self) -> bool:
        return self.storage.reaches_tables(self.path)


def _literal(value: str | int) -> str:
    """Return the value as DataFusion's SQL writes it."""
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def _utc(value: object) -> object:
    """Return a time in UTC; PySpark gives it in this process's zone, and without saying so."""
    return value.astimezone(timezone.utc) if isinstance(value, datetime) else value
