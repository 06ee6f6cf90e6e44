"""What keeps a table that gets a small file every round fast to open and to read, by `deltalake`.

Small files of about the same size are rewritten as one, once there are many: so a row is written a few times in its
life, however many rounds there are. The log gets a checkpoint, at which readers start. Readers notice
nothing: they continue with the files that they know until VACUUM removes these.
"""

from __future__ import annotations

import logging
import threading
import zlib
from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext

from demux.core.columns.arrow import table_of
from demux.core.delta.parquet_writer import suits
from demux.core.delta.rewrite_rows import join
from demux.core.extras import deltalake

_LOG = logging.getLogger("demux")

# every so many commits; a reader of the log reads as many small files
_COMMITS = 16
# so many files of a size become one
_FILES = 16
_SMALLEST = 64 * 1024
_LARGEST = 128 * 2**20
# deltalake (1.6.6) lets two that join the same files both commit, whatever their retries: every row is there twice
# then. So each table, by its URI, has one at a time
_ALONE: dict[str, threading.Lock] = {}
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


def keep_up(table: deltalake.DeltaTable) -> None:
    """Join the table's small files and checkpoint its log; `table` may not know its newest commits, before and after.

    One at a time for a table; processes that write the same table are kept apart by the root's lock, or the table's.

    A failure is logged and no more: the rows are in, and it is tried again 16 commits later. `deltalake` (1.6.6) joins
    no files of a map whose values got a field in between.
    """
    for step in (_join, _checkpoint):
        try:
            with _ALONE.setdefault(table.table_uri, threading.Lock()):
                # what another has joined meanwhile is not joined again
                table.update_incremental()
                step(table)
        except Exception as error:  # nothing is lost by it, whatever it is
            _LOG.warning("upkeep of %s failed: %s", table.table_uri, error, extra={"table": table.table_uri})


def _join(table: deltalake.DeltaTable) -> None:
    if not suits(table):
        return
    target = target_size(table_of(table.get_add_actions(flatten=True)).column("size_bytes").to_pylist())
    if target is not None:
        with nullcontext() if target <= _SMALL_TARGET else _LARGE:
            join(table, target)


def _checkpoint(table: deltalake.DeltaTable) -> None:
    table.create_checkpoint()
    table.cleanup_metadata()


def _step(size: int) -> int:
    step, most = 0, _SMALLEST
    while size >= most:
        step, most = step + 1, most * _FILES
    return step
