"""Days of games decoded again in a Spark worker, one game after the other: files of bronze to files of the tables.

Nothing is committed. A game of which anything is not plain is left to Spark: where bronze may lack records, and what
fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from demux.core.columns.arrow import arrow_type, as_type, days_of, filled
from demux.core.columns.types import Primitive, Struct
from demux.core.delta.parquet_writer import TableFile, TableWriter
from demux.core.schemas.ref import SchemaRef
from demux.core.storage.files import Storage
from demux.core.tables import QUARANTINE, SILVER_ORIGIN
from deserializer.decoders.arrow import parts_of
from deserializer.decoders.schema_decision import Decisions, UnknownRef
from deserializer.fleet.worker import bad_rows, bronze_rows, good_rows, unknown_refs
from deserializer.redecode.backfill_plan import NO_DAY, DayCounts, Span

_TIME = arrow_type(Primitive.TIMESTAMP)


@dataclass(frozen=True, slots=True)
class GameDays:
    """Days of a game, and what to do with their rows.

    Attributes:
        game: the exact name.
        span: the days; None: all rows, those too that say of no day.
        storage: how files are reached.
        paths: of the files of bronze that may have rows of them, absolute; the game has read all of these.
        bytes: their size.
        table: the path of the silver table.
        files: those of its files that may have rows of the days, relative to it.
        decisions: for every schema ref that is known of.
        aside: ids of the days' records in quarantine.
        forgotten: ids of records that were forgotten on request.
        batch_id: the number that bad rows carry in quarantine.
        replaced: as in `DaysWritten`, where a look before has found it, and that bronze has all records of the days.
    """

    game: str
    span: Span | None
    storage: Storage
    paths: tuple[str, ...]
    bytes: int
    table: str
    files: tuple[str, ...]
    decisions: Decisions
    aside: frozenset[str]
    forgotten: frozenset[str]
    batch_id: int
    replaced: Mapping[str, bool] | None = None


@dataclass(frozen=True, slots=True)
class DaysWritten:
    """What became of a `GameDays`.

    Attributes:
        game: the exact name.
        counts: what became of the rows of each day.
        files: what silver gets.
        replaced: the files of silver that go for it, and whether they have no rows of other days.
        unknown: rows by ref without a decision: nothing was written.
        left: why Spark has to do it; nothing was written.
    """

    game: str
    counts: Mapping[date, DayCounts] = field(default_factory=dict)
    files: tuple[TableFile, ...] = ()
    replaced: Mapping[str, bool] = field(default_factory=dict)
    unknown: Mapping[SchemaRef, int] = field(default_factory=dict)
    left: str | None = None


class _SparksError(Exception):
    """Spark has to do it."""


def write_days(
    storage: Storage, works: Iterable[GameDays], quarantine: str, query_id: str, now: datetime
) -> Iterator[DaysWritten | TableFile]:
    """Yield what became of each, and then the files for quarantine, which hold the bad rows of all of them.

    Args:
        storage: how the quarantine table is reached.
        works: what to do.
        quarantine: the path of the quarantine table.
        query_id: what bad rows carry there.
        now: the time of decoding.
    """
    with TableWriter(storage, quarantine, QUARANTINE) as bad:
        for work in works:
            files: list[TableFile] = []
            try:
                # before a table gets columns for it
                replaced = _replaced(work) if work.replaced is None else work.replaced
                try:
                    written, files = _write(work, replaced, quarantine, query_id, now, bad)
                except UnknownRef:
                    unknown = unknown_refs(_bronze(work), work.decisions)
                    written = DaysWritten(work.game, replaced=replaced, unknown=unknown)
            except Exception as error:  # Spark finds out what is wrong, or does it
                written = DaysWritten(work.game, left=f"{type(error).__name__}: {error}")
            yield written
            yield from files
        yield from bad.close()


def _write(
    work: GameDays, replaced: Mapping[str, bool], quarantine: str, query_id: str, now: datetime, bad: TableWriter
) -> tuple[DaysWritten, list[TableFile]]:
    """Return what became of one, and files of its own for quarantine, where it has many bad rows."""
    columns = Struct((*work.decisions.columns, *SILVER_ORIGIN))
    rows_in: Counter[date] = Counter()
    rows_bad: Counter[date] = Counter()
    with (
        TableWriter(work.storage, work.table, columns) as silver,
        TableWriter(work.storage, quarantine, QUARANTINE) as own,
    ):
        for part in parts_of(_of_days(work), work.decisions):
            days = days_of(part.rows.column("timestamp"))
            rows_in += _counted(days)
            if part.good:
                silver.add(good_rows(part, columns, now))
            if part.bad:
                rows_bad += _counted(days.take(pa.array([row for row, _ in part.bad], pa.int64())))
                own.add(bad_rows(part, work.game, query_id, work.batch_id, now))
        for name in (name for name, is_whole in replaced.items() if not is_whole):
            with work.storage.open(f"{work.table}/{name}") as file:
                _keep(pq.ParquetFile(file), work.span, columns, silver)
        files = tuple(silver.close())
        further = own.hand_over(bad)
    counts = {day: DayCounts(rows, rows - rows_bad[day], rows_bad[day]) for day, rows in rows_in.items()}
    return DaysWritten(work.game, counts, files, replaced), further


def _bronze(work: GameDays) -> Iterator[pq.ParquetFile]:
    for path in work.paths:
        with work.storage.open(path) as file:
            yield pq.ParquetFile(file)


def _of_days(work: GameDays) -> Iterator[pa.RecordBatch]:
    for batch in bronze_rows(_bronze(work), work.forgotten):
        yield batch.filter(within(batch.column("timestamp"), work.span))


def _replaced(work: GameDays) -> dict[str, bool]:
    """Return the files of silver that have rows of the days, and whether they have no others.

    Raises:
        _SparksError: bronze may lack a record of the days that is in a table.
    """
    ids = [_positions(file, "", work.span).column("record_id") for file in _bronze(work)]
    chunks = [chunk for column in ids for chunk in column.chunks]
    known = pa.chunked_array([*chunks, pa.array(sorted(work.forgotten), pa.string())], pa.string())
    _require_among(pa.array(sorted(work.aside), pa.string()), known)
    found: dict[str, bool] = {}
    for name in work.files:
        with work.storage.open(f"{work.table}/{name}") as opened:
            file = pq.ParquetFile(opened)
            mine = _positions(file, "_", work.span)
            _require_among(mine.column("_record_id"), known)
            if len(mine):
                found[name] = len(mine) == file.metadata.num_rows
    return found


def _positions(file: pq.ParquetFile, prefix: str, span: Span | None) -> pa.Table:
    """Return the record ids and times of a file's rows of the days; the names of these columns have a prefix."""
    rows = file.read(columns=[f"{prefix}record_id", f"{prefix}timestamp"])
    return rows.filter(within(rows.column(f"{prefix}timestamp"), span))


def _keep(file: pq.ParquetFile, span: Span | None, columns: Struct, silver: TableWriter) -> None:
    """Write the rows of other days again, in the columns that the table has now."""
    if not {column.name for column in columns} >= set(file.schema_arrow.names):
        raise _SparksError("a file has columns that its table does not have")
    for batch in file.iter_batches():
        others = batch.filter(pc.invert(within(batch.column("_timestamp"), span)))
        for rows in filled(pa.Table.from_batches([others]), columns).to_batches():
            silver.add(rows)


def _require_among(ids: pa.ChunkedArray | pa.Array, known: pa.ChunkedArray) -> None:
    if len(ids) and not pc.all(pc.is_in(ids, known)).as_py():
        raise _SparksError("bronze may lack records")


def within(times: pa.ChunkedArray | pa.Array, span: Span | None) -> pa.ChunkedArray | pa.Array:
    """Return which times are in the days, where one that is not known is in none; all without days."""
    if span is None:
        return pa.array([True] * len(times), pa.bool_())
    begin, end = span.bounds
    times = as_type(times, _TIME)
    inside = pc.and_(pc.greater_equal(times, pa.scalar(begin, _TIME)), pc.less(times, pa.scalar(end, _TIME)))
    return pc.fill_null(inside, False)


def _counted(days: pa.Array) -> Counter[date]:
    return Counter({one["values"] or NO_DAY: one["counts"] for one in pc.value_counts(days).to_pylist()})
