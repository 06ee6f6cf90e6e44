"""Tables at a version that does not change while they are counted.

By `deltalake`; by Spark, where there is a session, what asks more of its readers. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Column, Primitive, Struct, sql_name
from demux.core.delta.log import commit_name, newest_version, transaction_in
from demux.core.errors import TableUnsuited
from demux.core.extras import deltalake
from demux.core.root.layout import Layout
from demux.core.storage.files import Storage

_THREADS = 8
_SILVER = Struct((Column("_record_id", Primitive.STRING),))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Some columns of a table at a version.

    Attributes:
        path: where the table is.
        version: the version; -1 where there is no table.
        columns: which columns; those that the table has not are NULL.
        rows: its rows; None where Spark must read them.
    """

    path: str
    version: int
    columns: Struct
    rows: ds.Dataset | None = field(default=None, compare=False, repr=False)

    def frame(self, spark: SparkSession | None) -> DataFrame:
        """Return its rows as Spark reads them.

        Raises:
            TableUnsuited: there is no session.
        """
        reader = session_for(spark, self.path).read.format("delta")
        found = reader.option("versionAsOf", self.version).load(self.path)
        known = {name.lower() for name in found.columns}
        return found.select(
            *(
                (found[one.name] if one.name in known else F.lit(None)).cast(sql_name(one.type)).alias(one.name)
                for one in self.columns
            )
        )


def session_for(spark: SparkSession | None, table: str) -> SparkSession:
    """Return the session that reads a table which nothing else can read.

    Raises:
        TableUnsuited: there is none.
    """
    if spark is None:
        raise TableUnsuited(
            f"Only Spark reads the table {table}: it has deletion vectors, column mapping or another such feature.",
            "Run the same command with --spark.",
            table=table,
        )
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
            return Snapshot(path, table.version(), columns, _rows(table, columns))
        except deltalake.exceptions.DeltaError:
            if not storage.table_exists(path):
                return Snapshot(path, -1, columns)
    if version is None:
        # refuse without a session
        session_for(spark, path)
        version = newest_version(storage, path)
    return Snapshot(path, version, columns)


def silver_keys(layout: Layout) -> set[str]:
    """Return the keys of all games that have a table or a checkpoint."""
    return {*layout.storage.names(f"{layout.root}/silver"), *layout.storage.names(f"{layout.root}/checkpoints/silver")}


def silver_snapshots(spark: SparkSession | None, layout: Layout, keys: Iterable[str]) -> dict[str, Snapshot]:
    """Return the silver tables as they are now, by key, without those that are not there."""
    names = sorted(keys)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="snapshots") as pool:
        found = pool.map(lambda key: snapshot(spark, layout.storage, layout.silver(key), _SILVER), names)
        return {key: one for key, one in zip(names, found, strict=True) if one.version >= 0}


def _rows(table: deltalake.DeltaTable, columns: Struct) -> ds.Dataset:
    """Return the table's rows; its files are opened when the rows are read."""
    if table.protocol().min_reader_version == 2:
        # column mapping, which `to_pyarrow_dataset` knows only as a feature of version 3
        raise deltalake.exceptions.DeltaProtocolError("The table has column mapping.")
    everything = pa.schema(table.schema())
    has = {name.lower(): name for name in everything.names}
    wanted = [one.with_name(has.get(one.name, one.name)) for one in arrow_fields(columns)]
    partitions = {name: everything.field(name) for name in table.metadata().partition_columns}
    # without the bounds of other columns: deltalake (1.6.6) takes one that has none for one without values
    rows = table.to_pyarrow_dataset(schema=pa.schema(partitions.values()))
    return rows.replace_schema(pa.schema(partitions.get(one.name, one) for one in wanted))


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
