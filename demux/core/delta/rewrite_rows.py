"""Files of a table written again without Spark, in one commit: without some rows, changed, or joined to larger ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.spark import columns_in_json
from demux.core.columns.types import Struct
from demux.core.delta.commit import Replacement, replaces_files
from demux.core.delta.log import file_path
from demux.core.delta.parquet_writer import TableFile, TableWriter, add_constants, remove_files, schema_json
from demux.core.delta.scan import data_files, file_rows, scan, sizes_of
from demux.core.errors import ConcurrentChange
from demux.core.extras import deltalake
from demux.core.storage.files import Storage

# which rows of a batch are meant; a NULL means that a row is not
RowMask = Callable[[pa.RecordBatch], pa.BooleanArray]

_MOST_TRIES = 5
_UNPARTITIONED: Mapping[str, str] = MappingProxyType({})


def open_to_replace(storage: Storage, path: str, partition_by: Sequence[str] = ()) -> deltalake.DeltaTable | None:
    """Return the table if its files may be replaced without Spark; None where they may not, or where there is none."""
    table = storage.known_table(path)
    if table is None or not replaces_files(table, partition_by):
        return None
    try:
        columns_in_json(schema_json(table))
    except KeyError:  # a type that no column of ours has
        return None
    return table


def chosen_rows(
    storage: Storage, table: deltalake.DeltaTable, path: str, columns: Struct, chosen: RowMask
) -> Iterator[pa.RecordBatch]:
    """Yield the chosen rows of an open table in some of its columns, file after file."""
    for batch in scan(storage, data_files(table, path), arrow_fields(columns)):
        yield batch.filter(chosen(batch))


def delete_rows(
    storage: Storage,
    path: str,
    gone: RowMask,
    columns: Struct,
    partition: Mapping[str, str] = _UNPARTITIONED,
    mark: str | None = None,
) -> int | None:
    """Delete rows in one commit; return how many there were, None where that is not possible without Spark.

    Args:
        columns: those of the table that `gone` looks at.
        partition: the value of each partition column, where rows of one partition go; empty: the table has none.
        mark: the commit's `userMetadata`; None: none.

    Raises:
        ConcurrentChange: others rewrite the table all the time; nothing was committed.
    """
    for _ in range(_MOST_TRIES):
        table = open_to_replace(storage, path, [*partition])
        if table is None:
            return None
        rows = without_rows(storage, table, path, gone, columns, partition, mark)
        if rows is not None:
            return rows
    raise ConcurrentChange(f"Others write the table {path} all the time.", "Run the same command again.")


def without_rows(
    storage: Storage,
    table: deltalake.DeltaTable,
    path: str,
    gone: RowMask,
    columns: Struct,
    partition: Mapping[str, str] = _UNPARTITIONED,
    mark: str | None = None,
) -> int | None:
    """Delete rows of a table as it was read, as `delete_rows`; None where others replaced files: nothing is done then.

    Rows that others append meanwhile stay.
    """
    everything = columns_in_json(schema_json(table))
    sizes, looked_at = sizes_of(table, partition), arrow_fields(columns)

    def deleted_in(file: str) -> int:
        batches = file_rows(storage, file_path(path, unquote(file)), sizes[file], looked_at)
        return sum(pc.sum(gone(batch)).as_py() or 0 for batch in batches)

    def left(batch: pa.RecordBatch) -> pa.RecordBatch:
        kept = batch.filter(pc.invert(pc.fill_null(gone(batch), False)))
        # a file does not have the columns of its partition
        return add_constants(kept, everything, **partition) if partition else kept

    with _side_by_side(storage, path) as pool:
        found = dict(zip(sizes, pool.map(deleted_in, sizes), strict=True))
    removed = {file: sizes[file] for file, rows in found.items() if rows}
    added = rewritten(storage, path, removed, everything, left, *partition)
    replacement = Replacement("DELETE", removed, added, mark=mark, partition=partition)
    if not removed or replace_beside(storage, table, path, replacement):
        return sum(found.values())
    return None


def rewritten(
    storage: Storage,
    path: str,
    sizes: Mapping[str, int],
    columns: Struct,
    changed: Callable[[pa.RecordBatch], pa.RecordBatch],
    *partition_by: str,
) -> list[TableFile]:
    """Return new files, in no commit yet, with the rows of files of a table after a change.

    Args:
        sizes: in bytes by path, as `sizes_of` gives them.
        columns: the table's, also of the rows that `changed` takes and gives; NULL where a file has none.
        changed: returns what the rows of a batch become; is called in several threads.
    """

    def written(file: str) -> list[TableFile]:
        with TableWriter(storage, path, columns, *partition_by) as writer:
            for batch in file_rows(storage, file_path(path, unquote(file)), sizes[file], arrow_fields(columns)):
                writer.add(changed(batch))
            return writer.close()

    with _side_by_side(storage, path) as pool:
        return [file for files in pool.map(written, sizes) for file in files]


def replace_beside(storage: Storage, table: deltalake.DeltaTable, path: str, replacement: Replacement) -> bool:
    """Replace files of a table as it was read, though others append to it; return whether that was possible.

    It is not where others replaced the same files, or gave the table other columns: the new files are removed then.
    """
    if _replaced(storage, table, path, replacement):
        return True
    remove_files(storage, path, [file.path for file in replacement.added])
    return False


def _replaced(storage: Storage, table: deltalake.DeltaTable, path: str, replacement: Replacement) -> bool:
    columns, version = schema_json(table), -1
    while table.version() != version:
        version = table.version()
        if replacement.commit(storage, table, path):
            return True
        table.update_incremental()
        if not replaces_files(table, [*replacement.partition]) or schema_json(table) != columns:
            return False
        if not replacement.removed.keys() <= sizes_of(table, replacement.partition).keys():
            return False
    return False


def join(table: deltalake.DeltaTable, target: int, column: str | None = None, values: Collection[str] = ()) -> None:
    """Join files smaller than the target into files of about that size, in one commit that changes no row.

    Args:
        table: one that `suits`; not to be written by this process in the meantime.
        target: bytes.
        column: the partition column, where only some partitions are chosen.
        values: these partitions.
    """
    chosen = None if column is None else [(column, "in", sorted(values))]
    table.optimize.compact(partition_filters=chosen, target_size=target)


def _side_by_side(storage: Storage, path: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(storage.side_by_side(path), thread_name_prefix="rewrite")
