"""Maintenance of one table without Spark: `deltalake` joins, orders and says which files are not needed.

What is removed is removed by us, so that a table from which nothing goes gets no commit that says so.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import timedelta

from demux.core.columns.arrow import table_of
from demux.core.delta.parquet_writer import suits
from demux.core.delta.rewrite_rows import join
from demux.core.extras import deltalake
from demux.core.storage.files import Storage
from demux.operations.maintenance.compaction_plan import (
    LastSort,
    LiveFile,
    files_after,
    is_out_of_order,
    joinings,
    steps,
)
from demux.operations.maintenance.report import Table, TableMaintenance

# what is rewritten between two chances for others
_STEP_BYTES = 256 * 2**20
# so many commits since the last checkpoint of a log are read again and again
_COMMITS = 10
_OF_CHECKPOINT = re.compile(r"\d{20}\.checkpoint.*\.parquet")


def maintain_files(
    storage: Storage, table: Table, target: int, last: LastSort | None, *, dry_run: bool, between: Callable[[], None]
) -> tuple[TableMaintenance, LastSort | None]:
    """Compact and sort the table; return what was done, and the last sort.

    Args:
        target: size in bytes up to which files are joined.

    Raises:
        NotImplementedError: the table is one for Spark.
    """
    opened = storage.table(table.path)
    if not suits(opened):
        raise NotImplementedError(table.path)
    files = live_files(opened)
    columns = _columns_in(opened, table.order)
    found = joinings(files, target)
    # deltalake (1.6.6) does not find the files again whose paths have other letters in the log, and doubles their rows
    if not all(file.is_ascii for file in files if file.partition in {one.partition for one in found}):
        raise NotImplementedError(table.path)
    ordering = bool(found) and is_out_of_order(files, columns, last)
    expected = files_after(found, target) + len(files) - sum(one.files for one in found)
    done = TableMaintenance(table, len(files), expected, sum(file.bytes for file in files))
    if dry_run:
        return done, last
    if ordering:
        opened.optimize.z_order(list(columns), target_size=target)
        last = LastSort(columns, int(time.time() * 1000))
    else:
        for number, group in enumerate(steps(found, _STEP_BYTES)):
            if number:
                between()
                # what others have changed meanwhile would be there twice
                opened.update_incremental()
            _join(opened, target, [one.partition for one in group])
    _checkpoint(storage, opened, table.path)
    after = live_files(opened)
    return replace(done, files_after=len(after), bytes_after=sum(file.bytes for file in after)), last


def live_files(table: deltalake.DeltaTable) -> tuple[LiveFile, ...]:
    """Return the files of the table's version."""
    actions = table_of(table.get_add_actions(flatten=True))
    names = table.metadata().partition_columns
    none = [None] * actions.num_rows
    values = actions.column(f"partition.{names[0]}").to_pylist() if len(names) == 1 else none
    sizes, written, paths = (actions.column(name).to_pylist() for name in ("size_bytes", "modification_time", "path"))
    return tuple(
        LiveFile(value, size, at, is_ascii=path.isascii())
        for value, size, at, path in zip(values, sizes, written, paths, strict=True)
    )


def unneeded_files(storage: Storage, path: str, keep: timedelta) -> dict[str, int]:
    """Return the size in bytes of each file that no recent version of the table needs, by path below the table.

    Args:
        keep: how long a file stays that was removed from the table, or never was in it; counted in whole hours.
    """
    table = storage.table(path)
    hours = math.ceil(keep / timedelta(hours=1))
    old = set(table.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True))
    if not old:
        return {}
    # whatever deltalake makes of a path: no two files have the same name
    needed = {_name(one) for one in table.file_uris()}
    return {
        file.key: file.bytes
        for file in storage.files(path)
        # with a file goes the checksum that Spark's client keeps beside it
        if file.key in old and not _is_needed(_name(file.key), needed)
    }


def remove(storage: Storage, path: str, keys: Collection[str]) -> None:
    """Remove files below a table, and the checksums of Spark's client for a folder; a second call does nothing."""
    checksums = [f"{folder}{slash}.{name}.crc" for folder, slash, name in (key.rpartition("/") for key in keys)]
    storage.delete(f"{path}/{key}" for key in (*keys, *(checksums if storage.is_folder(path) else ())))


def _is_needed(name: str, needed: Collection[str]) -> bool:
    return name.startswith(".") or name in needed


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _join(table: deltalake.DeltaTable, target: int, partitions: Collection[str | None]) -> None:
    names = table.metadata().partition_columns
    values = [value for value in partitions if value is not None]
    if len(names) == 1 and len(values) == len(partitions):
        join(table, target, names[0], values)
    else:
        join(table, target)


def _checkpoint(storage: Storage, table: deltalake.DeltaTable, path: str) -> None:
    """Write a checkpoint of the log."""
    names = (name for name in storage.names(f"{path}/_delta_log") if _OF_CHECKPOINT.match(name))
    if table.version() - max((int(name[:20]) for name in names), default=-1) > _COMMITS:
        table.create_checkpoint()


def _columns_in(table: deltalake.DeltaTable, columns: tuple[str, ...]) -> tuple[str, ...]:
    names = {field.name for field in table.schema().fields}
    return tuple(column for column in columns if column in names)
