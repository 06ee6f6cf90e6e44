"""Tables at a version that does not change while they are counted.

By `deltalake`; by Spark, where there is a session, what asks more of its readers. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.core.catalog.spark_tables import read_table
from demux.core.columns.arrow import arrow_fields, as_type
from demux.core.columns.types import Column, Primitive, Struct, sql_name
from demux.core.delta.log import commit_name, newest_version, transaction_in
from demux.core.delta.scan import DataFile, data_files, is_readable, only_spark_reads, scan
from demux.core.extras import deltalake
from demux.core.root.layout import Layout
from demux.core.storage.files import Storage
from demux.core.storage.table_address import TableAddress

_THREADS = 8
_SILVER = Struct((Column("_record_id", Primitive.STRING),))


@dataclass(frozen=True, slots=True)
class FileRows:
    """Rows of files in some columns, which are read when they are asked for."""

    storage: Storage
    files: Sequence[DataFile]
    fields: Sequence[pa.Field]

    def reader(self, column: str = "", values: Collection[str] = ()) -> pa.RecordBatchReader:
        """Return all rows, or the rows with one of these values in a column (STRING)."""
        schema, files = pa.schema(self.fields), self.files
        if not column:
            return pa.RecordBatchReader.from_batches(schema, scan(self.storage, files, self.fields))
        files = [one for one in files if column not in one.constants or one.constants[column] in values]
        batches = scan(self.storage, files, self.fields)
        wanted = pa.array([*values], pa.string())
        chosen = (batch.filter(pc.is_in(batch.column(column), wanted)) for batch in batches)
        return pa.RecordBatchReader.from_batches(schema, chosen)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Some columns of a table at a version.

    Attributes:
        columns: which columns; those that the table has not are NULL.
        rows: its rows; None where Spark must read them.
    """

    address: TableAddress
    version: int
    columns: Struct
    rows: FileRows | None = field(default=None, compare=False, repr=False)

    def frame(self, spark: SparkSession | None) -> DataFrame:
        """Return its rows as Spark reads them.

        Raises:
            TableUnsuited: there is no session.
        """
        session = session_for(spark, self.address.path)
        found = read_table(session, self.address, versionAsOf=self.version)
        known = {name.lower() for name in found.columns}
        return found.select(
            *(
                (found[one.name] if one.name in known else F.lit(None)).cast(sql_name(one.type)).alias(one.name)
                for one in self.columns
            )
        )

    def only(self, names: Collection[str]) -> Snapshot:
        """Return the table with the columns of these names."""
        kept = [number for number, column in enumerate(self.columns) if column.name in names]
        columns = Struct(tuple(self.columns.columns[number] for number in kept))
        rows = self.rows and replace(self.rows, fields=[self.rows.fields[number] for number in kept])
        return replace(self, columns=columns, rows=rows)

    def batches(
        self,
        spark: SparkSession | None,
        changed: Callable[[pa.RecordBatch], pa.RecordBatch],
        only: tuple[str, Collection[str]] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the table's rows, each batch as the function returns it.

        Args:
            changed: gets rows in the columns; Spark's tasks call it there.
            only: a column and values: rows that have one of them are read.

        Raises:
            TableUnsuited: only Spark reads the table, and there is no session.
        """
        if self.version < 0:
            return
        names = [column.name for column in self.columns]
        if self.rows is not None:
            yield from (changed(batch.rename_columns(names)) for batch in self.rows.reader(*(only or ())))
            return
        frame, schema = self.frame(spark), pa.schema(arrow_fields(self.columns))
        frame = frame if only is None else frame.where(F.col(only[0]).isin(*only[1]))

        def in_types(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                arrays = [as_type(array, one.type) for array, one in zip(batch.columns, schema, strict=True)]
                yield changed(pa.RecordBatch.from_arrays(arrays, schema=schema))

        for found in frame_batches(frame, in_types):
            yield from found.to_batches()


def frame_batches(
    frame: DataFrame, changed: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]] = iter
) -> Iterator[pa.Table]:
    """Yield a table for each batch of a frame, as the function, which Spark's tasks call, returns it."""

    def packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # a row for each batch, which a session can give without a Python object for each value
        for batch in changed(batches):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            yield pa.RecordBatch.from_pydict({"batch": [sink.getvalue().to_pybytes()]})

    for row in frame.mapInArrow(packed, "batch binary").toLocalIterator(prefetchPartitions=True):
        yield pa.ipc.open_stream(row.batch).read_all()


def session_for(spark: SparkSession | None, table: str) -> SparkSession:
    """Return the session that reads a table which nothing else can read.

    Raises:
        TableUnsuited: there is none.
    """
    if spark is None:
        raise only_spark_reads(table)
    return spark


def snapshot(
    spark: SparkSession | None, storage: Storage, path: str, columns: Struct, version: int | None = None
) -> Snapshot:
    """Return the table as it is now, or at a version that may be there no more: its rows are then for Spark to read.

    Raises:
        TableUnsuited: only Spark can read the table as it is now, and there is no session.
    """
    if storage.reaches_tables(path):
        try:
            table = storage.table(path)
            if version is not None:
                table.load_as_version(version)
            if is_readable(table):
                has = {name.lower(): name for name in pa.schema(table.schema()).names}
                fields = [one.with_name(has.get(one.name, one.name)) for one in arrow_fields(columns)]
                rows = FileRows(storage, data_files(table, path), fields)
                return Snapshot(storage.address(path), table.version(), columns, rows)
        except deltalake.exceptions.DeltaError:
            if not storage.table_exists(path):
                return Snapshot(storage.address(path), -1, columns)
    if version is None:
        # refuse without a session
        session_for(spark, path)
        version = newest_version(storage, path)
    return Snapshot(storage.address(path), version, columns)


def silver_keys(layout: Layout) -> set[str]:
    """Return the keys of all games that have a table or a checkpoint."""
    return {*layout.storage.names(f"{layout.root}/silver"), *layout.storage.names(f"{layout.root}/checkpoints/silver")}


def silver_snapshots(spark: SparkSession | None, layout: Layout, keys: Iterable[str]) -> dict[str, Snapshot]:
    """Return the silver tables as they are now, by key, without those that are not there."""
    names = sorted(keys)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="snapshots") as pool:
        found = pool.map(lambda key: snapshot(spark, layout.storage, layout.silver(key), _SILVER), names)
        return {key: one for key, one in zip(names, found, strict=True) if one.version >= 0}


def last_batches(storage: Storage, bronze: str, writer: str, versions: Iterable[int]) -> dict[int, int]:
    """Return, by version, the last batch of the stream that bronze has before it, -1 for none.

    Versions that its log does not reach back to are left out. Reads one or few small files for each.
    """
    log = _Log(storage, bronze, writer)
    found = ((version, log.batch_before(version)) for version in sorted(set(versions)))
    return {version: batch for version, batch in found if batch is not None}


class _Log:
    """The batches in bronze's log, each commit read once."""

    def __init__(self, storage: Storage, bronze: str, writer: str) -> None:
        self._storage = storage
        self._folder = f"{bronze}/_delta_log"
        self._names = frozenset(storage.names(self._folder))
        self._writer = writer
        self._found: dict[int, int | None] = {}

    def batch_before(self, version: int) -> int | None:
        """Return the last batch before a version; None where the log does not reach back to it."""
        for at in range(version - 1, -1, -1):
            name = commit_name(at)
            if name not in self._names:
                return None
            if at not in self._found:
                self._found[at] = self._batch_in(self._storage.read_text(f"{self._folder}/{name}"))
            batch = self._found[at]
            if batch is not None:
                return batch
        return -1

    def _batch_in(self, commit: str) -> int | None:
        batch = transaction_in(commit, self._writer)
        if batch is None and any(line.startswith('{"txn"') for line in commit.split("\n")):
            # another stream's: before it, bronze is one that was made again since
            return -1
        return batch
