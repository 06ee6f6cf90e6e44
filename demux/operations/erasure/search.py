"""The records that a predicate selects, found in silver, in quarantine, and in bronze what was dropped from quarantine.

Reads tables; writes nothing. Tables are read file by file, and by Spark what only Spark reads; records that are found
are kept by DuckDB, which needs little memory however many there are. Rows of bronze that their game has not read yet
are left alone: it is unknown what is in them, and a reader of bronze continues only past files of which all rows were
read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from demux.core.catalog.spark_tables import read_table
from demux.core.causes import Stage
from demux.core.columns.spark import columns_in_json, columns_of_spark
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.parquet_writer import schema_json
from demux.core.delta.scan import is_readable
from demux.core.errors import DemuxError
from demux.core.names import names_of
from demux.core.protobuf.schema.comments import without_comments
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.root.layout import Layout
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.store import SchemaStore
from demux.core.spark.connect import new_session
from demux.core.tables import POSITION
from demux.operations.erasure.payload_matching import (
    BATCH,
    FOUND,
    JUDGED,
    LOOKED_AT,
    REF,
    FoundIn,
    MatchVerdict,
    PayloadQuery,
    Writing,
    judged_rows,
    matching_rows,
)
from demux.operations.erasure.results import ALL_READ, SearchResult
from demux.operations.predicate.ast import Predicate, paths_in, sought_in
from demux.operations.predicate.binder import fit, missing_from
from demux.operations.reconcile.duckdb_engine import Engine, batches_of, counting_engine, keep
from demux.operations.reconcile.table_snapshots import Snapshot, session_for, snapshot

_STAGE, _GAME, _ID = (Column(name, Primitive.STRING) for name in ("stage", "game_name", "record_id"))
_BRONZE = Struct((_GAME, _ID, BATCH))
_QUARANTINE = Struct((_STAGE, _GAME, *LOOKED_AT))
_PAYLOADS = Struct((_GAME, *(replace(one, name="payload") if one.name == "bytes" else one for one in LOOKED_AT)))
_IDS = ", ".join(f'"{column.name}"' for column in POSITION)


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The scope of a search.

    Attributes:
        unreadable_too: whether rows that cannot be read go where their bytes have a text that is sought.
    """

    spark: SparkSession | None
    layout: Layout
    schemas: SchemaStore
    predicate: Predicate
    unreadable_too: bool

    def table(self, path: str, columns: Struct) -> Snapshot:
        """Return some columns of a table as it is now."""
        return snapshot(self.spark, self.layout.storage, path, columns)

    @property
    def removed(self) -> str:
        """SQL that says whether a judged record goes."""
        verdicts = [MatchVerdict.MEANT, *([MatchVerdict.SUSPECT] if self.unreadable_too else [])]
        return f"verdict IN ({', '.join(repr(one.value) for one in verdicts)})"


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """The outcome of a search.

    Attributes:
        rows: what goes, in the columns `FOUND`: one for each row of bronze, and one for each record that bronze has
            not. None where nothing goes.
    """

    result: SearchResult
    rows: Iterable[pa.RecordBatch] | None = None


def session_of(spark: SparkSession) -> SparkSession:
    """Return a session to search with, which hands few rows at a time to Python: they may be large."""
    return new_session(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": "200"})


def columns_of(spark: SparkSession | None, layout: Layout, game: str) -> Struct | None:
    """Return the columns of the game's table; None where there is none.

    Raises:
        TableUnsuited: only Spark can open the table, and there is no session.
    """
    path = layout.silver(names_of(game).key)
    if (table := layout.storage.known_table(path)) is not None:
        return columns_in_json(schema_json(table))
    if not layout.storage.table_exists(path):
        return None
    return columns_of_spark(read_table(session_for(spark, path), layout.storage.address(path)).schema)


def quarantined_games(scope: SearchScope) -> frozenset[str]:
    """Return the games that have rows of stage silver in quarantine; raises as `search_game`."""
    table = scope.table(scope.layout.quarantine, Struct((_STAGE, _GAME)))
    found: set[str] = set()
    for batch in table.batches(scope.spark, lambda rows: rows.filter(_is_of_stage(Stage.SILVER, rows))):
        found.update(pc.unique(batch.column("game_name").drop_null()).to_pylist())
    return frozenset(found)


def rows_after(scope: SearchScope, game: str, read_batch: int) -> int:
    """Return how many rows of bronze the game has still to read; raises as `search_game`."""
    if read_batch == ALL_READ:
        return 0
    bronze = scope.table(scope.layout.bronze, Struct((_GAME, BATCH)))
    later = bronze.batches(
        scope.spark, lambda rows: rows.filter(pc.greater(rows.column("batch_id"), read_batch)), _of(game)
    )
    return sum(map(len, later))


@contextmanager
def search_game(scope: SearchScope, game: str, read_batch: int) -> Iterator[SearchOutcome]:
    """Yield the outcome for a game; its rows can be read once, inside the block.

    Args:
        read_batch: the last batch of bronze that the game has read whole; -1 for none, `ALL_READ` for all.

    Raises:
        PredicateInvalid: the predicate does not fit the columns of the game's table.
        TableUnsuited: only Spark reads a table, and there is no session.
    """
    unsearched = rows_after(scope, game, read_batch)
    columns = columns_of(scope.spark, scope.layout, game)
    lacks = () if columns is None else missing_from(scope.predicate, columns)
    if lacks:
        yield SearchOutcome(SearchResult(game, unsearched=unsearched, lacks=lacks))
        return
    with counting_engine() as engine:
        keep(engine, "judged", JUDGED, _judged_of(scope, game, columns))
        _keep_copies(engine, scope, game)
        # a record of which all is still to be read stays where it is
        engine.execute(
            f"CREATE TEMP TABLE gone AS FROM judged ANTI JOIN (SELECT record_id FROM copies GROUP BY record_id "
            f"HAVING min(batch_id) > {read_batch:d}) USING (record_id) WHERE {scope.removed}"
        )
        engine.execute(f"DELETE FROM copies WHERE batch_id > {read_batch:d}")
        found = _search_result(engine, scope, game, unsearched)
        once = f"SELECT DISTINCT ON (record_id) {_IDS} FROM gone"
        rows = f"SELECT {_IDS}, copies.batch_id FROM ({once}) LEFT JOIN copies USING (record_id)"
        yield SearchOutcome(found, batches_of(engine, rows, FOUND) if found.rows else None)


@contextmanager
def search_without_game(scope: SearchScope) -> Iterator[SearchOutcome]:
    """Yield the outcome for records that never became a row of bronze, as `search_game`, by their bytes alone."""
    question = PayloadQuery(None, sought_in(scope.predicate), {})
    judge = partial(judged_rows, question, FoundIn.QUARANTINE, partial(_is_of_stage, Stage.BRONZE))
    table = scope.table(scope.layout.quarantine, _QUARANTINE)
    with counting_engine() as engine:
        keep(engine, "judged", JUDGED, table.batches(scope.spark, judge))
        suspect = _count(engine, f"judged WHERE verdict = '{MatchVerdict.SUSPECT.value}'")
        gone = suspect if scope.unreadable_too else 0
        found = SearchResult(None, quarantine=gone, unreadable=_count(engine, "judged"), suspect=suspect)
        rows = f"SELECT {_IDS}, batch_id FROM judged WHERE {scope.removed}"
        yield SearchOutcome(found, batches_of(engine, rows, FOUND) if gone else None)


def _count(engine: Engine, rows: str) -> int:
    (found,) = engine.execute(f"SELECT count(*) FROM {rows}").fetchone() or (0,)
    return int(found)


def _search_result(engine: Engine, scope: SearchScope, game: str, unsearched: int) -> SearchResult:
    places = {place: _count(engine, f"gone WHERE found_in = '{place.value}'") for place in FoundIn}
    suspect, unreadable = (
        _count(engine, f"judged WHERE verdict = '{one.value}'")
        for one in (MatchVerdict.SUSPECT, MatchVerdict.UNREADABLE)
    )
    silver = places[FoundIn.SILVER]
    return SearchResult(
        game,
        silver,
        _count(engine, "copies SEMI JOIN gone USING (record_id)"),
        places[FoundIn.QUARANTINE],
        unreadable + suspect,
        suspect,
        unsearched,
        _rows_of_table(scope, game) if silver else 0,
    )


def _rows_of_table(scope: SearchScope, game: str) -> int:
    path = scope.layout.silver(names_of(game).key)
    table = scope.layout.storage.known_table(path)
    if table is not None and is_readable(table):
        return int(table.count())
    return read_table(session_for(scope.spark, path), scope.layout.storage.address(path)).count()


def _keep_copies(engine: Engine, scope: SearchScope, game: str) -> None:
    """Make the table `copies` of what bronze has of the records that may go: record_id, batch_id."""
    batches: Iterable[pa.RecordBatch] = ()
    if _count(engine, f"judged WHERE {scope.removed}"):
        batches = scope.table(scope.layout.bronze, _BRONZE).batches(scope.spark, _unchanged, _of(game))
    keep(engine, "copies", _BRONZE, batches, f"SEMI JOIN (FROM judged WHERE {scope.removed}) USING (record_id)")


def _judged_of(scope: SearchScope, game: str, columns: Struct | None) -> Iterator[pa.RecordBatch]:
    """Yield the game's records that may match, in the columns `JUDGED`."""
    predicate = None if columns is None else fit(scope.predicate, columns)
    is_game = partial(_is_of_stage, Stage.SILVER)
    quarantine = scope.table(scope.layout.quarantine, _QUARANTINE)
    yield from _undecoded(scope, game, predicate, FoundIn.QUARANTINE, quarantine, is_game)
    dropped = _dropped(scope, game)
    if len(dropped):
        bronze = scope.table(scope.layout.bronze, _PAYLOADS)
        yield from _undecoded(scope, game, predicate, FoundIn.BRONZE, bronze, partial(_is_among, dropped))
    if predicate is not None and columns is not None:
        position = [replace(one, name=f"_{one.name}") for one in POSITION]
        named = {path.names[0] for path in paths_in(predicate)} - {one.name for one in position}
        looked_at = Struct((*position, *(one for one in columns if one.name in named)))
        silver = scope.table(scope.layout.silver(names_of(game).key), looked_at)
        yield from silver.batches(scope.spark, partial(matching_rows, predicate))


def _undecoded(
    scope: SearchScope,
    game: str,
    predicate: Predicate | None,
    place: FoundIn,
    table: Snapshot,
    chosen: Callable[[pa.RecordBatch], pa.BooleanArray],
) -> Iterator[pa.RecordBatch]:
    """Yield the verdicts on the chosen rows of a table, which are in no silver table."""
    refs: set[SchemaRef] = set()
    few = table.only(("stage", "game_name", "record_id", *REF))
    for batch in few.batches(scope.spark, lambda rows: rows.filter(chosen(rows)), _of(game)):
        columns = (batch.column(name).to_pylist() for name in REF)
        refs.update(SchemaRef(*row) for row in zip(*columns, strict=True))
    if refs:
        found = {ref: _writing(scope.schemas, ref, game) for ref in refs}
        writings = {ref: writing for ref, writing in found.items() if writing is not None}
        question = PayloadQuery(predicate, sought_in(scope.predicate), writings)
        yield from table.batches(scope.spark, partial(judged_rows, question, place, chosen), _of(game))


def _dropped(scope: SearchScope, game: str) -> pa.Array:
    """Return the ids of the game's records that were dropped from quarantine, and may be in bronze still."""
    table = scope.table(scope.layout.dropped, Struct((_STAGE, _GAME, _ID)))
    ids = [
        batch.column("record_id")
        for batch in table.batches(scope.spark, lambda rows: rows.filter(_is_of_stage(Stage.SILVER, rows)), _of(game))
    ]
    return pc.unique(pa.chunked_array(ids, pa.string()))


def _of(game: str) -> tuple[str, list[str]]:
    return "game_name", [game]


def _unchanged(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows


def _is_of_stage(stage: Stage, rows: pa.RecordBatch) -> pa.BooleanArray:
    return pc.equal(rows.column("stage"), stage.value)


def _is_among(ids: pa.Array, rows: pa.RecordBatch) -> pa.BooleanArray:
    return pc.is_in(rows.column("record_id"), ids)


def _writing(schemas: SchemaStore, ref: SchemaRef, game: str) -> Writing | None:
    try:
        # one by one: a registry that is down must not hide the schemas that are kept
        answer = schemas.lookup([ref], game)[ref]
    except DemuxError:
        return None
    if not isinstance(answer, CompiledSchema):
        return None
    return Writing(answer.schema_id, without_comments(answer.descriptor_set), answer.message)
