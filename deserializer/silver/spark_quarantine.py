"""The quarantine table written by Spark; `file_quarantine.py` says what it is for.

A commit of Spark takes one application transaction, so each game that has bad rows has a commit of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.core.catalog.spark_tables import read_table
from demux.core.columns.spark import spark_struct
from demux.core.delta.app_transactions import Batch, Transactions, transactions
from demux.core.delta.batch_commit import append_alone
from demux.core.delta.parquet_writer import TableFile
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.root.lock import TableLock
from demux.core.streaming.bronze_offset import BronzeOffset
from demux.core.tables import QUARANTINE
from deserializer.silver.file_quarantine import transaction_id
from deserializer.silver.spark_table import staged_rows


class QuarantineBySpark:
    """The table, there or not yet; may be shared by threads with a game each.

    Attributes:
        path: where it is.
    """

    def __init__(self, spark: SparkSession, layout: Layout, app_id: str, lock: TableLock) -> None:
        """Prepare.

        Args:
            spark: the session.
            layout: where the tables are.
            app_id: of positions.
            lock: keeps other processes away while the table is written.
        """
        self.path = layout.quarantine
        self._spark = spark
        self._layout = layout
        self._app_id = app_id
        self._lock = lock
        self._known: Transactions | None = None

    def refresh(self) -> None:
        """Read what was committed since the last call."""
        prefix = transaction_id(self._app_id, "")
        self._known = transactions(self._layout.storage, self.path, prefix, self._known)

    def position(self, key: str) -> BronzeOffset | None:
        """Return up to where the game's bad rows are in the table; None when it had none yet."""
        assert self._known is not None, "it was refreshed"
        number = self._known.by_id.get(transaction_id(self._app_id, key))
        return None if number is None else BronzeOffset.of(number)

    def records(self, game: str) -> list[DataFrame]:
        """Return the ids of the game's records that were put here as they were decoded, also of those dropped since."""
        mine = (F.col("query_id") == self._app_id) & (F.col("game_name") == game)
        return [
            read_table(self._spark, self._layout.storage.address(path)).where(mine).select("record_id")
            for path in (self.path, self._layout.dropped)
            if self._layout.storage.table_exists(path)
        ]

    def ids(self, game: str) -> frozenset[str]:
        """Return the same as values."""
        return frozenset(row.record_id for rows in self.records(game) for row in rows.collect())

    def append(self, files: Sequence[TableFile], positions: Mapping[str, BronzeOffset]) -> None:
        """Append the rows of files, which are removed; with the position of each game that has some, or without any."""
        with staged_rows(self._spark, self._layout.storage, self.path, files, spark_struct(QUARANTINE)) as rows:
            if not positions:
                self._append(rows, None)
            for game, after in positions.items():
                self.append_rows(rows.where(F.col("game_name") == game), game, after)

    def append_rows(self, rows: DataFrame, game: str, after: BronzeOffset) -> None:
        """Append a game's bad rows, with the position that follows on them."""
        key = names_of(game).key
        before = self.position(key)
        # Spark would take an older version for a write that was done already; what is there says enough then
        is_known = before is not None and before >= after
        transaction = Batch(transaction_id(self._app_id, key), after.number, retried=False)
        self._append(rows, None if is_known else transaction)

    def _append(self, rows: DataFrame, transaction: Batch | None) -> None:
        append_alone(rows, self._layout.storage.address(self.path), transaction, self._lock)
