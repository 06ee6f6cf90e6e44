"""Drops rows of quarantine, and records them: the ledger must count them.

They are written down first. Should the process die in between, a row is in both tables, and counts as quarantined:
`finish_drop` then forgets that it was dropped, and what was under way may restart.

Files are written again without Spark; Spark's MERGE and DELETE do the same for tables that only Spark writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.core.catalog.spark_tables import open_table, read_table, save_table
from demux.core.causes import Stage
from demux.core.columns.spark import spark_struct
from demux.core.columns.types import Struct
from demux.core.delta import rewrite_rows
from demux.core.delta.parquet_writer import TableWriter, add_constants, append_files
from demux.core.delta.rewrite_rows import chosen_rows, open_to_replace, without_rows
from demux.core.delta.scan import is_readable, only_spark_reads
from demux.core.errors import ConcurrentChange
from demux.core.extras import deltalake
from demux.core.root.layout import Layout
from demux.core.storage.files import Storage
from demux.core.tables import DROPPED
from demux.operations.quarantine.filter import QuarantineFilter
from demux.operations.quarantine.summary import Droppable

# what tells a row of quarantine from all others, but for copies that its source holds
_IDENTITY = ("stage", "cause", "game_name", "record_id", "quarantined_at")
_COUNTED_BY = ("stage", "cause", "game_name")
_SAME = " AND ".join(f"q.{name} <=> d.{name}" for name in _IDENTITY)
_WRITTEN_DOWN = Struct(tuple(column for column in DROPPED if column.name != "dropped_at"))
# what a condition on rows of quarantine, and of dropped ones, may look at
_LOOKED_AT = Struct(tuple(c for c in DROPPED if c.name in {*_IDENTITY, "timestamp", "query_id"}))


class RowCondition(Protocol):
    """Selects rows of quarantine, or of dropped rows: by Arrow and by SQL."""

    def among(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """Return a mask of the selected rows (BOOLEAN)."""

    def sql(self) -> str:
        """Return the same as a SQL condition."""


def droppable(spark: SparkSession | None, layout: Layout, choice: QuarantineFilter) -> tuple[Droppable, ...]:
    """Return the number of selected rows by stage, cause and game, the largest first.

    Raises:
        TableUnsuited: only Spark reads quarantine, and there is no session.
    """
    rows: Counter[tuple[str, str, str | None]] = Counter()
    for stage, cause, name, number in _counted(spark, layout, choice):
        rows[stage, cause, name if stage == Stage.SILVER.value else None] += number
    found = (Droppable(*key, number) for key, number in rows.items())
    return tuple(sorted(found, key=lambda one: (-one.rows, one.stage, one.cause, one.game or "")))


def _counted(
    spark: SparkSession | None, layout: Layout, choice: QuarantineFilter
) -> Iterator[tuple[str, str, str | None, int]]:
    """Yield stage, cause and game name with a number of such rows; some more than once."""
    storage, path = layout.storage, layout.quarantine
    if not storage.table_exists(path):
        return
    table = storage.known_table(path)
    if table is not None and is_readable(table):
        for rows in chosen_rows(storage, table, path, _LOOKED_AT, choice.among):
            found = pa.Table.from_batches([rows]).group_by([*_COUNTED_BY]).aggregate([([], "count_all")])
            for one in found.to_pylist():
                yield one["stage"], one["cause"], one["game_name"], one["count_all"]
    elif spark is None:
        raise only_spark_reads(path)
    else:
        for row in chosen(spark, layout, choice).groupBy(*_COUNTED_BY).count().collect():
            yield row["stage"], row["cause"], row["game_name"], row["count"]


def drop(spark: SparkSession, layout: Layout, choice: QuarantineFilter, now: datetime) -> None:
    """Move the selected rows from quarantine to the table of dropped rows, without their bytes.

    A second call, also after a crash in between, leaves the tables as one call does. Their old files keep the bytes
    until a VACUUM.
    """
    finish_drop(spark, layout, choice)
    table = open_to_replace(layout.storage, layout.quarantine)
    if table is None:
        _drop_by_spark(spark, layout, choice, now)
    else:
        _drop_by_files(table, layout, choice, now)


def finish_drop(spark: SparkSession, layout: Layout, choice: QuarantineFilter) -> None:
    """Delete the dropped-row records of selected rows that are still in quarantine: a drop was killed.

    A second call does nothing.
    """
    storage = layout.storage
    if not storage.table_exists(layout.dropped) or not storage.table_exists(layout.quarantine):
        return
    dropped, table = (open_to_replace(storage, path) for path in (layout.dropped, layout.quarantine))
    if dropped is None or table is None:
        _finish_by_spark(spark, layout, choice)
        return
    ids = [rows.column("record_id") for rows in chosen_rows(storage, dropped, layout.dropped, _LOOKED_AT, choice.among)]
    if not ids:
        return
    wanted = pc.unique(pa.chunked_array(ids, pa.string()))
    there = chosen_rows(
        storage,
        table,
        layout.quarantine,
        _LOOKED_AT,
        lambda rows: pc.and_(choice.among(rows), pc.is_in(rows.column("record_id"), wanted)),
    )
    both = frozenset(identity for rows in there for identity in _identities(rows))
    if both:
        rewrite_rows.delete_rows(
            storage,
            layout.dropped,
            lambda rows: pc.and_(choice.among(rows), pa.array([one in both for one in _identities(rows)], pa.bool_())),
            _LOOKED_AT,
        )


def delete_rows(spark: SparkSession, storage: Storage, table: str, condition: RowCondition) -> None:
    """Delete the selected rows of quarantine, or of dropped rows; a second call does nothing.

    So go, when a game is decoded again from bronze, its rows of quarantine, and what was said of those dropped: what is
    still bad is there again.
    """
    if not storage.table_exists(table):
        return
    if rewrite_rows.delete_rows(storage, table, condition.among, _LOOKED_AT) is not None:
        return
    if read_table(spark, storage.address(table)).where(condition.sql()).limit(1).count():
        open_table(spark, storage.address(table)).delete(condition.sql())


def _drop_by_files(table: deltalake.DeltaTable, layout: Layout, choice: QuarantineFilter, now: datetime) -> None:
    storage = layout.storage
    with TableWriter(storage, layout.dropped, DROPPED) as writer:
        for rows in chosen_rows(storage, table, layout.quarantine, _WRITTEN_DOWN, choice.among):
            writer.add(add_constants(rows, DROPPED, dropped_at=now))
        files = writer.close()
    if not files:
        return
    dropped = storage.create_table(layout.dropped, spark_struct(DROPPED).jsonValue())
    append_files(dropped, files, None, {})
    # only what is written down goes: other rows may have come meanwhile
    if without_rows(storage, table, layout.quarantine, choice.among, _LOOKED_AT) is None:
        raise ConcurrentChange(
            f"Another process wrote files of {layout.quarantine} again meanwhile.",
            "Run the same command again; nothing is lost.",
        )


def _drop_by_spark(spark: SparkSession, layout: Layout, choice: QuarantineFilter, now: datetime) -> None:
    rows = chosen(spark, layout, choice).withColumn("dropped_at", F.lit(now))
    written = rows.select(*(column.name for column in DROPPED)).write.mode("append")
    save_table(spark, written, layout.storage.address(layout.dropped))
    # only what is written down goes: other rows may have come meanwhile
    dropped = read_table(spark, layout.storage.address(layout.dropped))
    gone = dropped.where(F.col("dropped_at") == F.lit(now)).select(*_IDENTITY).distinct()
    quarantine = open_table(spark, layout.storage.address(layout.quarantine)).alias("q")
    quarantine.merge(gone.alias("d"), f"{_SAME} AND {choice.sql('q.')}").whenMatchedDelete().execute()


def _finish_by_spark(spark: SparkSession, layout: Layout, choice: QuarantineFilter) -> None:
    there = chosen(spark, layout, choice).select(*_IDENTITY).distinct()
    dropped = read_table(spark, layout.storage.address(layout.dropped)).where(choice.sql())
    both = [F.col(f"d.{name}").eqNullSafe(F.col(f"q.{name}")) for name in _IDENTITY]
    if dropped.alias("d").join(there.alias("q"), both, "left_semi").limit(1).count():
        table = open_table(spark, layout.storage.address(layout.dropped)).alias("d")
        table.merge(there.alias("q"), f"{_SAME} AND {choice.sql('d.')}").whenMatchedDelete().execute()


def _identities(rows: pa.RecordBatch) -> Iterator[tuple[object, ...]]:
    return zip(*(rows.column(name).to_pylist() for name in _IDENTITY), strict=True)


def chosen(spark: SparkSession, layout: Layout, choice: QuarantineFilter) -> DataFrame:
    """Return the rows of quarantine that match; the table must be there."""
    return read_table(spark, layout.storage.address(layout.quarantine)).where(choice.sql())
