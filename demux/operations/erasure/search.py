"""The records that a predicate selects, found in silver, in quarantine, and in bronze what was dropped from quarantine.

Reads tables; writes nothing. Rows of bronze that their game has not read yet are left alone: it is unknown what is in
them, and a reader of bronze continues only past files of which all rows were read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from demux.core.causes import Stage
from demux.core.columns.spark import columns_of_spark, spark_struct
from demux.core.columns.types import Struct
from demux.core.errors import DemuxError
from demux.core.names import names_of
from demux.core.protobuf.schema.comments import without_comments
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.root.layout import Layout
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.store import SchemaStore
from demux.core.spark.connect import new_session
from demux.core.spark.map_in_arrow import map_in_arrow
from demux.core.tables import POSITION
from demux.operations.erasure.payload_matching import (
    JUDGED,
    LOOKED_AT,
    MatchVerdict,
    PayloadQuery,
    Writing,
    to_verdicts,
)
from demux.operations.erasure.results import ALL_READ, SearchResult
from demux.operations.predicate.ast import Predicate, sought_in
from demux.operations.predicate.binder import fit, missing_from
from demux.operations.predicate.to_spark import to_column

# rows of quarantine may be large, and Spark counts rows and not bytes
_ROWS_PER_BATCH = ("spark.sql.execution.arrow.maxRecordsPerBatch", "200")
_IDS = [column.name for column in POSITION]


class FoundIn(Enum):
    """Where a record was found; in bronze alone what was dropped from quarantine."""

    SILVER = "silver"
    QUARANTINE = "quarantine"
    BRONZE = "bronze"


@dataclass(frozen=True, slots=True)
class SearchScope:
    """What is searched, and how.

    Attributes:
        spark: a session of its own (`session_of`).
        layout: where the tables are.
        schemas: the schemas in use.
        predicate: as it was parsed.
        unreadable_too: whether rows that cannot be read go where their bytes have a text that is sought.
    """

    spark: SparkSession
    layout: Layout
    schemas: SchemaStore
    predicate: Predicate
    unreadable_too: bool

    def table(self, path: str) -> DataFrame:
        """Return the rows of a table, which must be there."""
        return self.spark.read.format("delta").load(path)

    @property
    def removed(self) -> SparkColumn:
        """Whether a judged record goes."""
        verdicts = [MatchVerdict.MEANT.value, *([MatchVerdict.SUSPECT.value] if self.unreadable_too else [])]
        return F.col("verdict").isin(verdicts)


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """The outcome of a search.

    Attributes:
        found: in numbers.
        rows: what `control/removed` gets: the position, and `batch_id`: one for each row of bronze, and one for each
            record that bronze has not. None where nothing goes.
    """

    found: SearchResult
    rows: DataFrame | None = None


def session_of(spark: SparkSession) -> SparkSession:
    """Return a session to search with, which hands few rows at a time to Python."""
    session = new_session(spark)
    session.conf.set(*_ROWS_PER_BATCH)
    return session


def columns_of(spark: SparkSession, layout: Layout, game: str) -> Struct | None:
    """Return the columns of the game's table; None where there is none."""
    path = layout.silver(names_of(game).key)
    return columns_of_spark(spark.read.format("delta").load(path).schema) if layout.storage.table_exists(path) else None


def rows_after(scope: SearchScope, game: str, read_batch: int) -> int:
    """Return how many rows of bronze the game has still to read, as `searched`."""
    if read_batch == ALL_READ:
        return 0
    return _bronze(scope, game).where(F.col("batch_id") > read_batch).count()


@contextmanager
def searched(scope: SearchScope, game: str, read_batch: int) -> Iterator[SearchOutcome]:
    """Yield what is found of a game; its rows can be had while the block runs.

    Args:
        scope: what is searched.
        game: the exact name.
        read_batch: the last batch of bronze that the game has read whole; -1 for none, `ALL_READ` for all.

    Raises:
        PredicateInvalid: the predicate does not fit the columns of the game's table.
    """
    bronze = _bronze(scope, game)
    unsearched = rows_after(scope, game, read_batch)
    columns = columns_of(scope.spark, scope.layout, game)
    lacks = () if columns is None else missing_from(scope.predicate, columns)
    if lacks:
        yield SearchOutcome(SearchResult(game, unsearched=unsearched, lacks=lacks))
        return
    judged = _judged_of(scope, game, columns)
    if judged is None:
        yield SearchOutcome(SearchResult(game, unsearched=unsearched))
        return
    judged = judged.cache()
    try:
        flagged = judged.withColumn("goes", scope.removed)
        if read_batch != ALL_READ:
            # a record of which all is still to be read stays where it is
            mine = bronze.join(judged.where(scope.removed).select("record_id").distinct(), "record_id", "left_semi")
            waits = mine.groupBy("record_id").agg((F.min("batch_id") > read_batch).alias("waits"))
            is_read = ~F.coalesce(F.col("waits"), F.lit(False))
            flagged = judged.join(waits, "record_id", "left").withColumn("goes", scope.removed & is_read)
            bronze = bronze.where(F.col("batch_id") <= read_batch)
        rows = _rows(flagged.where("goes"), bronze)
        found = _found(scope, game, flagged, rows, unsearched)
        yield SearchOutcome(found, rows if found.rows else None)
    finally:
        judged.unpersist()


@contextmanager
def searched_without_game(scope: SearchScope) -> Iterator[SearchOutcome]:
    """Yield what is found of records that never became a row of bronze: only their bytes can tell."""
    path = scope.layout.quarantine
    if not scope.layout.storage.table_exists(path):
        yield SearchOutcome(SearchResult(None))
        return
    refused = scope.table(path).where(F.col("stage") == Stage.BRONZE.value)
    judged = _judged(refused, PayloadQuery(None, sought_in(scope.predicate), {}), FoundIn.QUARANTINE).cache()
    try:
        verdicts = {row.verdict: row["count"] for row in _grouped(judged)}
        suspect = verdicts.get(MatchVerdict.SUSPECT.value, 0)
        gone = suspect if scope.unreadable_too else 0
        unreadable = verdicts.get(MatchVerdict.UNREADABLE.value, 0) + suspect
        rows = judged.where(scope.removed).select(*_IDS, "batch_id")
        yield SearchOutcome(
            SearchResult(None, quarantine=gone, unreadable=unreadable, suspect=suspect), rows if gone else None
        )
    finally:
        judged.unpersist()


def _found(scope: SearchScope, game: str, judged: DataFrame, rows: DataFrame, unsearched: int) -> SearchResult:
    counts = {(row.found_in, row.verdict, row.goes): row["count"] for row in _grouped(judged, "found_in", "goes")}
    places = {place: sum(n for (at, _, goes), n in counts.items() if goes and at == place.value) for place in FoundIn}
    suspect = sum(n for (_, verdict, _), n in counts.items() if verdict == MatchVerdict.SUSPECT.value)
    unreadable = sum(n for (_, verdict, _), n in counts.items() if verdict == MatchVerdict.UNREADABLE.value)
    found = SearchResult(
        game, places[FoundIn.SILVER], 0, places[FoundIn.QUARANTINE], unreadable + suspect, suspect, unsearched
    )
    if found.silver:
        found = replace(found, table_rows=scope.table(scope.layout.silver(names_of(game).key)).count())
    if not any(places.values()):
        return found
    return replace(found, bronze=rows.where(F.col("batch_id").isNotNull()).count())


def _grouped(judged: DataFrame, *columns: str) -> list[Row]:
    return judged.groupBy("verdict", *columns).count().collect()


def _rows(gone: DataFrame, bronze: DataFrame) -> DataFrame:
    """Return one row for each row that bronze has of these records, and one for each record that it has not."""
    positions = gone.select(*_IDS).dropDuplicates(["record_id"])
    return positions.join(bronze, "record_id", "left").select(*_IDS, "batch_id")


def _bronze(scope: SearchScope, game: str) -> DataFrame:
    """Return the record ids and batches of the game's rows in bronze."""
    if not scope.layout.storage.table_exists(scope.layout.bronze):
        return scope.spark.createDataFrame([], "record_id string, batch_id long")
    rows = scope.table(scope.layout.bronze).where(F.col("game_name") == F.lit(game))
    return rows.select("record_id", "batch_id")


def _judged_of(scope: SearchScope, game: str, columns: Struct | None) -> DataFrame | None:
    """Return what is known of the game's records that may match: found_in, and the columns of `JUDGED`.

    None where it has neither a table nor records outside.
    """
    parts = []
    for place, rows in _undecoded(scope, game):
        named = rows.select("schema_id", "schema_guid", "message_indexes").distinct().collect()
        if named:
            question = _question(scope, game, [SchemaRef(*row) for row in named], columns)
            parts.append(_judged(rows, question, place))
    if columns is not None:
        silver = scope.table(scope.layout.silver(names_of(game).key)).where(to_column(fit(scope.predicate, columns)))
        of_position = [F.col(f"_{name}").alias(name) for name in _IDS]
        none, meant = F.lit(None).cast("long"), F.lit(MatchVerdict.MEANT.value)
        named_so = (none.alias("batch_id"), meant.alias("verdict"), F.lit(FoundIn.SILVER.value).alias("found_in"))
        parts.append(silver.select(*of_position, *named_so))
    return reduce(DataFrame.unionByName, parts) if parts else None


def _undecoded(scope: SearchScope, game: str) -> Iterator[tuple[FoundIn, DataFrame]]:
    """Yield the game's records that are in no silver table, in the columns of quarantine."""
    if scope.layout.storage.table_exists(scope.layout.quarantine):
        of_silver = (F.col("stage") == Stage.SILVER.value) & (F.col("game_name") == F.lit(game))
        yield FoundIn.QUARANTINE, scope.table(scope.layout.quarantine).where(of_silver)
    if scope.layout.storage.table_exists(scope.layout.dropped) and scope.layout.storage.table_exists(
        scope.layout.bronze
    ):
        of_silver = (F.col("stage") == Stage.SILVER.value) & (F.col("game_name") == F.lit(game))
        dropped = scope.table(scope.layout.dropped).where(of_silver).select("record_id").distinct()
        bronze = scope.table(scope.layout.bronze).where(F.col("game_name") == F.lit(game))
        rows = bronze.withColumn("stage", F.lit(Stage.SILVER.value)).withColumnRenamed("payload", "bytes")
        yield FoundIn.BRONZE, rows.join(dropped, "record_id", "left_semi")


def _judged(rows: DataFrame, question: PayloadQuery, place: FoundIn) -> DataFrame:
    looked_at = rows.select(*(column.name for column in LOOKED_AT))
    judged = map_in_arrow(looked_at, to_verdicts(question), spark_struct(JUDGED))
    return judged.where(F.col("verdict") != MatchVerdict.OTHER.value).withColumn("found_in", F.lit(place.value))


def _question(scope: SearchScope, game: str, refs: Iterable[SchemaRef], columns: Struct | None) -> PayloadQuery:
    found = {ref: _writing(scope.schemas, ref, game) for ref in refs}
    predicate = None if columns is None else fit(scope.predicate, columns)
    writings = {ref: writing for ref, writing in found.items() if writing is not None}
    return PayloadQuery(predicate, sought_in(scope.predicate), writings)


def _writing(schemas: SchemaStore, ref: SchemaRef, game: str) -> Writing | None:
    try:
        # one by one: a registry that is down must not hide the schemas that are kept
        answer = schemas.lookup([ref], game)[ref]
    except DemuxError:
        return None
    if not isinstance(answer, CompiledSchema):
        return None
    return Writing(answer.schema_id, without_comments(answer.descriptor_set), answer.message)
