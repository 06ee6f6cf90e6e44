"""The rows of a silver table that rows decoded again replace: which files go, and what of them stays."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from demux.core.columns.arrow import arrow_fields, conform_table, days_of
from demux.core.columns.types import Struct
from demux.core.delta.log import file_path
from demux.core.delta.scan import file_rows
from demux.core.errors import RangeRetired
from demux.core.storage.files import Storage
from demux.core.tables import SILVER_ORIGIN
from demux.core.text import count_text
from deserializer.decoders.arrow import INPUT, SchemaBatch
from deserializer.offsets.days import NO_DAY, DayCounts, Span, among

_POSITION = Struct(tuple(column for column in SILVER_ORIGIN if column.name in {"_record_id", "_timestamp"}))
_BRONZE = Struct(tuple(column for column in INPUT if column.name in {"record_id", "timestamp"}))


@dataclass(frozen=True, slots=True)
class ReplacedRows:
    """What rows of bronze replace in a silver table.

    Attributes:
        span: the days; None: all rows, those too that say of no day.
        files: the table's files that may have rows of them, by the path that its log has, with their bytes.
        quarantined: the days' records in quarantine, with their day.
        may_lose: whether bronze may lack records of the table: loss is accepted, or a look before has found none.
    """

    span: Span | None
    files: Mapping[str, int]
    quarantined: Mapping[str, date | None]
    may_lose: bool = False

    @property
    def is_divisible(self) -> bool:
        """Whether several tasks may have a part each of the rows that come: none has to know all of them."""
        return self.may_lose and not self.files

    def files_with_rows(
        self, storage: Storage, table: str, game: str, bronze: Iterable[Any], forgotten: frozenset[str]
    ) -> dict[str, bool]:
        """Return the files that have rows of the days, and whether they have no others.

        Args:
            storage: how the table is reached.
            table: its path.
            game: the exact name.
            bronze: open Parquet files: those of bronze that may have rows of the days.
            forgotten: ids of records that bronze may lack.

        Raises:
            RangeRetired: bronze lacks a record of the days that is in a table.
        """
        known = None if self.may_lose else self._records_in(bronze, forgotten)
        lost: Counter[date | None] = Counter()
        if known is not None:
            there = pc.is_in(pa.array([*self.quarantined], pa.string()), known).to_pylist()
            lost.update(day for day, is_there in zip(self.quarantined.values(), there, strict=True) if not is_there)
        found: dict[str, bool] = {}
        for path, size in self.files.items():
            rows_in_file = mine = 0
            for rows in file_rows(storage, file_path(table, unquote(path)), size, arrow_fields(_POSITION)):
                chosen = rows.filter(among(rows.column("_timestamp"), self.span))
                rows_in_file, mine = rows_in_file + len(rows), mine + len(chosen)
                if known is not None:
                    lacking = chosen.filter(pc.invert(pc.is_in(chosen.column("_record_id"), known)))
                    lost.update(days_of(lacking.column("_timestamp")).to_pylist())
            if mine:
                found[path] = mine == rows_in_file
        if lost:
            raise lost_rows(game, lost.total(), max((day for day in lost if day is not None), default=None))
        return found

    def _records_in(self, bronze: Iterable[Any], forgotten: frozenset[str]) -> pa.ChunkedArray:
        # a file that deltalake has rewritten has texts of another kind
        tables = (conform_table(file.read(columns=[column.name for column in _BRONZE]), _BRONZE) for file in bronze)
        ids = [rows.filter(among(rows.column("timestamp"), self.span)).column("record_id") for rows in tables]
        return pa.chunked_array([*(c for one in ids for c in one.chunks), sorted(forgotten)], pa.string())

    def other_rows(
        self, storage: Storage, table: str, files: Mapping[str, bool], columns: Struct
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of other days that these files have, in the columns that the table has now."""
        for path in (path for path, is_whole in files.items() if not is_whole):
            for rows in file_rows(storage, file_path(table, unquote(path)), self.files[path], arrow_fields(columns)):
                yield rows.filter(pc.invert(among(rows.column("_timestamp"), self.span)))


@dataclass(frozen=True, slots=True)
class RowsByDay:
    """Counts rows as they are decoded."""

    rows_in: Counter[date | None]
    rows_bad: Counter[date | None]

    def add(self, part: SchemaBatch) -> None:
        """Count the rows of a batch."""
        days = days_of(part.rows.column("timestamp"))
        self.rows_in.update(_counted(days))
        self.rows_bad.update(_counted(days.take(pa.array([row for row, _ in part.bad], pa.int64()))))

    def counts(self) -> dict[date, DayCounts]:
        """Return what became of the rows of each day; those that say of no day are under `NO_DAY`."""
        return day_counts(self.rows_in, self.rows_bad)


def day_counts(rows: Mapping[date | None, int], bad: Mapping[date | None, int]) -> dict[date, DayCounts]:
    """Return what became of rows by day, `NO_DAY` for None, from how many there are and how many of them are bad."""
    return {day or NO_DAY: DayCounts(n, n - bad.get(day, 0), bad.get(day, 0)) for day, n in rows.items()}


def _counted(days: pa.Array) -> Counter[date | None]:
    return Counter({one["values"]: one["counts"] for one in pc.value_counts(days).to_pylist()})


def lost_rows(game: str, rows: int, newest: date | None) -> RangeRetired:
    """Return the error of a game whose rows bronze has no more; `newest` is their newest day, None for no day."""
    name = shlex.quote(game)
    if newest is None:
        return RangeRetired(
            f"Bronze does not have {count_text(rows, 'row')} of the game {name} any more, which say of no day.",
            f"Decode the days that bronze has: `demux backfill --game {name} --from DAY`.",
            game=game,
        )
    whole = newest + timedelta(days=1)
    return RangeRetired(
        f"Bronze does not have {count_text(rows, 'row')} of the game {name} any more; it is whole from {whole} on.",
        f"Decode what bronze has: `demux backfill --game {name} --from {whole}`.",
        game=game,
        whole_from=whole,
    )
