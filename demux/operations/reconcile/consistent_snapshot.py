"""Versions of all tables that fit together, also while streams, replays and rebuilds go on.

The order of reading makes it so. Where everybody stands comes first: what is before that is in a table, and stays. Then
quarantine, then silver: a replay writes silver before it takes a row out of quarantine, so a row is seen in one of the
two. Then quarantine again: only a row that is still there is in both. Then what was dropped from there: that is written
down before it goes. Then bronze: what silver has, bronze had before. Then what was removed from bronze: that too is
written down before it goes, so a row is seen in one of the two at least; a retired one that is in both counts once.
Then the source. At last where everybody stands once more: a game that was rebuilt meanwhile stands nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from demux.core.columns.types import Struct
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.tables import BRONZE, DROPPED, QUARANTINE, REMOVED, SOURCE_OPTIONAL
from demux.operations.reconcile.duckdb_engine import Engine, register
from demux.operations.reconcile.location_sql import both_readings
from demux.operations.reconcile.read_offsets import SourceOffsets, Stands, unchanged_offsets
from demux.operations.reconcile.table_snapshots import Snapshot, silver_keys, silver_snapshots, snapshot

_COUNTED = frozenset(
    ("stage", "reason", "game_name", "record_id", "batch_id", "origin", "topic", "partition", "offset")
)


def _counted(columns: Struct) -> Struct:
    return Struct(tuple(column for column in columns if column.name in _COUNTED))


_BRONZE, _QUARANTINE, _DROPPED, _REMOVED = map(_counted, (BRONZE, QUARANTINE, DROPPED, REMOVED))
_SOURCE = _counted(SOURCE_OPTIONAL)


@dataclass(frozen=True, slots=True)
class ConsistentSnapshot:
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
    source_stand: SourceOffsets | None


def read(
    spark: SparkSession | None,
    layout: Layout,
    stands: Stands,
    source_stand: Callable[[], SourceOffsets],
    games: Collection[str] | None,
) -> ConsistentSnapshot:
    """Return the versions to count; opens each table's log, takes no lock.

    Args:
        spark: the session, where there is one.
        layout: where the tables are.
        stands: says the offsets of games, by key.
        source_stand: says where bronze stands in its source.
        games: the exact names; None: all games.

    Raises:
        TableUnsuited: only Spark can read one of the tables, and there is no session.
    """

    def look(path: str, columns: Struct, version: int | None = None) -> Snapshot:
        return snapshot(spark, layout.storage, path, columns, version)

    source_before = source_stand()
    keys = silver_keys(spark or layout.storage, layout) if games is None else {names_of(game).key for game in games}
    before = stands(keys)
    first = look(layout.quarantine, _QUARANTINE)
    silver = silver_snapshots(spark, layout, keys)
    second = look(layout.quarantine, _QUARANTINE)
    dropped = look(layout.dropped, _DROPPED)
    bronze = look(layout.bronze, _BRONZE)
    removed = look(layout.removed, _REMOVED)
    table, version = source_before.table, source_before.version
    source = None
    if table is not None and version is not None:
        now = look(table, _SOURCE)
        source = (now if version == now.version else look(table, _SOURCE, version), now)
    after = stands(keys)
    same = source_stand().writer == source_before.writer
    return ConsistentSnapshot(
        bronze,
        (first, second),
        dropped,
        removed,
        silver,
        source,
        unchanged_offsets(before, after) if same else {},
        source_before if same else None,
    )


def register_twice(
    engine: Engine,
    spark: SparkSession | None,
    name: str,
    both: tuple[Snapshot, Snapshot],
    only: tuple[str, Collection[str]] | None = None,
) -> None:
    """Make the rows of two readings of a table known to the engine, once where they are the same; as `register`."""
    same = both[0] == both[1]
    for when, table in (("now", both[1]),) if same else (("before", both[0]), ("now", both[1])):
        register(engine, spark, f"{name}_{when}", table, only)
    engine.execute(both_readings(name, same=same))
