"""The rows of bronze that are decoded again: those that a game has read; unread files are left to its engine."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as ColumnExpression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.core.catalog.spark_tables import read_table
from demux.core.causes import RemovalReason, Stage
from demux.core.columns.arrow import days_of, table_of
from demux.core.delta.bronze_games import position_id
from demux.core.delta.log import newest_version
from demux.core.delta.record_table import RecordTable
from demux.core.delta.scan import table_rows
from demux.core.error_mapping import as_demux_error
from demux.core.errors import ConcurrentChange, DemuxError, RangeRetired
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.root.lock import no_lock
from demux.core.schemas.store import SchemaStore
from demux.core.settings.settings import Sink
from demux.core.storage.files import Storage
from demux.core.tables import REMOVED
from demux.operations.quarantine.filter import QuarantineFilter
from deserializer.decoders.arrow import INPUT
from deserializer.fleet.game_state import GameStates
from deserializer.fleet.replaced_rows import lost_rows
from deserializer.offsets.bronze_days import plain_bronze
from deserializer.offsets.days import DayCounts, Span, among
from deserializer.offsets.logged_files import LoggedFile
from deserializer.silver.backend import find_interrupted_offset, tables_of
from deserializer.silver.rewrite import replacing_session

_ALL_ROWS = 2**62


@dataclass(frozen=True, slots=True)
class BronzeRows:
    """Rows of a game in bronze.

    Attributes:
        game: the exact name.
        version: bronze's.
        span: of these days; None: all rows, those too that say of no day.
        unread: names of the files that are left out, as the game has still to read them.
    """

    game: str
    version: int
    span: Span | None = None
    unread: frozenset[str] = frozenset()

    def frame(self, spark: SparkSession, layout: Layout) -> DataFrame:
        """Return the rows in the columns of `INPUT`, those too that are to be forgotten."""
        bronze = read_table(spark, layout.storage.address(layout.bronze), versionAsOf=self.version)
        rows = bronze.where(F.col("game_name") == F.lit(self.game))
        if self.unread:
            rows = rows.where(~F.col("_metadata.file_name").isin(sorted(self.unread)))
        rows = rows.select(*(column.name for column in INPUT))
        return rows if self.span is None else rows.where(self.span.sql("timestamp"))


@contextmanager
def staged_bronze(
    spark: SparkSession, layout: Layout, sources: Iterable[BronzeRows]
) -> Iterator[dict[str, list[LoggedFile]]]:
    """Yield files with the rows, by game, in the columns of `INPUT`; then they are removed.

    Of bronze that only Spark reads. Files that a process leaves which dies are in no commit of bronze: VACUUM removes
    them.
    """
    storage, folder = layout.storage, f"{layout.bronze}/redecode-{uuid.uuid4()}"
    found: dict[str, list[LoggedFile]] = {}
    session = None
    try:
        for number, source in enumerate(sources):
            session = session or replacing_session(spark)
            path = f"{folder}/{number}"
            source.frame(session, layout).write.parquet(path)
            names = [f"{path}/{name}" for name in storage.names(path) if name.endswith(".parquet")]
            found[source.game] = [LoggedFile(name, name, storage.size(name) or 0) for name in names]
        yield found
    finally:
        if session is not None:
            with suppress(OSError, DemuxError):
                storage.delete_folder(folder)


def require_whole(spark: SparkSession, layout: Layout, source: BronzeRows, forgotten: Collection[str]) -> None:
    """Check by Spark that bronze has every record that silver and quarantine have of the days, but forgotten ones.

    Raises:
        RangeRetired: it has not.
    """
    spark = replacing_session(spark)

    def records(path: str, prefix: str, condition: str) -> list[DataFrame]:
        if not layout.storage.table_exists(path):
            return []
        days = "TRUE" if source.span is None else source.span.sql(f"{prefix}timestamp")
        rows = read_table(spark, layout.storage.address(path)).where(condition).where(days)
        return [rows.select(*(F.col(f"{prefix}{name}").alias(name) for name in ("record_id", "timestamp")))]

    silver = layout.silver(names_of(source.game).key)
    known = [*records(silver, "_", "TRUE"), *records(layout.quarantine, "", QuarantineFilter(source.game).sql())]
    if not known:
        return
    lost = reduce(DataFrame.unionByName, known)
    there = [source.frame(spark, layout).select("record_id")]
    if forgotten:
        there.append(spark.createDataFrame([(one,) for one in sorted(forgotten)], "record_id STRING"))
    for ids in there:
        lost = lost.join(ids, "record_id", "left_anti")
    found = lost.agg(F.count(F.lit(1)), F.max(_day_of("timestamp"))).first()
    if found is not None and found[0]:
        raise lost_rows(source.game, found[0], found[1])


def forgotten_records(spark: SparkSession, layout: Layout, games: Collection[str]) -> Mapping[str, frozenset[str]]:
    """Return the ids of each game's records that were removed from bronze on request."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    removed = RecordTable(spark, layout.storage, layout.removed, REMOVED)
    wanted = f"SELECT game_name, record_id FROM {{records}} WHERE reason = '{RemovalReason.FORGOTTEN.value}'"
    for row in removed.select(wanted):
        if row["game_name"] in games:
            found[row["game_name"]].add(row["record_id"])
    return {game: frozenset(ids) for game, ids in found.items()}


@dataclass(frozen=True, slots=True)
class Redecoded:
    """What became of rows that were decoded again: by day, and the ids of their schemas."""

    counts: Mapping[date, DayCounts]
    schema_ids: tuple[int, ...]


def read_rows(
    spark: SparkSession,
    layout: Layout,
    schemas: SchemaStore,
    games: Collection[str],
    finish: Callable[[str], object],
    threads: int = 1,
) -> dict[str, BronzeRows | DemuxError]:
    """Return the rows that each game has read, or why these are unknown.

    A game whose writer died between its two commits, and one whose unread files were joined with others, is decoded
    further before.

    Errors: PositionLost and TableLost; BronzeRewritten and BronzeLogTruncated, as when the game reads on; and what
    `finish` raises.

    Args:
        spark: the session.
        layout: where the tables are.
        schemas: the schemas in use.
        games: exact names.
        finish: decodes what a game has to read.
        threads: that look at tables at the same time.
    """
    tables = tables_of(spark, layout, position_id(spark, layout), Sink.AUTO)
    quarantine = tables.quarantine(no_lock)

    def look(names: Collection[str]) -> tuple[dict[str, BronzeRows], dict[str, DemuxError], list[str]]:
        quarantine.refresh()
        version = newest_version(layout.storage, layout.bronze)
        due, failed = GameStates(spark, tables, schemas, _ALL_ROWS).due(names, quarantine, threads)
        unread = {
            game: frozenset(file.path.rsplit("/", 1)[-1] for piece in one.pieces for file in piece.files)
            for game, one in due.items()
        }
        joined = _joined(spark, layout, unread)
        half = [
            game
            for game, one in due.items()
            if game in joined or find_interrupted_offset(quarantine, game, one.before) is not None
        ]
        return {game: BronzeRows(game, version, None, each) for game, each in unread.items()}, failed, half

    found, failed, half = look(games)
    for game in half:
        try:
            finish(game)
            again, still, left = look([game])
            found |= again
            failed |= still
            if left:
                failed[game] = ConcurrentChange(
                    f"Files of bronze that {game} has still to read were joined with others.",
                    "Run `demux run`, then the same command again.",
                    game=game,
                )
        except Exception as error:  # one game's failure must not stop its neighbours
            failed[game] = as_demux_error(error)
    return {**found, **failed}


def _joined(spark: SparkSession, layout: Layout, unread: Mapping[str, frozenset[str]]) -> set[str]:
    """Return the games of whose unread files some are not in bronze any more, under their names."""
    if not any(unread.values()):
        return set()
    bronze = plain_bronze(layout)
    if bronze is not None:
        paths = table_of(bronze.get_add_actions(flatten=True)).column("path").to_pylist()
    else:
        paths = read_table(spark, layout.storage.address(layout.bronze)).inputFiles()
    names = {path.rsplit("/", 1)[-1] for path in paths}
    return {game for game, mine in unread.items() if not mine <= names}


def retired_rows(
    spark: SparkSession, layout: Layout, games: Collection[str], span: Span | None
) -> dict[str, RangeRetired]:
    """Return the error of each game of which rows of the days, or any, were retired from bronze."""
    days = "" if span is None else f"AND day BETWEEN DATE '{span.first}' AND DATE '{span.last}'"
    found = RecordTable(spark, layout.storage, layout.removed, REMOVED).select(
        "SELECT game_name, count(*) AS number, max(day) AS newest FROM "
        "(SELECT game_name, CASE WHEN CAST(timestamp AS DATE) BETWEEN DATE '0001-01-01' AND DATE '9999-12-30' "
        "THEN CAST(timestamp AS DATE) END AS day FROM {records} "
        f"WHERE reason = '{RemovalReason.RETIRED.value}') AS retired WHERE TRUE {days} GROUP BY game_name"
    )
    return {
        row["game_name"]: lost_rows(row["game_name"], row["number"], row["newest"])
        for row in found
        if row["game_name"] in games
    }


def quarantined_records(
    storage: Storage, path: str, spans: Mapping[str, Span | None]
) -> Mapping[str, Mapping[str, date | None]]:
    """Return the day of records of stage silver in quarantine, which may not be there, by game and id.

    Args:
        storage: how the table is reached.
        path: the table's.
        spans: the games that count, and of which days; None: all rows.
    """
    found: defaultdict[str, dict[str, date | None]] = defaultdict(dict)
    if spans and storage.table_exists(path):
        names = pa.array(sorted(spans), pa.string())
        for batch in table_rows(storage, storage.table(path), path, ["game_name", "record_id", "timestamp", "stage"]):
            of_silver = pc.equal(batch.column("stage"), Stage.SILVER.value)
            mine = pc.and_(of_silver, pc.is_in(batch.column("game_name"), names))
            rows = batch.filter(pc.fill_null(mine, False))
            for game in pc.unique(rows.column("game_name")).to_pylist():
                own = rows.filter(pc.equal(rows.column("game_name"), game))
                own = own.filter(among(own.column("timestamp"), spans[game]))
                days = days_of(own.column("timestamp")).to_pylist()
                found[game].update(zip(own.column("record_id").to_pylist(), days, strict=True))
    return found


def rows_by_day(spark: SparkSession, layout: Layout, games: Collection[str]) -> Mapping[str, Mapping[date | None, int]]:
    """Return how many rows bronze has of each of these games, or of all, by day; None: those that say of no day."""
    found: defaultdict[str, dict[date | None, int]] = defaultdict(dict)
    if layout.storage.table_exists(layout.bronze):
        bronze = read_table(replacing_session(spark), layout.storage.address(layout.bronze))
        mine = bronze.where(F.col("game_name").isin([*games])) if games else bronze
        for row in mine.groupBy("game_name", _day_of("timestamp")).count().collect():
            found[row.game_name][row.day] = row["count"]
    return found


def _day_of(column: str) -> ColumnExpression:
    """Return the day of a time; NULL of one that no calendar of Python has."""
    day = F.to_date(F.col(column))
    years = day.between(F.lit("0001-01-01").cast("date"), F.lit("9999-12-30").cast("date"))
    return F.when(years, day).alias("day")
