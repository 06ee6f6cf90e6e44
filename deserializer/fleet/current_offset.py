"""The offset of a game in bronze, whichever engine decoded it last.

The fleet's position is in the silver table (`silver.py`), that of a stream in its checkpoint. The fleet's transaction
says whose turn it is (`turns.py`): in a stream's, its checkpoint counts.
"""

from __future__ import annotations

import json
import shlex

from pyspark.sql import SparkSession

from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.storage import read_text
from demux.core.streaming.checkpoints import read_checkpoint, require_checkpoint
from demux.operations.quarantine.filter import QuarantineFilter
from deserializer.offsets.epoch import GameEpoch
from deserializer.offsets.unread_files import START, BronzeOffset
from deserializer.silver.backend import GameTable


def current_offset(
    spark: SparkSession, layout: Layout, game: str, table: GameTable, app_id: str, *, has_begun: bool
) -> BronzeOffset | None:
    """Return the offset of the game in bronze; None where its stream was interrupted, and must end its batch first.

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
    turn = epoch_of(table, app_id)
    if turn is not None and turn.is_the_fleets:
        return turn.position
    checkpoint = layout.silver_checkpoint(names_of(game).key)
    found = read_checkpoint(spark, checkpoint)
    if found.begun < 0:
        if (waiting := handed_over(table, app_id)) is not None:
            return waiting
        if has_begun and not table.has_rows():
            # the fleet's own first round was interrupted
            return START
    rebuild = f"demux rebuild --game {shlex.quote(game)}"
    require_checkpoint(spark, checkpoint, table.path, layout.quarantine, QuarantineFilter(game).sql(), rebuild)
    if found.unfinished is not None:
        return None
    return position_in(read_text(spark, f"{checkpoint}/offsets/{found.done}")) if found.done >= 0 else START


def epoch_of(table: GameTable, app_id: str) -> GameEpoch | None:
    """Return the turn that the table's transaction tells of; None when no fleet ever had it."""
    version = table.transaction(app_id)
    return None if version is None else GameEpoch.of(version)


def hand_over(table: GameTable, app_id: str) -> None:
    """Say in the table that a stream continues where the fleet stands; nothing where it is no fleet's."""
    turn = epoch_of(table, app_id)
    if turn is not None and turn.is_the_fleets:
        table.mark(app_id, turn.of_stream().version)


def handed_over(table: GameTable, app_id: str) -> BronzeOffset | None:
    """Return where a stream is to go on that has written nothing yet; None where there is none such."""
    turn = epoch_of(table, app_id)
    if turn is None or turn.is_the_fleets or not table.last_written_by(app_id, turn.version):
        return None
    return turn.position


def position_in(offsets: str) -> BronzeOffset:
    """Return the position that a file of a stream's checkpoint has, below `offsets`.

    A batch takes all files of a commit (`source`): it ends with the last one of a commit (Delta 2), or
    before the first one of the next, index -1 (Delta 3 and later).
    """
    offset = json.loads(offsets.split("\n")[-1])
    version = int(offset["reservoirVersion"])
    return BronzeOffset(version if int(offset["index"]) < 0 else version + 1)
