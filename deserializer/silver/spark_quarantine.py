"""The quarantine table of a fleet where only Spark can reach or write it; `quarantine.py` says what it is for."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from demux.core.delta.app_transactions import Transactions, transactions
from demux.core.storage import table_exists
from deserializer.offsets.unread_files import BronzeOffset
from deserializer.silver.file_quarantine import transaction_id


class QuarantineBySpark:
    """The table, there or not yet.

    Attributes:
        path: where it is.
    """

    def __init__(self, spark: SparkSession, path: str, dropped: str, app_id: str) -> None:
        """Prepare; `dropped` is the path of the table of dropped rows, `app_id` that of the fleet."""
        self.path = path
        self._dropped = dropped
        self._spark = spark
        self._app_id = app_id
        self._known: Transactions | None = None

    def refresh(self) -> None:
        """Read what was committed since the last call."""
        self._known = transactions(self._spark, self.path, transaction_id(self._app_id, ""), self._known)

    def position(self, key: str) -> BronzeOffset | None:
        """Return up to where the game's bad rows are in the table; None when it had none yet."""
        assert self._known is not None, "it was refreshed"
        number = self._known.by_id.get(transaction_id(self._app_id, key))
        return None if number is None else BronzeOffset.of(number)

    def ids(self, game: str) -> frozenset[str]:
        """Return the ids of the game's records that the fleet put here, those too that were dropped since."""
        found: set[str] = set()
        for table in (self.path, self._dropped):
            if table_exists(self._spark, table):
                rows = self._spark.read.format("delta").load(table)
                mine = rows.where((F.col("query_id") == self._app_id) & (F.col("game_name") == game))
                found.update(row[0] for row in mine.select("record_id").distinct().collect())
        return frozenset(found)
