"""Reads the rows of Delta tables without Spark.

`DeltaTable.to_pyarrow_dataset` and `to_pyarrow_table` are not used: they read in threads of Arrow that call Python, and
a process that ends while such a thread is at work is aborted ("terminate called without an active exception").
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from demux.core.columns.arrow import MAX_BATCH_BYTES, MAX_BATCH_ROWS, as_type, table_of
from demux.core.delta.log import file_path
from demux.core.errors import TableUnsuited
from demux.core.extras import deltalake
from demux.core.storage.files import Storage

# so many files of at most this size are in memory, in the columns that are asked for, while the first of them is used
_FILES_AHEAD, _AHEAD_BYTES = 4, 16 * 2**20
_READ = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
_PARTITION = "partition."
_UNPARTITIONED: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of a table.

    Attributes:
        size: in bytes.
        constants: the values of columns that the file does not have, as those of its partition.
    """

    path: str
    size: int
    constants: Mapping[str, Any] = field(default_factory=dict)


def is_readable(table: deltalake.DeltaTable) -> bool:
    """Return whether the table's files have its rows: no deletion vectors, no other names of columns."""
    protocol = table.protocol()
    mapped = table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none"
    return not mapped and protocol.min_reader_version <= 3 and {*(protocol.reader_features or ())} <= _READ


def open_readable(storage: Storage, path: str) -> deltalake.DeltaTable:
    """Return the table at a path, which `scan` reads.

    Raises:
        TableUnsuited: only Spark reads it.
        deltalake.exceptions.TableNotFoundError: there is none.
    """
    try:
        table = storage.table(path)
    except deltalake.exceptions.TableNotFoundError:
        raise
    except deltalake.exceptions.DeltaError as error:
        raise only_spark_reads(path) from error
    if not is_readable(table):
        raise only_spark_reads(path)
    return table


def only_spark_reads(table: str) -> TableUnsuited:
    """Return the error of a table that needs a session where there is none."""
    return TableUnsuited(
        f"Only Spark reads the table {table}: it has deletion vectors, column mapping or another such feature.",
        "Run the same command with --spark.",
        table=table,
    )


def data_files(table: deltalake.DeltaTable, path: str, among: pc.Expression | None = None) -> list[DataFile]:
    """Return the files of an open table.

    Args:
        among: which files, by the columns of `get_add_actions(flatten=True)`; None: all.
    """
    actions = table_of(table.get_add_actions(flatten=True))
    actions = actions if among is None else actions.filter(among)
    partitioned = [name for name in actions.column_names if name.startswith(_PARTITION)]
    return [
        DataFile(
            file_path(path, unquote(row["path"])),
            row["size_bytes"],
            {name.removeprefix(_PARTITION): row[name] for name in partitioned},
        )
        for row in actions.select(["path", "size_bytes", *partitioned]).to_pylist()
    ]


def sizes_of(table: deltalake.DeltaTable, partition: Mapping[str, str] = _UNPARTITIONED) -> dict[str, int]:
    """Return the sizes in bytes of a table's files, or of those of a partition, by path as the log has it."""
    actions = table_of(table.get_add_actions(flatten=True))
    for name, value in partition.items():
        actions = actions.filter(pc.equal(actions.column(f"{_PARTITION}{name}"), value))
    return dict(zip(actions.column("path").to_pylist(), actions.column("size_bytes").to_pylist(), strict=True))


def read_table(storage: Storage, path: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of the table at a path in some of its columns, or in all; raises as `open_readable`."""
    table = open_readable(storage, path)
    return pa.Table.from_batches(table_rows(storage, table, path, columns), pa.schema(_fields(table, columns)))


def table_rows(
    storage: Storage, table: deltalake.DeltaTable, path: str, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an open table in some of its columns, or in all, in the types of its schema."""
    return scan(storage, data_files(table, path), _fields(table, columns))


def _fields(table: deltalake.DeltaTable, columns: Sequence[str] | None) -> list[pa.Field]:
    schema = pa.schema(table.schema())
    return list(schema) if columns is None else [schema.field(name) for name in columns]


def scan(storage: Storage, files: Iterable[DataFile], fields: Sequence[pa.Field]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the files in these columns, file after file, NULL where a file has none.

    Args:
        storage: how the files are reached; in a store, small files are read ahead.
        files: the files; each is reached in the same way.
        fields: the columns, also such as are constants of the files.
    """
    files = tuple(files)
    ahead = min(_FILES_AHEAD, storage.side_by_side(files[0].path)) if files else 1
    if ahead == 1:
        for file in files:
            yield from file_rows(storage, file.path, file.size, fields, file.constants)
        return
    waiting: deque[Callable[[], Iterable[pa.RecordBatch]]] = deque()
    with ThreadPoolExecutor(ahead, thread_name_prefix="scan") as pool:
        for file in files:
            rows = partial(file_rows, storage, file.path, file.size, fields, file.constants)
            # a generator does nothing until a thread asks it for a row
            waiting.append(pool.submit(list, rows()).result if file.size <= _AHEAD_BYTES else rows)
            if len(waiting) == ahead:
                yield from waiting.popleft()()
        while waiting:
            yield from waiting.popleft()()


def file_rows(
    storage: Storage,
    path: str,
    size: int,
    fields: Sequence[pa.Field],
    constants: Mapping[str, Any] = _UNPARTITIONED,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file in these columns: its own, constants, or NULL; `size` is in bytes."""
    with storage.open(path, size) as opened:
        # Spark 3.4 writes times as INT96, without a zone
        file = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")
        own, schema = frozenset(file.schema_arrow.names) - constants.keys(), pa.schema(fields)
        there = [one.name for one in fields if one.name in own]
        for batch in file.iter_batches(batch_rows(file.metadata, there), columns=there, use_threads=False):
            arrays = [
                as_type(batch.column(one.name), one.type)
                if one.name in own
                else _repeated(constants.get(one.name), one.type, len(batch))
                for one in fields
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _repeated(value: object, kind: pa.DataType, rows: int) -> pa.Array:
    return pa.nulls(rows, kind) if value is None else pa.repeat(pa.scalar(value, kind), rows)


def batch_rows(metadata: Any, columns: Sequence[str] | None = None) -> int:
    """Return how many rows of a Parquet file, in some of its columns, may be in memory several times."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    if columns is None:
        row_bytes = max((group.total_byte_size / max(1, group.num_rows) for group in groups), default=0)
    else:
        row_bytes = max((_bytes_of(group, set(columns)) / max(1, group.num_rows) for group in groups), default=0)
    return max(1, min(MAX_BATCH_ROWS, int(MAX_BATCH_BYTES / max(1, row_bytes))))


def _bytes_of(group: Any, columns: set[str]) -> int:
    chunks = (group.column(number) for number in range(group.num_columns))
    return sum(one.total_uncompressed_size for one in chunks if one.path_in_schema.split(".", 1)[0] in columns)
