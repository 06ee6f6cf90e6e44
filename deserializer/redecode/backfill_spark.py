"""Days of a game decoded again from bronze, in one commit; and which days bronze has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import date

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from demux.core.causes import RemovalReason
from demux.core.names import names_of
from demux.core.root.layout import Layout
from deserializer.offsets.bronze_files import file_session
from deserializer.redecode.backfill_plan import BackfillRequest, DayCounts, Span
from deserializer.redecode.processed_rows import ReadState, processed_rows
from deserializer.redecode.replace_rows import Redecoder, RedecodeTask, counts_of, day_of, require_not_retired
from deserializer.silver.fit import fit
from deserializer.silver.rewrite import replace_rows
from deserializer.silver.spark_table import SilverBySpark


def rows_by_day(
    spark: SparkSession, layout: Layout, wanted: BackfillRequest
) -> Mapping[str, Mapping[date | None, int]]:
    """Return how many rows bronze has of each game that is asked for, by day; None: those that say of no day."""
    found: defaultdict[str, dict[date | None, int]] = defaultdict(dict)
    if layout.storage.table_exists(layout.bronze):
        bronze = file_session(spark).read.format("delta").load(layout.bronze)
        mine = bronze.where(F.col("game_name").isin([*wanted.games])) if wanted.games else bronze
        for row in mine.groupBy("game_name", day_of("timestamp").alias("day")).count().collect():
            found[row.game_name][row.day] = row["count"]
    return found


def games_retired(spark: SparkSession, layout: Layout, wanted: BackfillRequest) -> frozenset[str]:
    """Return the games of which rows of the range were retired from bronze, by name; they may be there a moment yet."""
    if not layout.storage.table_exists(layout.removed):
        return frozenset()
    removed = file_session(spark).read.format("delta").load(layout.removed)
    mine = removed.where((F.col("reason") == RemovalReason.RETIRED.value) & F.expr(wanted.span.sql("timestamp")))
    return frozenset(row.game_name for row in mine.select("game_name").distinct().collect())


def require_not_retired_in(
    spark: SparkSession, layout: Layout, game: str, version: int, wanted: BackfillRequest
) -> None:
    """Check that no row of the game in the range was retired; raises as `require_not_retired`."""
    require_not_retired(file_session(spark), layout, game, version, wanted.span.sql("timestamp"))


def decoded_again(redecoding: Redecoder, reading: ReadState, span: Span, request: str) -> dict[date, DayCounts]:
    """Return what became of the rows of these days that the game has read: its table has them as decoded just now.

    Readers see one change. A second call, also after a crash, does it again, and ends what the first one has begun.

    Args:
        redecoding: what decodes.
        reading: what the game has read.
        span: the days.
        request: an id that no other call has.

    Raises:
        RangeRetired: the table has rows of these days that bronze has not any more.
        ApprovalNeeded: a schema would change the table, which asks first; nothing was written.
        RegistryUnavailable: a schema is not known here and the registry does not answer; nothing was written.
    """
    if reading.version < 0:
        return {}
    layout, schemas = redecoding.layout, redecoding.schemas
    spark = file_session(redecoding.spark)
    task = RedecodeTask(reading.game, reading.version, span, request)
    rows = processed_rows(spark, layout, reading, span)
    contents = redecoding.contents(rows)
    redecoding.require_whole(spark, task, contents)
    if contents.rows:
        table = layout.silver(names_of(task.game).key)
        answers = schemas.lookup(contents.refs, task.game)
        decisions = fit(
            spark,
            layout.storage,
            SilverBySpark(spark, layout.storage, table),
            answers,
            schemas.contract(task.game),
            contents.refs,
        )
        with redecoding.within_memory(rows, contents):
            bad = redecoding.quarantine(rows, decisions, task)
            replace_rows(redecoding.good(rows, decisions), table, replaceWhere=span.sql("_timestamp"))
        redecoding.clean(task)
        return counts_of(contents.rows, bad)
    return {}
