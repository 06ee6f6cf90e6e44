"""Tables at a version that does not change while they are counted; the silver tables of many games as one frame.

Reads logs and, when the frames are used, one column of data files; writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.delta_log import commit_name, newest_version, transaction_in
from demux.storage import file_names, read_text
from demux.storage.location import locate
from demux.tables import Layout

_THREADS = 8
_ID = "_record_id"
# whatever else a path has, Spark might take for a pattern, and a log might write otherwise
_PLAIN_PATH = re.compile(r"[\w./@+,=-]+")
_FILE_OF_KEY = r"/([a-z0-9_]+)/[^/]+$"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table at a version.

    Attributes:
        path: where it is.
        version: the version; -1 where there is no table.
        files: its files, where they can be read as they are; None: Delta must read it.
    """

    path: str
    version: int
    files: tuple[str, ...] | None = None

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return its rows."""
        return spark.read.format("delta").option("versionAsOf", self.version).load(self.path)


def snapshot(spark: SparkSession, path: str) -> Snapshot:
    """Return the table as it is now."""
    return Snapshot(path, newest_version(spark, path))


def silver_keys(spark: SparkSession, layout: Layout) -> set[str]:
    """Return the keys of all games that have a table or a checkpoint."""
    return {*file_names(spark, f"{layout.root}/silver"), *file_names(spark, f"{layout.root}/checkpoints/silver")}


def silver_snapshots(spark: SparkSession, layout: Layout, keys: Iterable[str]) -> dict[str, Snapshot]:
    """Return the silver tables as they are now, by key, without those that are not there."""
    here = locate(layout.root).key if layout.storage.is_folder(layout.root) else None

    def look(key: str) -> Snapshot:
        found = None if here is None else _plain_files(Layout(here).silver(key))
        return found or snapshot(spark, layout.silver(key))

    names = sorted(keys)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="snapshots") as pool:
        found = dict(zip(names, pool.map(look, names), strict=True))
    return {key: one for key, one in found.items() if one.version >= 0}


def silver_rows(spark: SparkSession, tables: Mapping[str, Snapshot], names: Mapping[str, str]) -> DataFrame:
    """Return all rows of the tables: game, id. Tables of plain files are one scan, however many they are.

    Args:
        spark: the session.
        tables: the tables by key.
        names: the games' exact names by key; a key that no game has is its own name.
    """
    files = [file for table in tables.values() for file in table.files or ()]
    frames = [
        one.frame(spark).select(F.lit(names.get(key, key)).alias("game"), F.col(_ID).alias("id"))
        for key, one in tables.items()
        if one.files is None
    ]
    if files:
        rows = spark.read.schema(f"{_ID} string").parquet(*files)
        keyed = rows.select(F.regexp_extract(F.input_file_name(), _FILE_OF_KEY, 1).alias("key"), F.col(_ID).alias("id"))
        known = spark.createDataFrame([(key, names.get(key, key)) for key in tables], "key string, game string")
        frames.append(keyed.join(F.broadcast(known), "key").select("game", "id"))
    return together(frames) if frames else spark.createDataFrame([], "game string, id string")


def together(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of all frames; as a tree, as a chain of a thousand is too deep for Spark."""
    while len(frames) > 1:
        pairs = [frames[at : at + 2] for at in range(0, len(frames), 2)]
        frames = [pair[0].unionByName(pair[1]) if len(pair) == 2 else pair[0] for pair in pairs]
    return frames[0]


def last_batches(spark: SparkSession, bronze: str, writer: str, versions: Iterable[int]) -> dict[int, int]:
    """Return, by version, the last batch of the stream that bronze has before it, -1 for none.

    Versions that its log does not reach back to are left out. Reads one or few small files for each.
    """
    log = _Log(spark, bronze, writer)
    found = ((version, log.batch_before(version)) for version in sorted(set(versions)))
    return {version: batch for version, batch in found if batch is not None}


class _Log:
    """The batches in bronze's log, each commit read once."""

    def __init__(self, spark: SparkSession, bronze: str, writer: str) -> None:
        self._spark = spark
        self._folder = f"{bronze}/_delta_log"
        self._names = frozenset(file_names(spark, self._folder))
        self._writer = writer
        self._found: dict[int, int | None] = {}

    def batch_before(self, version: int) -> int | None:
        """Return the last batch before a version; None where the log does not reach back to it."""
        for at in range(version - 1, -1, -1):
            name = commit_name(at)
            if name not in self._names:
                return None
            if at not in self._found:
                self._found[at] = self._batch_in(read_text(self._spark, f"{self._folder}/{name}"))
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


def _plain_files(path: str) -> Snapshot | None:
    """Return the table at a path of this machine with its files; None where Delta must look."""
    from deltalake import DeltaTable

    if not _PLAIN_PATH.fullmatch(path):
        return None
    try:
        table = DeltaTable(path)
        protocol = table.protocol()
        asks = {"deletionVectors", "columnMapping"} & set(protocol.reader_features or ())
        if asks or protocol.min_reader_version == 2 or table.metadata().partition_columns:
            return None
        return Snapshot(path, table.version(), tuple(table.file_uris()))
    except Exception:  # what deltalake cannot read, Spark may
        return None
