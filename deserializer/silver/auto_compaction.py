"""What keeps a table that gets a small file every round fast to open and to read, mostly without `deltalake`.

Small files of about the same size are rewritten as one, once there are many: so a row is written a few times in its
life, however many rounds there are. The log gets a checkpoint, at which readers start. Readers notice
nothing: they continue with the files that they know until VACUUM removes these.
"""

from __future__ import annotations

import logging
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from urllib.parse import unquote

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.spark import columns_in_json
from demux.core.delta.checkpoint.log_tail import LogTail, parsed, read_tail, write_rows
from demux.core.delta.checkpoint.next_checkpoint import next_rows
from demux.core.delta.commit import join_after
from demux.core.delta.log import file_path
from demux.core.delta.parquet_writer import TableFile, TableWriter, remove_files, schema_json, suits, takes_files
from demux.core.delta.scan import DataFile, scan
from demux.core.extras import deltalake
from demux.core.storage.files import Storage

_LOG = logging.getLogger("demux")

# every so many commits; a reader of the log reads as many small files
_COMMITS = 16
# so many files of a size become one
_FILES = 16
_SMALLEST = 64 * 1024
_LARGEST = 128 * 2**20
# after which the table is opened again
_OTHERS = frozenset({"metaData", "protocol"})
# of several tables, only files that become some megabytes are joined at the same time: the others take memory
_SMALL_TARGET = 4 * _SMALLEST * _FILES
_LARGE = threading.Lock()


def is_due(path: str, version: int) -> bool:
    """Return whether the table needs upkeep after this commit: every 16th, not the same one for all tables."""
    return version % _COMMITS == zlib.crc32(path.encode()) % _COMMITS


def target_size(sizes: Iterable[int]) -> int | None:
    """Return the size in bytes up to which the table's smaller files are to be joined; None where there are few.

    A file belongs to a step: up to 64 KiB, and each step 16 times the one before, up to 128 MiB. A step with 16 files
    is joined, together with all that are smaller, into files of the next one.
    """
    steps = Counter(_step(size) for size in sizes if size < _LARGEST)
    full = [step for step, files in steps.items() if files >= _FILES]
    # at least four of the largest make one
    return min(_LARGEST, 4 * _SMALLEST * _FILES ** max(full)) if full else None


def bins(sizes: Mapping[str, int], target: int) -> list[list[str]]:
    """Return which files smaller than the target become one, of about that size at most; at least two each."""
    found: list[list[str]] = []
    size = target
    for path, each in sizes.items():
        if each >= target:
            continue
        if size + each > target:
            found.append([])
            size = 0
        found[-1].append(path)
        size += each
    return [files for files in found if len(files) > 1]


def keep_up(storage: Storage, table: deltalake.DeltaTable, path: str, version: int, known: Mapping[int, bytes]) -> int:
    """Join the table's small files and checkpoint its log; return its newest version.

    A failure is logged and no more: the rows are in, and it is tried again 16 commits later.

    Args:
        storage: how the table is reached.
        table: the open table; it may not know its newest commits, before and after.
        path: its path or URI.
        version: its newest, as far as is known.
        known: compressed texts of commits by version that this process has made.
    """
    newest = version
    try:
        tail = read_tail(storage, path, known)
        if tail is None or not suits(table) or any(action.keys() & _OTHERS for action in tail.actions()):
            # another schema, or a log in a form that is not ours
            table.update_incremental()
        if tail is not None and suits(table) and takes_files(table):
            tail = _joined(storage, table, path, tail)
            newest = max(newest, tail.version)
        _checkpoint(storage, table, path, tail)
    except Exception as error:  # nothing is lost by it, whatever it is
        _LOG.warning("upkeep of %s failed: %s", path, error, extra={"table": path})
    return max(newest, table.version())


def _joined(storage: Storage, table: deltalake.DeltaTable, path: str, tail: LogTail) -> LogTail:
    """Return the log after small files were joined, if there are many."""
    sizes = tail.live()
    target = target_size(sizes.values())
    if target is None:
        return tail
    try:
        with nullcontext() if target <= _SMALL_TARGET else _LARGE:
            commit = _join(storage, table, path, tail.version, sizes, target)
    except Exception as error:  # the log gets its checkpoint all the same
        _LOG.warning("files of %s were not joined: %s", path, error, extra={"table": path})
        return tail
    # another writer was faster: the files are joined next time
    return tail if commit is None else replace(tail, commits=(*tail.commits, parsed(commit)))


def _join(
    storage: Storage, table: deltalake.DeltaTable, path: str, version: int, sizes: Mapping[str, int], target: int
) -> bytes | None:
    columns = columns_in_json(schema_json(table))
    fields, removed, added = arrow_fields(columns), dict[str, int](), list[TableFile]()
    try:
        for files in bins(sizes, target):
            found = [DataFile(file_path(path, unquote(file)), sizes[file]) for file in files]
            with TableWriter(storage, path, columns) as writer:
                for rows in scan(storage, found, fields):
                    writer.add(rows)
                added += writer.close()
            removed |= {file: sizes[file] for file in files}
        commit = join_after(storage, version, path, removed, added) if removed else None
    except Exception:
        remove_files(storage, path, [file.path for file in added])
        raise
    if commit is None:
        remove_files(storage, path, [file.path for file in added])
    return commit


def _checkpoint(storage: Storage, table: deltalake.DeltaTable, path: str, tail: LogTail | None) -> None:
    rows = None if tail is None else next_rows(tail, int(time.time() * 1000))
    if tail is not None and rows is not None:
        write_rows(storage, path, tail.version, rows)
    if tail is None or rows is None or tail.version // _COMMITS % _COMMITS == 0:
        table.update_incremental()
        if rows is None:
            table.create_checkpoint()
        table.cleanup_metadata()


def _step(size: int) -> int:
    step, most = 0, _SMALLEST
    while size >= most:
        step, most = step + 1, most * _FILES
    return step
