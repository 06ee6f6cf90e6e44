"""How many rows bronze has of each game and day: by its log, and by one column of files of which that does not say."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from demux.core.columns.arrow import arrow_fields, days_of, table_of
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.log import file_path
from demux.core.delta.parquet_writer import suits
from demux.core.delta.scan import file_rows
from demux.core.extras import deltalake
from demux.core.root.layout import Layout
from demux.core.storage.files import Storage

_TIME = "timestamp"
_FIELDS = arrow_fields(Struct((Column(_TIME, Primitive.TIMESTAMP),)))
_STATS = ("num_records", f"null_count.{_TIME}", f"min.{_TIME}", f"max.{_TIME}")


def plain_bronze(layout: Layout) -> deltalake.DeltaTable | None:
    """Return bronze if its files are read without Spark; None where they are not, or where there is no bronze."""
    bronze = layout.storage.known_table(layout.bronze)
    return bronze if bronze is not None and suits(bronze) else None


def rows_by_day_of_files(
    storage: Storage, bronze: deltalake.DeltaTable, path: str, games: Collection[str] = ()
) -> Mapping[str, Mapping[date | None, int]]:
    """Return how many rows bronze has of each of these games, or of all, by day; None: those that say of no day.

    Args:
        storage: how the table is reached.
        bronze: the table as it was read; `suits` allows it.
        path: its path or URI.
        games: exact names; none for all.
    """
    actions = table_of(bronze.get_add_actions(flatten=True))
    files = actions.select(["path", "size_bytes", "partition.game_name"]).to_pylist()
    for name, values in zip(("rows", "nulls", "first", "last"), map(partial(_stats, actions), _STATS), strict=True):
        for file, value in zip(files, values, strict=True):
            file[name] = value

    def rows_of(file: Mapping[str, Any]) -> Mapping[date | None, int]:
        if file["rows"] is not None and file["nulls"] == 0 and file["first"] == file["last"] is not None:
            return {file["first"]: file["rows"]}
        found: Counter[date | None] = Counter()
        for batch in file_rows(storage, file_path(path, unquote(file["path"])), file["size_bytes"], _FIELDS):
            for one in days_of(batch.column(0)).value_counts().to_pylist():
                found[one["values"]] += one["counts"]
        return found

    wanted = [
        file
        for file in files
        if file["partition.game_name"] is not None and (not games or file["partition.game_name"] in games)
    ]
    result: defaultdict[str, Counter[date | None]] = defaultdict(Counter)
    with ThreadPoolExecutor(storage.side_by_side(path), thread_name_prefix="days") as pool:
        for file, by_day in zip(wanted, pool.map(rows_of, wanted), strict=True):
            result[file["partition.game_name"]].update(by_day)
    return result


def _stats(actions: pa.Table, name: str) -> Sequence[Any]:
    """Return what the log says of each file; days in place of times, and None where it does not say."""
    if name not in actions.column_names:
        return [None] * actions.num_rows
    column = actions.column(name)
    values: list[Any] = (days_of(column) if pa.types.is_timestamp(column.type) else column).to_pylist()
    return values
