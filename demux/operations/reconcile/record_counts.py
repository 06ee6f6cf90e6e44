"""Where every record is now, game by game, counted in the tables themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.core.causes import RemovalReason, Stage
from demux.core.control.games_and_rounds import Control, TaskOutcome
from demux.core.names import names_of
from demux.core.registry.protocol import SubjectVersion
from demux.core.root.layout import Layout
from demux.core.schemas.subject_choice import GameSchemas, uses_by_id
from demux.core.storage import table_exists


@dataclass(frozen=True, slots=True)
class GameOverview:
    """Where one game's records are.

    Attributes:
        game: its name.
        cluster: where its task runs; None while it waits to be admitted.
        bronze: rows in bronze.
        silver: rows in its table.
        quarantine: rows of its that did not decode, by cause.
        versions: the schema versions that its rows were written with.
        seconds: how long its last task took; None before the first.
        error: condition and sentence of its last task, when that failed.
        dropped: rows of its that were dropped from quarantine.
        retired: rows of its that were in bronze and taken out of it, being old.
    """

    game: str
    cluster: str | None
    bronze: int
    silver: int
    quarantine: Mapping[str, int]
    versions: tuple[int, ...]
    seconds: float | None
    error: tuple[str, str] | None
    dropped: int = 0
    retired: int = 0

    @property
    def rows_in(self) -> int:
        """Rows that came into bronze, those too that it has no more."""
        return self.bronze + self.retired

    @property
    def waiting(self) -> int:
        """Rows in bronze that are neither in silver nor in quarantine yet."""
        return self.rows_in - self.silver - sum(self.quarantine.values()) - self.dropped


@dataclass(frozen=True, slots=True)
class RecordCounts:
    """All games by name, and the records that never became a bronze row, by cause."""

    games: tuple[GameOverview, ...]
    no_bronze: Mapping[str, int]


def overview(
    spark: SparkSession, layout: Layout, control: Control, schemas_of: Callable[[str], GameSchemas]
) -> RecordCounts:
    """Return the counts; reads the log of each silver table, the footers of bronze, and the quarantine table.

    Args:
        spark: the session.
        layout: where the tables are.
        control: which games are known.
        schemas_of: where a game's schemas are.
    """
    known, last = control.known_games(), control.history().last
    bronze = _counts(spark, layout.bronze, "game_name")
    refused, undecoded = _quarantine(spark, layout)
    dropped = _counts(spark, layout.dropped, "game_name", F.col("stage") == Stage.SILVER.value)
    retired = _counts(spark, layout.removed, "game_name", F.col("reason") == RemovalReason.RETIRED.value)
    games = sorted({*known, *bronze, *retired})
    silver = _silver(spark, layout, games, schemas_of)
    rows = []
    for game in games:
        record = last.get(game)
        failed = record is not None and record.outcome is TaskOutcome.FAILED
        rows.append(
            GameOverview(
                game,
                known[game].cluster if game in known else None,
                bronze.get(game, 0),
                silver[game][0],
                undecoded.get(game, {}),
                silver[game][1],
                record.seconds if record else None,
                (record.condition or "", record.sentence or "") if record and failed else None,
                dropped.get(game, 0),
                retired.get(game, 0),
            )
        )
    return RecordCounts(tuple(rows), refused)


def _counts(spark: SparkSession, table: str, column: str, only: Column | None = None) -> dict[str, int]:
    if not table_exists(spark, table):
        return {}
    rows = spark.read.format("delta").load(table)
    rows = rows if only is None else rows.where(only)
    counted = rows.groupBy(column).count().collect()
    return {row[column]: row["count"] for row in counted}


def _quarantine(spark: SparkSession, layout: Layout) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    refused: dict[str, int] = {}
    undecoded: dict[str, dict[str, int]] = defaultdict(dict)
    if table_exists(spark, layout.quarantine):
        rows = spark.read.format("delta").load(layout.quarantine)
        # a name that was refused is not a game: only silver's rows count by game
        name = F.when(F.col("stage") == Stage.SILVER.value, F.col("game_name"))
        for row in rows.groupBy("stage", "cause", name.alias("game")).count().collect():
            if row.stage == Stage.SILVER.value:
                undecoded[row.game][row.cause] = row["count"]
            else:
                refused[row.cause] = row["count"]
    return refused, undecoded


def _silver(
    spark: SparkSession, layout: Layout, games: list[str], schemas_of: Callable[[str], GameSchemas]
) -> dict[str, tuple[int, tuple[int, ...]]]:
    """Return rows and schema versions of each game's table."""
    uses = _uses(spark, layout)
    result: dict[str, tuple[int, tuple[int, ...]]] = dict.fromkeys(games, (0, ()))
    frames: list[DataFrame] = []
    for game in games:
        table = layout.silver(names_of(game).key)
        if table_exists(spark, table):
            rows = spark.read.format("delta").load(table)
            frames.append(rows.select(F.lit(game).alias("game"), F.col("_schema_id").alias("schema_id")))
    if not frames:
        return result
    counted = (
        reduce(DataFrame.unionAll, frames)
        .groupBy("game")
        .agg(F.count(F.lit(1)).alias("rows"), F.collect_set("schema_id").alias("schema_ids"))
    )
    for row in counted.collect():
        schemas = schemas_of(row.game)
        known = (uses.get((schemas.registry, each)) for each in row.schema_ids)
        seen = {schemas.version_of(each) for each in known if each}
        result[row.game] = (row.rows, tuple(sorted(seen)))
    return result


def _uses(spark: SparkSession, layout: Layout) -> dict[tuple[str, int], tuple[SubjectVersion, ...]]:
    if not table_exists(spark, layout.schemas):
        return {}
    rows = (
        spark.read.format("delta").load(layout.schemas).select("registry", "schema_id", "subject", "version", "message")
    )
    return uses_by_id(row.asDict() for row in rows.collect())
