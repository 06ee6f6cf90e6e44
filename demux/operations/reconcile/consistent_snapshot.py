"""Versions of all tables that fit together, also while streams, replays and rebuilds continue.

The order of reading makes it so:

1. the offsets of the games and of bronze: a record before them is in a table, and stays in one;
2. quarantine, then silver: a replay writes silver before it deletes the row from quarantine, so one of the two has it;
3. quarantine again: only a row that is still there is in both;
4. the table of dropped rows: a drop is recorded before the row is deleted;
5. bronze: it had every row of silver first;
6. the table of removed rows: a removal is recorded before the row is deleted. A retired row in both counts once;
7. the source, then the offsets again: a game that was rebuilt meanwhile has none.
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
from demux.operations.reconcile.offsets import OffsetsReader, SourceOffsets, unchanged_offsets
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
        quarantine: quarantine before silver was read, and after it.
        source: the source table up to bronze's offset, and as it is now; None where it cannot say.
        offsets: by key, the version of bronze before which the game has read everything.
        source_offsets: the offset of bronze in its source; None where it was made again meanwhile.
    """

    bronze: Snapshot
    quarantine: tuple[Snapshot, Snapshot]
    dropped: Snapshot
    removed: Snapshot
    silver: Mapping[str, Snapshot]
    source: tuple[Snapshot, Snapshot] | None
    offsets: Mapping[str, int]
    source_offsets: SourceOffsets | None


def read(
    spark: SparkSession | None,
    layout: Layout,
    offsets_of: OffsetsReader,
    source_offsets: Callable[[], SourceOffsets],
    games: Collection[str] | None,
) -> ConsistentSnapshot:
    """Return the versions to count; opens each table's log, takes no lock.

    Raises:
        TableUnsuited: only Spark can read one of the tables, and there is no session.
    """

    def look(path: str, columns: Struct, version: int | None = None) -> Snapshot:
        return snapshot(spark, layout.storage, path, columns, version)

    source_before = source_offsets()
    keys = silver_keys(layout) if games is None else {names_of(game).key for game in games}
    before = offsets_of(keys)
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
    after = offsets_of(keys)
    same = source_offsets().writer == source_before.writer
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
