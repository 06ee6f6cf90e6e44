"""From the fleet to a stream: what the fleet has left is finished, then the stream begins where the fleet stands.

The other way needs no step of its own: the fleet reads a stream's position from its checkpoint (`current_offset.py`).
"""

from __future__ import annotations

from datetime import datetime, timezone

from pyspark.sql import SparkSession

from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.root.lock import TableLock, unlocked
from demux.core.schemas.store import SchemaStore
from demux.core.settings.settings import Sink
from demux.core.storage import remove_folder, table_exists
from demux.core.streaming.checkpoints import read_checkpoint
from deserializer.fleet.current_offset import current_offset, epoch_of, hand_over, handed_over
from deserializer.fleet.round import Fleet, fleet_of
from deserializer.offsets.unread_files import BronzeOffset
from deserializer.silver.backend import GameTable, Tables, tables_of

_ALL_ROWS = 2**62


def stream_start(
    spark: SparkSession, layout: Layout, schemas: SchemaStore, game: str, lock: TableLock
) -> BronzeOffset | None:
    """Return where the game's stream begins, if that is where a fleet stood; None: its checkpoint or bronze says.

    A second call, also after a crash in between, returns the same until the stream has begun a batch.

    Raises:
        DemuxError: what kept the fleet from finishing; the game is still the fleet's.
    """
    key = names_of(game).key
    tables = _tables(spark, layout, key)
    if tables is None:
        return None
    table, checkpoint = tables.silver(key), layout.silver_checkpoint(key)
    if _is_the_fleets(tables, game, table):
        fleet = Fleet(spark, layout, schemas, lambda _: None, most_rows=_ALL_ROWS, threads=1, tables=lock)
        _finish(fleet, game)
        # older than the fleet's position
        remove_folder(spark, checkpoint)
        table.refresh()
        hand_over(table, tables.app_id)
    elif read_checkpoint(spark, checkpoint).begun >= 0:
        return None
    return handed_over(table, tables.app_id)


def _is_the_fleets(tables: Tables, game: str, table: GameTable) -> bool:
    """Return whether the fleet decoded the game last, or died while it did."""
    turn = epoch_of(table, tables.app_id)
    if turn is not None and turn.is_the_fleets:
        return True
    quarantine = tables.quarantine(unlocked)
    quarantine.refresh()
    bad = quarantine.position(names_of(game).key)
    if bad is None:
        return False
    position = current_offset(tables.spark, tables.layout, game, table, tables.app_id, has_begun=True)
    # a stream that was interrupted is nobody else's
    return position is not None and bad > position


def _finish(fleet: Fleet, game: str) -> None:
    while True:
        (left,) = fleet.decode([game], datetime.now(timezone.utc))
        if left.error is not None:
            raise left.error
        if left.report is None or not left.report.rows_waiting:
            return


def _tables(spark: SparkSession, layout: Layout, key: str) -> Tables | None:
    """Return the root's tables; None where there never was a fleet, or the game has no table."""
    if not table_exists(spark, layout.bronze) or not table_exists(spark, layout.silver(key)):
        return None
    app_id = fleet_of(spark, layout)
    return None if app_id is None else tables_of(spark, layout, app_id, Sink.AUTO)
