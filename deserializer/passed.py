"""The rows of bronze that a game has read: what is decoded again; what waits is not touched.

Where a game stands is said by whichever engine decoded it last (`fleet/standing.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.columns import Column, Primitive, Struct
from demux.delta_log import newest_version
from demux.lock import unlocked
from demux.names import names_of
from demux.removed import Reason
from demux.settings import Sink
from demux.storage import table_exists
from demux.tables import Layout
from deserializer.days import Span
from deserializer.decode import INPUT
from deserializer.fleet.bronze import rows_in
from deserializer.fleet.log import BronzeLog, file_path, require_readable
from deserializer.fleet.pending import pending
from deserializer.fleet.run import fleet_of
from deserializer.fleet.standing import standing
from deserializer.fleet.tables import tables_of

_BATCH = Column("batch_id", Primitive.BIGINT)
_WITH_BATCH = Struct((*INPUT, _BATCH))
# where no fleet ever was, no table has a transaction of this id
_NO_FLEET = "demux-fleet/none"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a game has read.

    Attributes:
        game: the exact name.
        version: bronze's, as of which it is looked at; -1 where nothing is read.
        waiting: paths of the files that the game has still to read.
    """

    game: str
    version: int
    waiting: tuple[str, ...] = ()


def reading_of(spark: SparkSession, layout: Layout, game: str, finish: Callable[[str], object]) -> Reading:
    """Return what the game has read; a batch or a round that was interrupted is finished before.

    Args:
        spark: the session.
        layout: where the tables are.
        game: the exact name.
        finish: decodes what the game has to read, and ends what was interrupted.

    Raises:
        CheckpointLost, TableLost: nobody knows what the game has read.
        BronzeRewritten, BronzeLogTruncated: as when it reads on.
    """
    for _ in range(2):
        version = newest_version(spark, layout.bronze)
        if not table_exists(spark, layout.silver(names_of(game).key)):
            return Reading(game, -1)
        waiting = _waiting(spark, layout, game)
        if waiting is not None:
            return Reading(game, version, waiting)
        finish(game)
    raise AssertionError("its stream has ended its batch")


def _waiting(spark: SparkSession, layout: Layout, game: str) -> tuple[str, ...] | None:
    """Return the files that the game has still to read; None where it was interrupted while it read some."""
    key = names_of(game).key
    app_id = fleet_of(spark, layout)
    tables = tables_of(spark, layout, app_id or _NO_FLEET, Sink.AUTO)
    quarantine = tables.quarantine(unlocked)
    quarantine.refresh()
    bad = quarantine.position(key)
    position = standing(spark, layout, game, tables.silver(key), tables.app_id, has_begun=bad is not None)
    if position is None or (bad is not None and bad > position):
        return None
    pieces = pending(BronzeLog(spark, tables.layout.bronze).of_game(game, position), game, position)
    require_readable(game, pieces)
    return tuple(file_path(tables.layout.bronze, file) for piece in pieces for file in piece.files)


def all_rows(spark: SparkSession, layout: Layout, game: str, version: int, span: Span | None) -> DataFrame:
    """Return all rows that bronze has of the game in a version, those too that are to be forgotten.

    They have the columns of `INPUT`, and `batch_id`.

    Args:
        spark: the session.
        layout: where the tables are.
        game: the exact name.
        version: of bronze.
        span: only of these days; None: those too that say of no day.
    """
    bronze = spark.read.format("delta").option("versionAsOf", version).load(layout.bronze)
    rows = bronze.where(F.col("game_name") == F.lit(game)).select(*(column.name for column in _WITH_BATCH))
    return rows if span is None else rows.where(span.sql("timestamp"))


def passed_rows(spark: SparkSession, layout: Layout, reading: Reading, span: Span | None) -> DataFrame:
    """Return the rows that the game has read, as `all_rows`, but those that are to be forgotten.

    `spark` is a session that may read single files.
    """
    rows = without_forgotten(spark, layout, reading.game, all_rows(spark, layout, reading.game, reading.version, span))
    if not reading.waiting:
        return rows
    waiting = rows_in(spark, reading.game, reading.waiting, _WITH_BATCH)
    if span is not None:
        waiting = waiting.where(span.sql("timestamp"))
    batches = [row.batch_id for row in waiting.select("batch_id").distinct().collect()]
    if not batches:
        return rows
    # a file that waits may be joined with others by now, and its source may hold a record twice: so many rows of the
    # same batch are left out as wait; no others need to be compared
    known = [batch for batch in batches if batch is not None]
    same = F.col("batch_id").isin(known) | (F.col("batch_id").isNull() if None in batches else F.lit(False))
    same = F.coalesce(same, F.lit(False))
    return rows.where(~same).unionByName(rows.where(same).exceptAll(waiting.select(*rows.columns)))


def without_forgotten(spark: SparkSession, layout: Layout, game: str, rows: DataFrame) -> DataFrame:
    """Return rows of the game, by `record_id`, without those that somebody asked to forget, if any are here still."""
    if not table_exists(spark, layout.removed):
        return rows
    removed = spark.read.format("delta").load(layout.removed)
    mine = (F.col("game_name") == F.lit(game)) & (F.col("reason") == Reason.FORGOTTEN.value)
    forgotten = removed.where(mine).select("record_id")
    if not forgotten.limit(1).count():
        return rows
    return rows.join(forgotten.distinct(), "record_id", "left_anti").select(*rows.columns)
