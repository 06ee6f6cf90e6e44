"""Retires old rows: bronze rows are recorded in one commit, then deleted, some games at a time; old control rows too.

Should the process die in between, the rows are in both tables; the next maintenance ends what was begun before it
begins anything else. Only rows go that their game has read; where a game's table was made again meanwhile, what it has
still to read stays, and is no more on record.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.core.catalog.spark_tables import open_table, read_table, save_table
from demux.core.causes import RemovalReason, Stage
from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Struct
from demux.core.delta.record_table import RecordTable
from demux.core.delta.rewrite_rows import delete_rows
from demux.core.delta.scan import data_files, only_spark_reads, open_readable, scan, table_rows
from demux.core.root.layout import Layout
from demux.core.storage.table_address import TableAddress
from demux.core.tables import BRONZE, REMOVED, ROUNDS
from demux.operations.maintenance.state import MaintenanceState, write_state
from demux.operations.maintenance.unread_files import UnreadBronze

# each of them costs a look at its files, all of them together a commit
_GAMES = 50
_IDENTITY = ("game_name", "record_id", "batch_id")
_AGE = arrow_fields(Struct(tuple(one for one in BRONZE if one.name in {"record_id", "batch_id", "ingested_at"})))


def retirable(spark: SparkSession, layout: Layout, before: datetime, passed: Mapping[str, int]) -> DataFrame:
    """Return the bronze rows that may be retired: `_IDENTITY` and the position.

    They were ingested before this time, their game has passed them, and they are not in quarantine: what has still to
    be replayed has its key and headers in bronze alone.

    Args:
        passed: by exact name, the last batch of which the game has read every row.
    """
    bounds = spark.createDataFrame(list(passed.items()), "game_name string, bound long")
    bronze = read_table(spark, layout.storage.address(layout.bronze)).where(F.col("game_name").isin(sorted(passed)))
    old = bronze.where(F.col("ingested_at") < F.lit(before)).join(F.broadcast(bounds), "game_name")
    old = old.where(F.col("batch_id") <= F.col("bound"))
    if layout.storage.table_exists(layout.quarantine):
        waiting = read_table(spark, layout.storage.address(layout.quarantine)).where(
            F.col("stage") == Stage.SILVER.value
        )
        old = old.join(waiting.select("game_name", "record_id"), ["game_name", "record_id"], "left_anti")
    return old


def count_retirable(layout: Layout, before: datetime, passed: Mapping[str, int]) -> int:
    """Return how many rows `retirable` has, without Spark.

    Raises:
        TableUnsuited: only Spark reads bronze or quarantine.
    """
    storage, bronze = layout.storage, open_readable(layout.storage, layout.bronze)
    waiting: defaultdict[str, set[str]] = defaultdict(set)
    if storage.table_exists(layout.quarantine):
        quarantine = open_readable(storage, layout.quarantine)
        for batch in table_rows(storage, quarantine, layout.quarantine, ["stage", "game_name", "record_id"]):
            for row in batch.filter(pc.equal(batch.column("stage"), Stage.SILVER.value)).to_pylist():
                waiting[row["game_name"]].add(row["record_id"])
    files = [one for one in data_files(bronze, layout.bronze) if one.constants.get("game_name") in passed]
    rows = 0
    for file in files:
        game = file.constants["game_name"]
        kept = pa.array(waiting[game], pa.string())
        for batch in scan(storage, [file], _AGE):
            is_old = pc.less(batch.column("ingested_at"), pa.scalar(before))
            may_go = pc.and_(is_old, pc.less_equal(batch.column("batch_id"), passed[game]))
            rows += pc.sum(pc.and_not(may_go, pc.is_in(batch.column("record_id"), kept))).as_py() or 0
    return rows


def begin(
    spark: SparkSession, layout: Layout, state: MaintenanceState, rows: DataFrame, request: str, now: datetime
) -> MaintenanceState:
    """Record the rows to retire in one commit, and return the state with that request.

    A second call would write them down twice: `finish` what was begun first.

    Args:
        state: nothing may be on its way out.
    """
    assert state.retiring is None, "what was begun is finished first"
    state = replace(state, retiring=request)
    write_state(layout, state)
    values = {"reason": F.lit(RemovalReason.RETIRED.value), "request": F.lit(request), "removed_at": F.lit(now)}
    removed = rows.select(*(values.get(one.name, F.col(one.name)).alias(one.name) for one in REMOVED))
    save_table(spark, removed.write.mode("append"), layout.storage.address(layout.removed))
    return state


def finish(
    spark: SparkSession,
    layout: Layout,
    state: MaintenanceState,
    unread: Callable[[], UnreadBronze],
    between: Callable[[], None],
) -> Iterator[tuple[str, int]]:
    """Delete the recorded rows from bronze, and yield the number of deleted rows by game.

    A second call, also after a crash in between, takes what is left. Once it is through, say in the state that nothing
    is on its way.
    """
    if (
        state.retiring is None
        or not layout.storage.table_exists(layout.removed)
        or not layout.storage.table_exists(layout.bronze)
    ):
        return
    removed = read_table(spark, layout.storage.address(layout.removed))
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
    """Delete the recorded rows of these games from bronze; rows that are deleted already are ignored."""
    if games:
        gone = _written(spark, layout, request, games).select(*_IDENTITY).distinct()
        bronze = open_table(spark, layout.storage.address(layout.bronze)).alias("b")
        bronze.merge(
            gone.alias("r"), _same("b", "r") & F.col("b.game_name").isin(list(games))
        ).whenMatchedDelete().execute()


def _keep(spark: SparkSession, layout: Layout, request: str, games: Sequence[str]) -> None:
    """Delete the records of rows that are still in bronze: their games must read them again."""
    if not games:
        return
    bronze = read_table(spark, layout.storage.address(layout.bronze)).where(F.col("game_name").isin(list(games)))
    still = _written(spark, layout, request, games).select(*_IDENTITY).join(bronze, list(_IDENTITY), "left_semi")
    if still.limit(1).count():
        removed = open_table(spark, layout.storage.address(layout.removed)).alias("r")
        same = _same("r", "s") & (F.col("r.request") == F.lit(request))
        removed.merge(still.distinct().alias("s"), same).whenMatchedDelete().execute()


def _written(spark: SparkSession, layout: Layout, request: str, games: Sequence[str]) -> DataFrame:
    removed = read_table(spark, layout.storage.address(layout.removed))
    return removed.where((F.col("request") == request) & F.col("game_name").isin(list(games)))


def _same(one: str, other: str) -> Column:
    conditions = [F.col(f"{one}.{name}") == F.col(f"{other}.{name}") for name in _IDENTITY]
    return conditions[0] & conditions[1] & conditions[2]


# of each game: what the plan, the status and estimates are made from; how far bronze was looked at is in them, too
_KEPT = 20
_ROUND_KEY = ("round_id", "game_name", "finished_at")
_ROUND_COLUMNS = Struct(tuple(column for column in ROUNDS if column.name in _ROUND_KEY))
_OLD = f"""
SELECT round_id, game_name, finished_at FROM (
  SELECT round_id, game_name, finished_at,
    ROW_NUMBER() OVER (PARTITION BY game_name ORDER BY finished_at DESC, round_id DESC) AS newest
  FROM {{records}} WHERE game_name IS NOT NULL
) AS numbered WHERE newest > {_KEPT}
"""


def remove_old_rounds(spark: SparkSession | None, layout: Layout, before: datetime, *, dry_run: bool) -> int:
    """Remove records that ended before a time, but each game's newest 20; a second call finds none.

    Returns:
        How many they are.
    """
    rounds = RecordTable(spark, layout.storage, layout.rounds, ROUNDS)
    found = (row for row in rounds.select(_OLD) if row["finished_at"] < before)
    old = frozenset(tuple(row[name] for name in _ROUND_KEY) for row in found)
    if not old or dry_run:
        return len(old)
    if delete_rows(layout.storage, layout.rounds, lambda rows: _among(rows, old), _ROUND_COLUMNS) is None:
        if spark is None:
            raise only_spark_reads(layout.rounds)
        _remove_by_spark(spark, layout.storage.address(layout.rounds), old)
    return len(old)


def _among(rows: pa.RecordBatch, old: frozenset[tuple[object, ...]]) -> pa.BooleanArray:
    keys = zip(*(rows.column(name).to_pylist() for name in _ROUND_KEY), strict=True)
    return pa.array([key in old for key in keys], pa.bool_())


def _remove_by_spark(spark: SparkSession, table: TableAddress, old: Iterable[tuple[object, ...]]) -> None:
    from demux.core.columns.spark import spark_struct

    same = " AND ".join(f"t.{name} = o.{name}" for name in _ROUND_KEY)
    going = spark.createDataFrame(list(old), spark_struct(_ROUND_COLUMNS))
    open_table(spark, table).alias("t").merge(going.alias("o"), same).whenMatchedDelete().execute()
