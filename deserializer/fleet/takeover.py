"""From the fleet to a stream: what the fleet has left is finished, then the stream begins where the fleet stands.

The other way needs no step of its own: the fleet reads a stream's position from its checkpoint (`standing.py`).
"""

from __future__ import annotations

from datetime import datetime, timezone

from pyspark.sql import SparkSession

from demux.checkpoints import read_checkpoint
from demux.lock import TableLock
from demux.names import names_of
from demux.schema_store import SchemaStore
from demux.storage import local_path, remove_folder, table_exists
from demux.tables import Layout
from deserializer.fleet.pending import Position
from deserializer.fleet.run import Fleet, fleet_of
from deserializer.fleet.silver import SilverTable
from deserializer.fleet.standing import hand_over, handed_over

_ALL_ROWS = 2**62


def stream_start(
    spark: SparkSession, layout: Layout, schemas: SchemaStore, game: str, tables: TableLock
) -> Position | None:
    """Return where the game's stream begins, if that is where a fleet stood; None: its checkpoint or bronze says.

    A second call, also after a crash in between, returns the same until the stream has begun a batch.

    Raises:
        DemuxError: what kept the fleet from finishing; the game is still the fleet's.
    """
    app_id = _fleet_here(spark, layout)
    key = names_of(game).key
    path, checkpoint = layout.silver(key), layout.silver_checkpoint(key)
    if app_id is None or not table_exists(spark, path):
        return None
    number = SilverTable.at(path).transaction(app_id)
    if number is not None and number >= 0:
        fleet = Fleet(spark, layout, schemas, lambda _: None, most_rows=_ALL_ROWS, threads=1, tables=tables)
        (left,) = fleet.decode({game: -1}, datetime.now(timezone.utc))
        if left.error is not None:
            raise left.error
        # older than the fleet's position
        remove_folder(spark, checkpoint)
        hand_over(SilverTable.at(path), app_id)
    elif number is None or read_checkpoint(spark, checkpoint).begun >= 0:
        return None
    return handed_over(SilverTable.at(path), app_id)


def release(spark: SparkSession, layout: Layout, game: str) -> None:
    """Take the game from the fleet, whatever it has left: what its table says of a position does not count any more."""
    app_id = _fleet_here(spark, layout)
    path = layout.silver(names_of(game).key)
    if app_id is not None and table_exists(spark, path):
        hand_over(SilverTable.at(path), app_id)


def _fleet_here(spark: SparkSession, layout: Layout) -> str | None:
    """Return the id of the fleet's transactions; None where there never was a fleet, or the root is elsewhere."""
    is_here = local_path(spark, layout.root) is not None
    return fleet_of(spark, layout) if is_here and table_exists(spark, layout.bronze) else None
