"""Old rows leave bronze: written down first, in one commit, then taken out of bronze, some games at a time.

Should the process die in between, the rows are in both tables; the next maintenance ends what was begun before it
begins anything else. Only rows go that their game has read; where a game's table was made again meanwhile, what it has
still to read stays, and is no more on record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from demux.core.causes import RemovalReason, Stage
from demux.core.root.layout import Layout
from demux.core.tables import REMOVED
from demux.operations.maintenance.state import MaintenanceState, write_state
from demux.operations.maintenance.unread_files import UnreadBronze

# each of them costs a look at its files, all of them together a commit
_GAMES = 50
_IDENTITY = ("game_name", "record_id", "batch_id")


def retirable(spark: SparkSession, layout: Layout, before: datetime, passed: Mapping[str, int]) -> DataFrame:
    """Return the rows of bronze that may go: `_IDENTITY` and the position.

    They were ingested before this time, their game has passed them, and they are not in quarantine: what has still to
    be replayed has its key and headers in bronze alone.

    Args:
        spark: the session.
        layout: where the tables are; bronze must be there.
        before: the time (UTC).
        passed: by exact name, the last batch of which the game has read every row.
    """
    bounds = spark.createDataFrame(list(passed.items()), "game_name string, bound long")
    bronze = spark.read.format("delta").load(layout.bronze).where(F.col("game_name").isin(sorted(passed)))
    old = bronze.where(F.col("ingested_at") < F.lit(before)).join(F.broadcast(bounds), "game_name")
    old = old.where(F.col("batch_id") <= F.col("bound"))
    if layout.storage.table_exists(layout.quarantine):
        waiting = spark.read.format("delta").load(layout.quarantine).where(F.col("stage") == Stage.SILVER.value)
        old = old.join(waiting.select("game_name", "record_id"), ["game_name", "record_id"], "left_anti")
    return old


def begin(
    spark: SparkSession, layout: Layout, state: MaintenanceState, rows: DataFrame, request: str, now: datetime
) -> MaintenanceState:
    """Write down which rows go, in one commit, and return the state that says so.

    A second call would write them down twice: `finish` what was begun first.

    Args:
        spark: the session.
        layout: where the tables are.
        state: nothing may be on its way out.
        rows: of `retirable`.
        request: a new id.
        now: the time (UTC).
    """
    assert state.retiring is None, "what was begun is finished first"
    state = replace(state, retiring=request)
    write_state(layout, state)
    values = {"reason": F.lit(RemovalReason.RETIRED.value), "request": F.lit(request), "removed_at": F.lit(now)}
    removed = rows.select(*(values.get(one.name, F.col(one.name)).alias(one.name) for one in REMOVED))
    removed.write.format("delta").mode("append").save(layout.removed)
    return state


def finish(
    spark: SparkSession,
    layout: Layout,
    state: MaintenanceState,
    unread: Callable[[], UnreadBronze],
    between: Callable[[], None],
) -> Iterator[tuple[str, int]]:
    """Take what is on its way out of bronze, and yield how many rows of each game went.

    A second call, also after a crash in between, takes what is left. Once it is through, say in the state that nothing
    is on its way.

    Args:
        spark: the session.
        layout: where the tables are.
        state: what is on its way.
        unread: says what the games have still to read, as of now.
        between: lets others have the root for a moment.
    """
    if (
        state.retiring is None
        or not layout.storage.table_exists(layout.removed)
        or not layout.storage.table_exists(layout.bronze)
    ):
        return
    removed = spark.read.format("delta").load(layout.removed)
    mine = removed.where((F.col("request") == state.retiring) & (F.col("reason") == RemovalReason.RETIRED.value))
    found = mine.groupBy("game_name").agg(F.count(F.lit(1)).alias("rows"), F.max("batch_id").alias("batch")).collect()
    rows = {row.game_name: row.rows for row in found}
    last = {row.game_name: row.batch for row in found}
    names = sorted(rows)
    for number, group in enumerate(names[at : at + _GAMES] for at in range(0, len(names), _GAMES)):
        if number:
            between()
        passed = unread().passed
        going = [game for game in group if passed.get(game, -1) >= last[game]]
        _take_out(spark, layout, state.retiring, going)
        _keep(spark, layout, state.retiring, [game for game in group if game not in going])
        yield from ((game, rows[game]) for game in going)


def _take_out(spark: SparkSession, layout: Layout, request: str, games: Sequence[str]) -> None:
    """Delete the written rows of these games from bronze; those that are gone already do not matter."""
    if games:
        gone = _written(spark, layout, request, games).select(*_IDENTITY).distinct()
        bronze = DeltaTable.forPath(spark, layout.bronze).alias("b")
        bronze.merge(
            gone.alias("r"), _same("b", "r") & F.col("b.game_name").isin(list(games))
        ).whenMatchedDelete().execute()


def _keep(spark: SparkSession, layout: Layout, request: str, games: Sequence[str]) -> None:
    """Forget that rows of these games were retired which are still in bronze: they have to be read once more."""
    if not games:
        return
    bronze = spark.read.format("delta").load(layout.bronze).where(F.col("game_name").isin(list(games)))
    still = _written(spark, layout, request, games).select(*_IDENTITY).join(bronze, list(_IDENTITY), "left_semi")
    if still.limit(1).count():
        removed = DeltaTable.forPath(spark, layout.removed).alias("r")
        same = _same("r", "s") & (F.col("r.request") == F.lit(request))
        removed.merge(still.distinct().alias("s"), same).whenMatchedDelete().execute()


def _written(spark: SparkSession, layout: Layout, request: str, games: Sequence[str]) -> DataFrame:
    removed = spark.read.format("delta").load(layout.removed)
    return removed.where((F.col("request") == request) & F.col("game_name").isin(list(games)))


def _same(one: str, other: str) -> Column:
    conditions = [F.col(f"{one}.{name}") == F.col(f"{other}.{name}") for name in _IDENTITY]
    return conditions[0] & conditions[1] & conditions[2]


# of each game: what the plan, the status and estimates are made from
_KEPT = 20
_ROUND_IDENTITY = ("round_id", "game_name", "finished_at")


def old_rounds(spark: SparkSession, layout: Layout, before: datetime) -> DataFrame | None:
    """Return the records that ended before this time, but for each game's newest 20; None where there is no table.

    How far bronze was looked at is in the newest ones, which stay.
    """
    if not layout.storage.table_exists(layout.rounds):
        return None
    rows = spark.read.format("delta").load(layout.rounds).where("game_name IS NOT NULL")
    newest = F.row_number().over(Window.partitionBy("game_name").orderBy(F.desc("finished_at"), F.desc("round_id")))
    old = rows.withColumn("_newest", newest).where((F.col("finished_at") < F.lit(before)) & (F.col("_newest") > _KEPT))
    return old.select(*_ROUND_IDENTITY)


def remove_old_rounds(spark: SparkSession, layout: Layout, before: datetime, *, dry_run: bool) -> int:
    """Remove such records, and return how many they are; a second call finds none."""
    old = old_rounds(spark, layout, before)
    rows = 0 if old is None else old.count()
    if old is not None and rows and not dry_run:
        same = " AND ".join(f"t.{name} = o.{name}" for name in _ROUND_IDENTITY)
        table = DeltaTable.forPath(spark, layout.rounds).alias("t")
        table.merge(old.distinct().alias("o"), same).whenMatchedDelete().execute()
    return rows
