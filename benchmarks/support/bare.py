"""The bare loop: Parquet to `ptars` to an append by `deltalake`, in as many processes as the fleet has tasks.

No Spark, no checks of payloads, no columns about where rows came from, all rows read by the game's newest schema; a bad
row would stop it.
"""

from __future__ import annotations

import multiprocessing
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import ptars
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from demux.core.names import names_of
from demux.core.protobuf.schema.descriptor_pool import pool_of
from demux.core.protobuf.schema.protoc import CompiledSchema


@dataclass(frozen=True, slots=True)
class Job:
    """One game's new files, the schema that reads them, and the table that gets the rows."""

    files: tuple[str, ...]
    descriptor_set: bytes
    message: str
    table: str


class BareLoop:
    """Decodes what came to a bronze table since the last time.

    Attributes:
        rows: how many were decoded so far.
    """

    def __init__(self, bronze: str, folder: Path, schemas: Mapping[str, CompiledSchema], pool: Any) -> None:
        """Prepare; `schemas` are those of the games, `folder` gets a table for each, `pool` has the processes."""
        self._bronze = Path(bronze)
        self._folder = folder
        self._schemas = schemas
        self._pool = pool
        self._seen: set[str] = set()
        self.rows = 0

    def take(self) -> None:
        """Decode and append what is new, the largest game first."""
        self.rows += sum(self._pool.imap_unordered(decode, self._jobs()))

    def _jobs(self) -> list[Job]:
        actions = pa.table(DeltaTable(self._bronze).get_add_actions(flatten=True))
        new: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for row in actions.select(["path", "size_bytes", "partition.game_name"]).to_pylist():
            if row["path"] not in self._seen:
                self._seen.add(row["path"])
                new[row["partition.game_name"]].append((str(self._bronze / unquote(row["path"])), row["size_bytes"]))
        by_size = sorted(new, key=lambda game: -sum(size for _, size in new[game]))
        return [self._job(game, tuple(path for path, _ in new[game])) for game in by_size]

    def _job(self, game: str, files: tuple[str, ...]) -> Job:
        schema = self._schemas[game]
        return Job(files, schema.descriptor_set, schema.message, str(self._folder / names_of(game).key))


@contextmanager
def processes(count: int) -> Iterator[Any]:
    """Give a pool of so many processes, which live as long as the block runs."""
    with multiprocessing.get_context("spawn").Pool(count) as pool:
        yield pool


def decode(job: Job) -> int:
    """Append the rows of a game's files to its table and return how many there are."""
    handler = _handler(job.descriptor_set, job.message)
    batches = [
        handler(column) for file in job.files for column in pq.read_table(file, columns=["payload"]).column(0).chunks
    ]
    rows = pa.Table.from_batches(batches)
    rows = rows.cast(pa.schema([field.with_type(_signed(field.type)) for field in rows.schema]))
    write_deltalake(job.table, rows, mode="append")
    return len(rows)


def _signed(kind: pa.DataType) -> pa.DataType:
    # Delta has no unsigned types
    return {pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}.get(kind, kind)


@cache
def _handler(descriptor_set: bytes, message: str) -> Callable[[pa.Array], pa.RecordBatch]:
    root = pool_of(FileDescriptorSet.FromString(descriptor_set)).FindMessageTypeByName(message)
    decode: Callable[[pa.Array], pa.RecordBatch] = (
        ptars.HandlerPool([root.file]).get_for_message(root).array_to_record_batch
    )
    return decode
