"""Rows into Delta tables without Spark's writer: workers write Parquet files, the driver commits them all at once.

A file is in no table before `commit_files`; what a task leaves behind that dies is removed by VACUUM. Files are named
by the partition's key, never by its value: a value may be hostile.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.app_transactions import Batch
from demux.core.delta.file_stats import stats_of
from demux.core.names import key_folder
from demux.core.storage.backend import NewFile
from demux.core.storage.files import Storage
from demux.core.storage.location import Scheme, locate
from demux.core.storage.refusals import refusal

if TYPE_CHECKING:
    from deltalake import DeltaTable

# the columns in which workers tell the driver what they wrote
FILES = Struct(
    (
        Column("table", Primitive.STRING),
        Column("path", Primitive.STRING),
        Column("partition", Primitive.STRING),
        Column("rows", Primitive.BIGINT),
        Column("bytes", Primitive.BIGINT),
        Column("stats", Primitive.STRING),
    )
)

# in memory, of one table in one task
_BUFFER_BYTES = 64 * 2**20
_FILE_BYTES = 128 * 2**20
_OPEN_FILES = 200
# what the log may ask of a writer, and these files give; CHECK constraints and renamed columns they do not
_FEATURES = frozenset({"appendOnly", "invariants", "changeDataFeed", "deletionVectors", "v2Checkpoint"})
# with these, rows of a file are deleted, its columns have other names, or its order is one that only Spark knows
_NOT_WITHOUT_SPARK = frozenset({"deletionVectors", "columnMapping", "rowTracking", "typeWidening", "clustering"})


@dataclass(frozen=True, slots=True)
class TableFile:
    """A written file, in the columns of `FILES`; `path` is relative to the table."""

    table: str
    path: str
    partition: str | None
    rows: int
    bytes: int
    stats: str


class TableWriter:
    """Writes rows of one table into Parquet files in its folder; on an error it removes them again.

    One file for each partition, another one after 128 MiB; 64 MiB of rows are kept in memory at most.
    """

    def __init__(self, storage: Storage, table: str, columns: Struct, partition_by: str | None = None) -> None:
        """Prepare for the table at a path or URI, with these columns, partitioned by one of them (STRING)."""
        self._storage = storage
        self._table = table
        self._partition_by = partition_by
        self._schema = pa.schema(arrow_fields(Struct(tuple(c for c in columns if c.name != partition_by))))
        # of numbers it costs more than it saves
        self._repeating = [one.name for one in self._schema if pa.types.is_string(one.type)]
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._open: dict[str | None, _OpenFile] = {}
        self._written: list[TableFile] = []

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for file in self._open.values():
                file.abandon()
            remove_files(self._storage, self._table, [file.path for file in self._written])

    def add(self, rows: pa.RecordBatch) -> None:
        """Append rows, in the table's columns."""
        if not len(rows):
            return
        self._waiting.append(rows)
        self._waiting_bytes += rows.nbytes
        if self._waiting_bytes >= _BUFFER_BYTES:
            self._flush()

    def hand_over(self, to: TableWriter) -> list[TableFile]:
        """Return all files, complete on disk; without a first row there is no file."""
        if self._open or self._written:
            return self.close()
        for rows in self._waiting:
            to.add(rows)
        self._waiting, self._waiting_bytes = [], 0
        return []

    def encode(self) -> None:
        """Encode all rows that were added; what is left for `close` is to send the files."""
        self._flush()
        self._encode_all()

    def close(self) -> list[TableFile]:
        """Return all files, complete on disk."""
        self._flush()
        self._close_all()
        return self._written

    def _flush(self) -> None:
        for value, rows in self._parts():
            if value not in self._open and len(self._open) >= _OPEN_FILES:
                self._close_all()
            file = self._open.get(value) or self._begin(value)
            file.writer.write_table(rows)
            if file.sink.tell() >= _FILE_BYTES:
                self._written.append(self._finish(self._open.pop(value)))
        self._waiting, self._waiting_bytes = [], 0

    def _parts(self) -> Iterator[tuple[str | None, pa.Table]]:
        """Yield the waiting rows of each partition."""
        if not self._waiting:
            return
        rows = pa.Table.from_batches(self._waiting)
        if self._partition_by is None:
            yield None, rows
            return
        values = rows.column(self._partition_by).combine_chunks().dictionary_encode()
        codes = values.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        together = rows.drop_columns([self._partition_by]).take(pa.array(order))
        ends = np.cumsum(np.bincount(codes, minlength=len(values.dictionary)))
        for value, begin, end in zip(values.dictionary.to_pylist(), [0, *ends], ends, strict=False):
            yield value, together.slice(int(begin), int(end - begin))

    def _begin(self, value: str | None) -> _OpenFile:
        folder = "" if value is None else f"{key_folder(value)}/"
        path = f"{folder}part-{uuid.uuid4()}.parquet"
        sink = self._storage.writer(f"{self._table}/{path}")
        self._open[value] = file = _OpenFile(path, value, sink)
        file.writer = pq.ParquetWriter(
            sink, self._schema, use_dictionary=self._repeating, metadata_collector=file.metadata
        )
        return file

    def _close_all(self) -> None:
        self._encode_all()
        files, self._open = list(self._open.values()), {}
        threads = min(self._storage.side_by_side(self._table), len(files) or 1)
        with ThreadPoolExecutor(threads, thread_name_prefix="upload") as pool:
            ended = [pool.submit(self._finish, file) for file in files]
        # before one of them raises: what is written has to be removed then
        self._written += [one.result() for one in ended if one.exception() is None]
        for file, one in zip(files, ended, strict=True):
            if one.exception() is not None:
                file.abandon()
        for one in ended:
            one.result()

    def _encode_all(self) -> None:
        # in one thread, as memory that another one has used is not used again
        for file in self._open.values():
            file.writer.close()

    def _finish(self, file: _OpenFile) -> TableFile:
        file.writer.close()
        size = file.sink.tell()
        file.sink.close()
        (metadata,) = file.metadata
        stats = json.dumps(stats_of(metadata))
        return TableFile(self._table, file.path, file.partition, metadata.num_rows, size, stats)


@dataclass(slots=True)
class _OpenFile:
    path: str
    partition: str | None
    sink: NewFile
    metadata: list[Any] = field(default_factory=list)
    writer: Any = None

    def abandon(self) -> None:
        """Leave no file behind."""
        # on a full disk not even closing works
        with suppress(OSError):
            self.writer.close()
        # or it would try again when it is forgotten
        self.writer.is_open = False
        self.sink.abandon()


def encode_files(files: Sequence[TableFile]) -> pa.RecordBatch:
    """Return the files in the columns of `FILES`."""
    columns = list(zip(*map(astuple, files), strict=True)) or [()] * len(FILES.columns)
    fields = arrow_fields(FILES)
    return pa.RecordBatch.from_arrays(
        [pa.array(values, one.type) for values, one in zip(columns, fields, strict=True)], schema=pa.schema(fields)
    )


def add_constants(rows: pa.RecordBatch, columns: Struct, **constants: object) -> pa.RecordBatch:
    """Return the rows in these columns, with one value in each of the constant ones."""
    fields = arrow_fields(columns)
    arrays = [
        pa.repeat(pa.scalar(constants[one.name], one.type), len(rows))
        if one.name in constants
        else rows.column(one.name)
        for one in fields
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def schema_json(table: DeltaTable) -> str:
    """Return the table's schema as its log has it, which is as Spark writes schemas."""
    return str(table.schema().to_json())


def takes_files(table: DeltaTable) -> bool:
    """Return whether the table asks nothing of its writers that these files do not give."""
    protocol = table.protocol()
    if protocol.min_writer_version < 7:
        return bool(protocol.min_writer_version <= 2)
    return set(protocol.writer_features or ()) <= _FEATURES


def suits(table: DeltaTable) -> bool:
    """Return whether `deltalake` may rewrite the table's files: it knows neither deleted rows nor other names."""
    protocol = table.protocol()
    asked = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    mapped = table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none"
    return not mapped and not {feature.removesuffix("-preview") for feature in asked} & _NOT_WITHOUT_SPARK


def commit_files(
    storage: Storage, table: str, files: Sequence[TableFile], partition_by: str | None, batch: Batch, into: DeltaTable
) -> None:
    """Append the files to the table, once for each batch; where the batch is there already, they are removed.

    Args:
        into: the table, open at any version.
    """
    into.update_incremental()
    newest = into.transaction_version(batch.query_id)
    if newest is not None and newest >= batch.batch_id:
        remove_files(storage, table, [file.path for file in files])
        return
    append_files(into, files, partition_by, {batch.query_id: batch.batch_id})


def append_files(
    into: DeltaTable, files: Sequence[TableFile], partition_by: str | None, transactions: Mapping[str, int]
) -> None:
    """Append the files to the table in one commit, with these versions of application transactions by id.

    A commit that fails is looked for by its transactions: its answer may have been lost.
    """
    from deltalake import CommitProperties, Transaction
    from deltalake.transaction import AddAction, RemoveAction

    now = int(time.time() * 1000)
    actions: list[AddAction | RemoveAction] = [
        AddAction(
            file.path,
            file.bytes,
            {} if partition_by is None else {partition_by: file.partition},
            now,
            True,
            file.stats,
        )
        for file in files
    ]
    done = [Transaction(app_id, version) for app_id, version in transactions.items()]
    properties = CommitProperties(app_transactions=done)
    try:
        into.create_write_transaction(actions, "append", into.schema(), partition_by, commit_properties=properties)
    except Exception as error:
        into.update_incremental()
        if not transactions or any(into.transaction_version(name) != number for name, number in transactions.items()):
            if isinstance(error, OSError) and locate(into.table_uri).scheme is not Scheme.FILE:
                raise refusal("write", into.table_uri, "GenericError", str(error)) from error
            raise


def remove_files(storage: Storage, table: str, paths: Iterable[str]) -> None:
    """Remove files that no commit names."""
    storage.delete(f"{table}/{path}" for path in paths)
