"""Rows of one game written by Spark: what does not decode to quarantine, then the rest to the game's table.

Where rows are appended, each commit carries the position that follows on the rows, as an application transaction. A
writer that dies between the two leaves quarantine ahead of the table; whoever comes next, with any engine and any
writer, decodes the rows again and leaves out the records that are in a table by then, whatever would become of them.
`deserializer.fleet.file_writer` has the same order, with files.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from demux.core.delta import batch_commit as commits
from demux.core.delta.app_transactions import Batch
from demux.core.delta.batch_commit import REFUSED, RowSelection
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.root.lock import TableLock
from demux.core.streaming.bronze_offset import BronzeOffset
from deserializer.decoders.schema_decision import Decisions
from deserializer.decoders.select import ARROW, RowDecoder
from deserializer.silver.backend import QuarantineTable, ahead
from deserializer.silver.evolve import examined_rows, silver_rows
from deserializer.silver.file_quarantine import transaction_id
from deserializer.silver.spark_table import SilverBySpark

# a table that is not there yet can be made by one at a time
ALONE = threading.Lock()


def write_rows(
    rows: DataFrame,
    decisions: Decisions,
    game: str,
    batch: Batch,
    put_bad: Callable[[DataFrame], None],
    put_good: Callable[[DataFrame], None],
    decoder: RowDecoder = ARROW,
) -> Counter[date | None]:
    """Return how many rows of each day do not decode, once these are in quarantine, and then the others in silver.

    Args:
        rows: in the columns of `INPUT`.
        decisions: what to do with each row.
        game: the exact name.
        batch: what bad rows carry in quarantine.
        put_bad: writes rows to quarantine; not called without any.
        put_good: writes rows to silver.
        decoder: of the good rows.
    """
    bad = examined_rows(rows, decisions, game, batch, RowSelection.REFUSED).persist()
    try:
        rows_bad = rows_of_days(bad)
        if rows_bad:
            put_bad(bad)
    finally:
        bad.unpersist()
    put_good(silver_rows(rows, decisions, decoder).where(~F.col(REFUSED)).drop(REFUSED))
    return rows_bad


def rows_of_days(rows: DataFrame) -> Counter[date | None]:
    """Return how many rows there are of each day; None: those that say of no day."""
    return Counter({row["day"]: row["count"] for row in rows.groupBy(day_of("timestamp")).count().collect()})


def day_of(column: str) -> Column:
    """Return the day of a time; NULL of one that no calendar of Python has."""
    day = F.to_date(F.col(column))
    years = day.between(F.lit("0001-01-01").cast("date"), F.lit("9999-12-30").cast("date"))
    return F.when(years, day).alias("day")


@dataclass(frozen=True, slots=True)
class Appending:
    """Appends rows of the games of one root; may be shared by threads with a game each.

    Attributes:
        layout: where the tables are.
        app_id: of positions.
        quarantine: the quarantine table, as it was when it was refreshed.
        lock: keeps other processes away while quarantine is written.
    """

    layout: Layout
    app_id: str
    quarantine: QuarantineTable
    lock: TableLock

    def append(
        self,
        rows: DataFrame,
        game: str,
        table: SilverBySpark,
        after: BronzeOffset,
        decisions: Decisions,
        decoder: RowDecoder = ARROW,
    ) -> int:
        """Return how many rows do not decode, once all rows are in quarantine or silver; again, it adds nothing.

        Args:
            rows: of `unsettled`, in the columns of `INPUT`.
            game: the exact name.
            table: its table, with all columns that the decisions say.
            after: the position that follows on the rows.
            decisions: what to do with each row.
            decoder: of the good rows.

        Raises:
            TaskInterrupted: as `SilverBySpark.append`; silver is as it was.
        """
        batch = Batch(self.app_id, after.number, retried=False)
        bad = write_rows(
            rows,
            decisions,
            game,
            batch,
            lambda bad: self.quarantine_rows(bad, game, after),
            lambda good: table.append(good, self.app_id, after.number),
            decoder,
        )
        return bad.total()

    def quarantine_rows(self, bad: DataFrame, game: str, after: BronzeOffset) -> None:
        """Append a game's bad rows to quarantine, with the position that follows on them."""
        key = names_of(game).key
        before = self.quarantine.position(key)
        # Spark would take an older version for a write that was done already; what is there says enough then
        is_known = before is not None and before >= after
        transaction = Batch(transaction_id(self.app_id, key), after.number, retried=False)
        with ALONE, self.lock(self.quarantine.path):
            commits.append(bad, self.quarantine.path, None if is_known else transaction)

    def unsettled(self, rows: DataFrame, game: str, table: SilverBySpark, before: BronzeOffset) -> DataFrame:
        """Return those of the rows behind a position, by `record_id`, that an interrupted writer put into no table."""
        if ahead(self.quarantine, game, before) is None:
            return rows
        spark = rows.sparkSession
        mine = (F.col("query_id") == self.app_id) & (F.col("game_name") == game)
        settled = [
            spark.read.format("delta").load(path).where(mine).select("record_id")
            for path in (self.layout.quarantine, self.layout.dropped)
            if self.layout.storage.table_exists(path)
        ]
        if table.exists:
            silver = spark.read.format("delta").load(table.path)
            settled.append(silver.select(F.col("_record_id").alias("record_id")))
        columns = rows.columns
        for ids in settled:
            rows = rows.join(ids, "record_id", "left_anti").select(*columns)
        return rows
