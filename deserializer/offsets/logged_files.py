"""The files of a table as its log has them, with the days of their rows as far as it says; read without Spark."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from demux.core.columns.arrow import days_of, table_of
from demux.core.delta.log import file_path
from demux.core.extras import deltalake
from deserializer.offsets.days import Span


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A file of a table, as its log has it.

    Attributes:
        path: relative to the table, as the log has it.
        where: absolute.
        bytes: its size.
        rows: how many it has; None where unknown.
        undated: how many of them have no time; None where unknown.
        first: no row is of a day before, of those with a time; None where unknown, or where no calendar has it.
        last: no row is of a day after.
    """

    path: str
    where: str
    bytes: int
    rows: int | None = None
    undated: int | None = None
    first: date | None = None
    last: date | None = None

    @property
    def name(self) -> str:
        """Its path without folders: no two have the same."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def only_day(self) -> date | None:
        """The day of all its rows; None where these are of several, or that is unknown."""
        return self.first if self.rows is not None and self.undated == 0 and self.first == self.last else None

    def may_have(self, span: Span | None) -> bool:
        """Return whether it may have a row of these days; of all it may."""
        if span is None:
            return True
        return (self.last is None or self.last >= span.first) and (self.first is None or self.first <= span.last)


def files_of_table(table: deltalake.DeltaTable, path: str, time_column: str) -> dict[str | None, list[LoggedFile]]:
    """Return the files of a table by the value of its partition, None without; with the days of a column of times."""
    actions = table_of(table.get_add_actions(flatten=True))
    names = table.metadata().partition_columns

    def column(name: str) -> list[Any]:
        if name not in actions.column_names:
            return [None] * actions.num_rows
        values = actions.column(name)
        # Spark cuts bounds off at milliseconds, which never changes the day
        return list((days_of(values) if pa.types.is_timestamp(values.type) else values).to_pylist())

    values = column(f"partition.{names[0]}") if names else [None] * actions.num_rows
    stats = ("num_records", f"null_count.{time_column}", f"min.{time_column}", f"max.{time_column}")
    found: defaultdict[str | None, list[LoggedFile]] = defaultdict(list)
    for value, entry, size, *more in zip(
        values, column("path"), column("size_bytes"), *map(column, stats), strict=True
    ):
        found[value].append(LoggedFile(entry, file_path(path, unquote(entry)), size, *more))
    return found
