"""Records of old rounds leave the table of rounds, but for each game's newest."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import pyarrow as pa
from pyspark.sql import SparkSession

from demux.core.columns.types import Struct
from demux.core.delta.record_table import RecordTable
from demux.core.delta.rewrite_rows import delete_rows
from demux.core.delta.scan import only_spark_reads
from demux.core.root.layout import Layout
from demux.core.tables import ROUNDS

# of each game: what the plan, the status and estimates are made from; how far bronze was looked at is in them, too
_KEPT = 20
_IDENTITY = ("round_id", "game_name", "finished_at")
_COLUMNS = Struct(tuple(column for column in ROUNDS if column.name in _IDENTITY))
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
    old = frozenset(tuple(row[name] for name in _IDENTITY) for row in found)
    if not old or dry_run:
        return len(old)
    if delete_rows(layout.storage, layout.rounds, lambda rows: _among(rows, old), _COLUMNS) is None:
        if spark is None:
            raise only_spark_reads(layout.rounds)
        _remove_by_spark(spark, layout.rounds, old)
    return len(old)


def _among(rows: pa.RecordBatch, old: frozenset[tuple[object, ...]]) -> pa.BooleanArray:
    keys = zip(*(rows.column(name).to_pylist() for name in _IDENTITY), strict=True)
    return pa.array([key in old for key in keys], pa.bool_())


def _remove_by_spark(spark: SparkSession, path: str, old: Iterable[tuple[object, ...]]) -> None:
    from delta.tables import DeltaTable

    from demux.core.columns.spark import spark_struct

    same = " AND ".join(f"t.{name} = o.{name}" for name in _IDENTITY)
    going = spark.createDataFrame(list(old), spark_struct(_COLUMNS))
    DeltaTable.forPath(spark, path).alias("t").merge(going.alias("o"), same).whenMatchedDelete().execute()
