"""The rows of bronze that a game has read: what is decoded again; what waits is not touched."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.core.causes import RemovalReason
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.bronze_games import position_id
from demux.core.delta.log import file_path, newest_version
from demux.core.error_mapping import named
from demux.core.errors import DemuxError
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.root.lock import unlocked
from demux.core.settings.settings import Sink
from demux.core.streaming.bronze_offset import BronzeOffset
from deserializer.decoders.arrow import INPUT
from deserializer.offsets.bronze_files import rows_in
from deserializer.offsets.bronze_log import BronzeLog, require_readable
from deserializer.offsets.unread_files import pending
from deserializer.redecode.backfill_plan import Span
from deserializer.silver.backend import ahead, tables_of

_BATCH = Column("batch_id", Primitive.BIGINT)
_WITH_BATCH = Struct((*INPUT, _BATCH))


@dataclass(frozen=True, slots=True)
class ReadState:
    """What a game has read.

    Attributes:
        game: the exact name.
        version: bronze's, as of which it is looked at; -1 where nothing is read.
        waiting: paths of the files that the game has still to read.
    """

    game: str
    version: int
    waiting: tuple[str, ...] = ()


def readings_of(
    spark: SparkSession, layout: Layout, games: Collection[str], finish: Callable[[str], object], threads: int = 1
) -> dict[str, ReadState | DemuxError]:
    """Return what each game has read, or why it is unknown; what was interrupted is finished before.

    Errors: PositionLost; BronzeRewritten and BronzeLogTruncated, as when the game reads on; and what `finish` raises.

    Args:
        spark: the session.
        layout: where the tables are.
        games: exact names.
        finish: decodes what a game has to read; for one whose writer died between its two commits.
        threads: that look at tables at the same time.
    """
    version = newest_version(layout.storage, layout.bronze)
    positions = _positions(spark, layout, games, finish, threads)
    log = BronzeLog(spark, layout.storage, layout.bronze)
    since = [at.version for at in positions.values() if isinstance(at, BronzeOffset)]
    commits = log.since(min(since)) if since else None
    found: dict[str, ReadState | DemuxError] = {}
    for game, at in positions.items():
        if not isinstance(at, BronzeOffset):
            found[game] = at or ReadState(game, -1)
            continue
        try:
            pieces = pending(log.of_game(game, at) if commits is None else commits, game, at)
            require_readable(game, pieces)
            paths = tuple(file_path(layout.bronze, file.path) for piece in pieces for file in piece.files)
            found[game] = ReadState(game, version, paths)
        except Exception as error:  # one game's failure must not stop its neighbours
            found[game] = named(error)
    return found


def _positions(
    spark: SparkSession, layout: Layout, games: Collection[str], finish: Callable[[str], object], threads: int
) -> dict[str, BronzeOffset | DemuxError | None]:
    """Return how far each game is decoded, once nothing of it is left half done; None for one without a table."""
    tables = tables_of(spark, layout, position_id(spark, layout), Sink.AUTO)
    quarantine = tables.quarantine(unlocked)
    quarantine.refresh()

    def look(game: str) -> BronzeOffset | DemuxError | None:
        try:
            table = tables.silver(names_of(game).key)
            return tables.position(game, table) if table.exists else None
        except Exception as error:  # one game's failure must not stop its neighbours
            return named(error)

    with ThreadPoolExecutor(threads, thread_name_prefix="positions") as pool:
        looked = dict(zip(games, pool.map(look, games), strict=True))
    for game, at in looked.items():
        if isinstance(at, BronzeOffset) and ahead(quarantine, game, at) is not None:
            try:
                finish(game)
                looked[game] = look(game)
            except Exception as error:  # one game's failure must not stop its neighbours
                looked[game] = named(error)
    return looked


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


def processed_rows(spark: SparkSession, layout: Layout, reading: ReadState, span: Span | None) -> DataFrame:
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
    """Return rows of the game, by `record_id`, without those that were forgotten on request, if any are here still."""
    if not layout.storage.table_exists(layout.removed):
        return rows
    removed = spark.read.format("delta").load(layout.removed)
    mine = (F.col("game_name") == F.lit(game)) & (F.col("reason") == RemovalReason.FORGOTTEN.value)
    forgotten = removed.where(mine).select("record_id")
    if not forgotten.limit(1).count():
        return rows
    return rows.join(forgotten.distinct(), "record_id", "left_anti").select(*rows.columns)
