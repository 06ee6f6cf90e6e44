"""How many rows bronze has of each game and day: by its log, and by one column of files of which that does not say."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date

from demux.core.columns.arrow import arrow_fields, days_of
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.parquet_writer import suits
from demux.core.delta.scan import file_rows
from demux.core.extras import deltalake
from demux.core.root.layout import Layout
from demux.core.storage.files import Storage
from deserializer.offsets.logged_files import LoggedFile, files_of_table

_TIME = "timestamp"
_FIELDS = arrow_fields(Struct((Column(_TIME, Primitive.TIMESTAMP),)))


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
    by_game = files_of_table(bronze, path, _TIME)
    files = [
        (game, file)
        for game, mine in by_game.items()
        if game is not None and (not games or game in games)
        for file in mine
    ]

    def rows_of(file: LoggedFile) -> Mapping[date | None, int]:
        if file.only_day is not None and file.rows is not None:
            return {file.only_day: file.rows}
        found: Counter[date | None] = Counter()
        for batch in file_rows(storage, file.where, file.bytes, _FIELDS):
            for one in days_of(batch.column(0)).value_counts().to_pylist():
                found[one["values"]] += one["counts"]
        return found

    result: defaultdict[str, Counter[date | None]] = defaultdict(Counter)
    with ThreadPoolExecutor(storage.side_by_side(path), thread_name_prefix="days") as pool:
        counted = pool.map(rows_of, [file for _, file in files])
        for (game, _), by_day in zip(files, counted, strict=True):
            result[game].update(by_day)
    return result
