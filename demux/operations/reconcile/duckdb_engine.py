"""The engine that counts: DuckDB, in this process.

It has what is copied into it, and reads no file, no other variable of this process and no network. What does not fit
into memory is in a temporary folder, which is removed when the block ends.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TypeAlias

from demux.core.extras import duckdb

Engine: TypeAlias = "duckdb.DuckDBPyConnection"

_MEMORY = "300MiB"
# each one needs memory of its own
_MOST_THREADS = 4


@contextmanager
def counting_engine() -> Iterator[Engine]:
    """Yield an engine without tables."""
    with TemporaryDirectory(prefix="demux-ledger-") as folder:
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": _MEMORY,
            "threads": min(_MOST_THREADS, os.cpu_count() or 1),
            "temp_directory": folder,
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
        }
        with duckdb.connect(config=config) as engine:
            engine.execute("SET enable_external_access = false")
            engine.execute("SET lock_configuration = true")
            yield engine
