"""Where a game stands in bronze, whichever engine decoded it last.

The fleet's position is in the silver table (`silver.py`), that of a stream in its checkpoint. The fleet's transaction
says who went on: 0 or more is a position of the fleet; below 0, a stream went on from there, and its checkpoint counts.
"""

from __future__ import annotations

import json
import shlex

from pyspark.sql import SparkSession

from demux.checkpoints import read_checkpoint, require_checkpoint
from demux.names import names_of
from demux.storage import read_text
from demux.tables import Layout
from deserializer.fleet.pending import START, Position
from deserializer.fleet.silver import SilverTable
from deserializer.sink import quarantined


def standing(
    spark: SparkSession, layout: Layout, game: str, table: SilverTable, app_id: str, *, has_begun: bool
) -> Position | None:
    """Return where the game stands; None where its stream was interrupted, and must end its batch first.

    Args:
        spark: the session.
        layout: where the tables are.
        game: the exact name.
        table: its table.
        app_id: of the fleet's transactions.
        has_begun: whether the fleet has put bad rows of the game into quarantine.

    Raises:
        CheckpointLost, TableLost: as `require_checkpoint`.
    """
    number = table.transaction(app_id)
    if number is not None and number >= 0:
        return Position.of(number)
    checkpoint = layout.silver_checkpoint(names_of(game).key)
    found = read_checkpoint(spark, checkpoint)
    if found.begun < 0:
        if (waiting := handed_over(table, app_id)) is not None:
            return waiting
        if has_begun and not table.has_rows():
            # the fleet's own first round was interrupted
            return START
    rebuild = f"demux rebuild --game {shlex.quote(game)}"
    require_checkpoint(spark, checkpoint, table.path, layout.quarantine, quarantined(game), rebuild)
    if found.unfinished is not None:
        return None
    return position_in(read_text(spark, f"{checkpoint}/offsets/{found.done}")) if found.done >= 0 else START


def hand_over(table: SilverTable, app_id: str) -> None:
    """Say in the table that a stream goes on where the fleet stands; nothing where it is no fleet's."""
    number = table.transaction(app_id)
    if number is not None and number >= 0:
        position = Position.of(number)
        # all that was there is read, and a stream begins with a whole commit
        begin = position if position.index == 0 else Position(position.version + 1)
        table.append((), app_id, -begin.number - 1)


def handed_over(table: SilverTable, app_id: str) -> Position | None:
    """Return where a stream is to go on that has written nothing yet; None where there is none such."""
    number = table.transaction(app_id)
    if number is None or number >= 0 or not table.last_written_by(app_id, number):
        return None
    return Position.of(-number - 1)


def position_in(offsets: str) -> Position:
    """Return the position that a file of a stream's checkpoint has, below `offsets`.

    A batch takes all files of a commit (`deserializer.source`): it ends with the last one of a commit (Delta 2), or
    before the first one of the next, index -1 (Delta 3 and later).
    """
    offset = json.loads(offsets.split("\n")[-1])
    version = int(offset["reservoirVersion"])
    return Position(version if int(offset["index"]) < 0 else version + 1)
