"""From the fleet to a stream: what the fleet has left is finished, then the stream begins where the fleet stands.

The other way needs no step of its own: the fleet reads a stream's position from its checkpoint (`standing.py`).
"""

from __future__ import annotations

from datetime import datetime, timezone

from pyspark.sql import SparkSession

from demux.checkpoints import read_checkpoint
from demux.lock import TableLock, unlocked
from demux.names import names_of
from demux.schema_store import SchemaStore
from demux.storage import local_path, remove_folder, table_exists
from demux.tables import Layout
from deserializer.fleet.pending import Position
from deserializer.fleet.quarantine import Quarantine
from deserializer.fleet.run import Fleet, fleet_of
from deserializer.fleet.silver import SilverTable
from deserializer.fleet.standing import hand_over, handed_over, standing

_ALL_ROWS = 2**62


def stream_start(
    spark: SparkSession, layout: Layout, schemas: SchemaStore, game: str, tables: TableLock
) -> Position | None:
    """Return where the game's stream begins, if that is where a fleet stood; None: its checkpoint or bronze says.

    A second call, also after a crash in between, returns the same until the stream has begun a batch.

    Raises:
        DemuxError: what kept the fleet from finishing; the game is still the fleet's.
    """
    here, app_id = _fleet_here(spark, layout)
    if here is None or app_id is None or not table_exists(spark, layout.silver(names_of(game).key)):
        return None
    key = names_of(game).key
    checkpoint = layout.silver_checkpoint(key)
    if _is_the_fleets(spark, here, game, app_id):
        fleet = Fleet(spark, here, schemas, lambda _: None, most_rows=_ALL_ROWS, threads=1, tables=tables)
        _finish(fleet, game)
        # older than the fleet's position
        remove_folder(spark, checkpoint)
        hand_over(SilverTable.at(here.silver(key)), app_id)
    elif read_checkpoint(spark, checkpoint).begun >= 0:
        return None
    return handed_over(SilverTable.at(here.silver(key)), app_id)


def release(spark: SparkSession, layout: Layout, game: str) -> None:
    """Take the game from the fleet, whatever it has left: what its table says of a position does not count any more."""
    here, app_id = _fleet_here(spark, layout)
    if here is not None and app_id is not None and table_exists(spark, here.silver(names_of(game).key)):
        hand_over(SilverTable.at(here.silver(names_of(game).key)), app_id)


def _is_the_fleets(spark: SparkSession, layout: Layout, game: str, app_id: str) -> bool:
    """Return whether the fleet decoded the game last, or died while it did."""
    key = names_of(game).key
    table = SilverTable.at(layout.silver(key))
    number = table.transaction(app_id)
    if number is not None and number >= 0:
        return True
    quarantine = Quarantine(layout.quarantine, app_id, unlocked)
    quarantine.refresh()
    bad = quarantine.position(key)
    if bad is None:
        return False
    position = standing(spark, layout, game, table, app_id, has_begun=True)
    # a stream that was interrupted is nobody else's
    return position is not None and bad > position


def _finish(fleet: Fleet, game: str) -> None:
    while True:
        (left,) = fleet.decode([game], datetime.now(timezone.utc))
        if left.error is not None:
            raise left.error
        if left.report is None or not left.report.rows_waiting:
            return


def _fleet_here(spark: SparkSession, layout: Layout) -> tuple[Layout | None, str | None]:
    """Return the layout by paths of this machine, and the id of the fleet's transactions; None where there is none."""
    here = local_path(spark, layout.root)
    if here is None or not table_exists(spark, layout.bronze):
        return None, None
    return Layout(here), fleet_of(spark, layout)
