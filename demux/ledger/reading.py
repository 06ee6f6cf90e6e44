"""Versions of all tables that fit together, also while streams, replays and rebuilds go on.

The order of reading makes it so. Where everybody stands comes first: what is before that is in a table, and stays. Then
quarantine, then silver: a replay writes silver before it takes a row out of quarantine, so a row is seen in one of the
two. Then quarantine again: only a row that is still there is in both. Then what was dropped from there: that is written
down before it goes. Then bronze: what silver has, bronze had before. Then what was removed from bronze: that too is
written down before it goes, so a row is seen in one of the two at least; a retired one that is in both counts once.
Then the source. At last where everybody stands once more: a game that was rebuilt meanwhile stands nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.columns import Struct
from demux.ledger.counting import Which
from demux.ledger.snapshots import Snapshot, silver_keys, silver_snapshots, snapshot
from demux.ledger.standing import SourceStand, Stands, settled
from demux.names import names_of
from demux.removed import Reason
from demux.spark_types import spark_struct
from demux.tables import BRONZE, DROPPED, REMOVED, Layout

# what tells a row of bronze from all others, but for copies that its source holds
_IDENTITY = ["game_name", "record_id", "batch_id"]


@dataclass(frozen=True, slots=True)
class Reading:
    """Versions that fit together.

    Attributes:
        bronze: bronze.
        quarantine: quarantine before silver was read, and after it.
        dropped: what was dropped from it.
        removed: what was removed from bronze.
        silver: the games' tables by key.
        source: the source table up to where bronze stands, and as it is now; None where it cannot say.
        stood: by key, the version of bronze before which the game has read everything.
        source_stand: where bronze stands in its source; None where it was made again meanwhile.
    """

    bronze: Snapshot
    quarantine: tuple[Snapshot, Snapshot]
    dropped: Snapshot
    removed: Snapshot
    silver: Mapping[str, Snapshot]
    source: tuple[Snapshot, Snapshot] | None
    stood: Mapping[str, int]
    source_stand: SourceStand | None

    def dropped_rows(self, spark: SparkSession) -> DataFrame:
        """Return the dropped rows; none of a table that is not there."""
        return _rows(spark, self.dropped, DROPPED)

    def removed_rows(self, spark: SparkSession) -> DataFrame:
        """Return the removed rows; none of a table that is not there."""
        return _rows(spark, self.removed, REMOVED)

    def retired_rows(self, spark: SparkSession) -> DataFrame:
        """Return the retired rows that bronze has no more: of one that was interrupted it may still have them."""
        retired = self.removed_rows(spark).where(F.col("reason") == Reason.RETIRED.value)
        return retired.join(self.bronze_rows(spark).select(*_IDENTITY), _IDENTITY, "left_anti")

    def bronze_rows(self, spark: SparkSession) -> DataFrame:
        """Return bronze's rows; none of a table that is not there."""
        return _rows(spark, self.bronze, BRONZE)


def read(
    spark: SparkSession,
    layout: Layout,
    stands: Stands,
    source_stand: Callable[[], SourceStand],
    games: Collection[str] | None,
) -> Reading:
    """Return the versions to count; opens each table's log, takes no lock.

    Args:
        spark: the session.
        layout: where the tables are.
        stands: says where games stand, by key.
        source_stand: says where bronze stands in its source.
        games: the exact names; None: all games.
    """
    source_before = source_stand()
    keys = silver_keys(spark, layout) if games is None else {names_of(game).key for game in games}
    before = stands(keys)
    first = snapshot(spark, layout.quarantine)
    silver = silver_snapshots(spark, layout, keys)
    second = snapshot(spark, layout.quarantine)
    dropped = snapshot(spark, layout.dropped)
    bronze = snapshot(spark, layout.bronze)
    removed = snapshot(spark, layout.removed)
    table, version = source_before.table, source_before.version
    source = None if table is None or version is None else (Snapshot(table, version), snapshot(spark, table))
    after = stands(keys)
    same = source_stand().writer == source_before.writer
    return Reading(
        bronze,
        (first, second),
        dropped,
        removed,
        silver,
        source,
        settled(before, after) if same else {},
        source_before if same else None,
    )


def twice(spark: SparkSession, both: tuple[Snapshot, Snapshot]) -> Iterator[tuple[DataFrame, Which]]:
    """Yield the rows of two readings of a table, once where they are the same."""
    different = ((both[0], Which.FIRST), (both[1], Which.SECOND))
    readings = ((both[0], Which.BOTH),) if both[0] == both[1] else different
    yield from ((one.frame(spark), which) for one, which in readings if one.version >= 0)


def _rows(spark: SparkSession, table: Snapshot, columns: Struct) -> DataFrame:
    return spark.createDataFrame([], spark_struct(columns)) if table.version < 0 else table.frame(spark)
