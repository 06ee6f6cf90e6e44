"""Tables at a version that does not change while they are counted, and their rows for the engine.

By `deltalake`; by Spark, where there is a session, what asks more of its readers. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.arrow_types import arrow_fields
from demux.columns import Column, Primitive, Struct, sql_name
from demux.delta_log import commit_name, newest_version, transaction_in
from demux.errors import TableUnsuited
from demux.extras import deltalake
from demux.ledger.engine import Engine
from demux.storage import Files, file_names, read_text
from demux.storage.files import Storage
from demux.tables import Layout

_THREADS = 8
_SILVER = Struct((Column("_record_id", Primitive.STRING),))
_OF_GAMES = Struct((Column("game", Primitive.STRING), *_SILVER))


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
        version = newest_version(session_for(spark, path), path)
    return Snapshot(path, version, columns)


def silver_keys(files: Files, layout: Layout) -> set[str]:
    """Return the keys of all games that have a table or a checkpoint."""
    return {*file_names(files, f"{layout.root}/silver"), *file_names(files, f"{layout.root}/checkpoints/silver")}


def silver_snapshots(spark: SparkSession | None, layout: Layout, keys: Iterable[str]) -> dict[str, Snapshot]:
    """Return the silver tables as they are now, by key, without those that are not there."""
    names = sorted(keys)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="snapshots") as pool:
        found = pool.map(lambda key: snapshot(spark, layout.storage, layout.silver(key), _SILVER), names)
        return {key: one for key, one in zip(names, found, strict=True) if one.version >= 0}


def register(
    engine: Engine,
    spark: SparkSession | None,
    name: str,
    table: Snapshot,
    only: tuple[str, Collection[str]] | None = None,
) -> None:
    """Make the rows of a table known to the engine; of `only`, a column and values, those that have one of the values.

    Raises:
        TableUnsuited: Spark must read it, and there is no session.
    """
    if table.version < 0:
        engine.register(name, _schema(table.columns).empty_table())
    elif table.rows is not None:
        engine.register(name, table.rows if only is None else table.rows.filter(pc.field(only[0]).isin(list(only[1]))))
    else:
        frame = table.frame(spark)
        _copy(engine, name, frame if only is None else frame.where(F.col(only[0]).isin(*only[1])), table.columns)


def register_silver(
    engine: Engine, spark: SparkSession | None, tables: Mapping[str, Snapshot], names: Mapping[str, str]
) -> None:
    """Make all rows of the silver tables known to the engine, as one table: game, _record_id.

    Args:
        engine: the engine.
        spark: the session.
        tables: the tables by key.
        names: the games' exact names by key; a key that no game has is its own name.
    """
    schema = _schema(_OF_GAMES)
    fragments = [
        one.format.make_fragment(one.path, one.filesystem, pc.field("game") == names.get(key, key))
        for key, table in tables.items()
        if table.rows is not None
        for one in table.rows.get_fragments()
    ]
    engine.register("silver_files", ds.FileSystemDataset(fragments, schema, ds.ParquetFileFormat()))
    engine.register("silver_by_spark", schema.empty_table())
    frames = [
        table.frame(spark).select(F.lit(names.get(key, key)).alias("game"), "_record_id")
        for key, table in tables.items()
        if table.rows is None
    ]
    if frames:
        engine.unregister("silver_by_spark")
        _copy(engine, "silver_by_spark", _together(frames), _OF_GAMES)
    engine.execute("CREATE TEMP VIEW silver AS FROM silver_files UNION ALL FROM silver_by_spark")


def _together(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of all frames; as a tree, as a chain of a thousand is too deep for Spark."""
    while len(frames) > 1:
        pairs = [frames[at : at + 2] for at in range(0, len(frames), 2)]
        frames = [pair[0].unionByName(pair[1]) if len(pair) == 2 else pair[0] for pair in pairs]
    return frames[0]


def _copy(engine: Engine, name: str, frame: DataFrame, columns: Struct) -> None:
    """Make the rows of a frame a table of the engine, batch by batch."""
    engine.register("batch", _schema(columns).empty_table())
    engine.execute(f"CREATE TEMP TABLE {name} AS FROM batch")
    for row in frame.mapInArrow(_packed, "batch binary").toLocalIterator(prefetchPartitions=True):
        engine.register("batch", pa.ipc.open_stream(row.batch).read_all().cast(_schema(columns)))
        engine.execute(f"INSERT INTO {name} FROM batch")


def _packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return a row for each batch, which a session can give without a Python object for each value."""
    for batch in batches:
        packed = pa.BufferOutputStream()
        with pa.ipc.new_stream(packed, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.RecordBatch.from_pydict({"batch": [packed.getvalue().to_pybytes()]})


def _rows(table: deltalake.DeltaTable, columns: Struct) -> ds.Dataset:
    """Return the table's rows; its files are opened when the rows are read."""
    if table.protocol().min_reader_version == 2:
        # column mapping, which `to_pyarrow_dataset` knows only as a feature of version 3
        raise deltalake.exceptions.DeltaProtocolError("The table has column mapping.")
    everything = pa.schema(table.schema())
    has = {name.lower(): name for name in everything.names}
    wanted = pa.schema(one.with_name(has.get(one.name, one.name)) for one in arrow_fields(columns))
    # without the bounds of other columns: deltalake (1.6.6) takes one that has none for one without values
    partitions = pa.schema(everything.field(name) for name in table.metadata().partition_columns)
    return table.to_pyarrow_dataset(schema=partitions).replace_schema(wanted)


def _schema(columns: Struct) -> pa.Schema:
    return pa.schema(arrow_fields(columns))


def last_batches(files: Files, bronze: str, writer: str, versions: Iterable[int]) -> dict[int, int]:
    """Return, by version, the last batch of the stream that bronze has before it, -1 for none.

    Versions that its log does not reach back to are left out. Reads one or few small files for each.
    """
    log = _Log(files, bronze, writer)
    found = ((version, log.batch_before(version)) for version in sorted(set(versions)))
    return {version: batch for version, batch in found if batch is not None}


class _Log:
    """The batches in bronze's log, each commit read once."""

    def __init__(self, files: Files, bronze: str, writer: str) -> None:
        self._files = files
        self._folder = f"{bronze}/_delta_log"
        self._names = frozenset(file_names(files, self._folder))
        self._writer = writer
        self._found: dict[int, int | None] = {}

    def batch_before(self, version: int) -> int | None:
        """Return the last batch before a version; None where the log does not reach back to it."""
        for at in range(version - 1, -1, -1):
            name = commit_name(at)
            if name not in self._names:
                return None
            if at not in self._found:
                self._found[at] = self._batch_in(read_text(self._files, f"{self._folder}/{name}"))
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
