"""Requests of erasure: recorded, then carried out in silver, quarantine and bronze, then marked as done.

What is written down never names the person: it has positions. A request that was killed anywhere is finished by what
is written down. Until then the ledger counts its records as dropped, wherever they still are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from demux.core.catalog.spark_tables import open_table
from demux.core.causes import RemovalReason, Stage
from demux.core.columns.arrow import arrow_fields, as_type
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.parquet_writer import add_constants
from demux.core.delta.record_table import RecordTable
from demux.core.delta.rewrite_rows import delete_rows
from demux.core.errors import TableUnsuited
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.spark.connect import new_session
from demux.core.storage.files import Storage
from demux.core.storage.table_address import TableAddress
from demux.core.tables import FORGET, POSITION, REMOVED
from demux.operations.erasure.payload_matching import BATCH, FOUND
from demux.operations.erasure.results import FORGOTTEN_ROWS, RemovedRows
from demux.operations.reconcile.duckdb_engine import Engine, batches_of, counting_engine, keep
from demux.operations.reconcile.table_snapshots import snapshot

_CONF = {
    "spark.databricks.delta.commitInfo.userMetadata": FORGOTTEN_ROWS,
    # a vector would only hide a row, and leave its bytes in a live file
    "spark.databricks.delta.delete.deletionVectors.persistent": "false",
    "spark.databricks.delta.merge.deletionVectors.persistent": "false",
}
_ID = "record_id"
# of so many records are the ids in memory; a request with more is carried out in portions
_MOST_RECORDS = 250_000
_WRITTEN = Struct((Column(_ID, Primitive.STRING), BATCH))
# the batches of bronze that rows of a record are of, by the record's id; None where it has none
_Portion = Mapping[str, frozenset[int | None]]


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """A game's part of a request; `game` as in `demux.operations.erasure.results.SearchResult`."""

    id: str
    game: str | None


@dataclass(frozen=True, slots=True)
class _Erasure:
    """The rows of one table to remove: those of the recorded records.

    Attributes:
        path: the table's; it need not be there.
        where: values that other columns of a row must have.
        batch_id: the column of the batch; None where rows of all batches go.
        partition: the partition that they are all in, by column; empty: the table has none.
    """

    path: str
    where: Mapping[str, str]
    record_id: str = _ID
    batch_id: str | None = None
    partition: Mapping[str, str] = field(default_factory=dict)

    def carry_out(self, spark: SparkSession | None, storage: Storage, portion: _Portion) -> int:
        """Remove the rows in one commit; return how many.

        Files with such rows are written again without them, whatever the table says of deletion vectors.
        """
        if not storage.table_exists(self.path):
            return 0
        rows = delete_rows(
            storage,
            self.path,
            lambda rows: self._among(rows, portion),
            self._columns,
            self.partition,
            FORGOTTEN_ROWS,
        )
        return self._by_spark(spark, storage.address(self.path), portion) if rows is None else rows

    @property
    def _columns(self) -> Struct:
        batch = [] if self.batch_id is None else [Column(self.batch_id, Primitive.BIGINT)]
        return Struct((*(Column(name, Primitive.STRING) for name in (self.record_id, *self.where)), *batch))

    def _among(self, rows: pa.RecordBatch, portion: _Portion) -> pa.BooleanArray:
        ids = rows.column(self.record_id)
        meant = pc.is_in(ids, pa.array(list(portion), pa.string()))
        for name, value in self.where.items():
            meant = pc.and_(meant, pc.equal(rows.column(name), value))
        if self.batch_id is None or not pc.any(meant).as_py():
            return meant
        pairs = zip(ids.to_pylist(), rows.column(self.batch_id).to_pylist(), strict=True)
        return pc.and_(meant, pa.array([batch in portion.get(record_id, ()) for record_id, batch in pairs], pa.bool_()))

    def _by_spark(self, spark: SparkSession | None, address: TableAddress, portion: _Portion) -> int:
        if spark is None:
            raise TableUnsuited(
                f"Only Spark removes rows of the table {self.path}: it has a feature that asks for its writer.",
                "Run the same command with --spark.",
                table=self.path,
            )
        session = new_session(spark, {})
        for name, value in _CONF.items():
            # one that is refused fails here: the bytes would stay
            session.conf.set(name, value)
        pairs = [(record_id, batch) for record_id, batches in portion.items() for batch in batches]
        same = {self.record_id: _ID, **({} if self.batch_id is None else {self.batch_id: "batch_id"})}
        written = session.createDataFrame(pairs, f"{_ID} string, batch_id long")
        keys = written.select(*same.values()).distinct().alias("f")
        meant = {**self.where, **self.partition}
        conditions = [F.col(f"t.{name}") == F.lit(value) for name, value in meant.items()]
        conditions += [F.col(f"t.{ours}") == F.col(f"f.{theirs}") for ours, theirs in same.items()]
        matches = reduce(and_, conditions)
        table = open_table(session, address).alias("t")
        count = table.toDF().join(keys, matches, "left_semi").count()
        if count:
            table.merge(keys, matches).whenMatchedDelete().execute()
        return count


def write_down(
    spark: SparkSession | None, layout: Layout, request: ErasureRequest, rows: Iterable[pa.RecordBatch], now: datetime
) -> None:
    """Record which records are erased: after this commit a killed request is resumed.

    Args:
        rows: in the columns `FOUND`: one for each row of bronze that goes, and for each record that bronze has not.
    """
    schema = pa.schema(arrow_fields(Struct((*POSITION, BATCH))))
    constants = {
        "reason": RemovalReason.FORGOTTEN.value,
        "game_name": request.game,
        "request": request.id,
        "removed_at": now,
    }

    def whole(batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [as_type(array, one.type) for array, one in zip(batch.columns, schema, strict=True)]
        return add_constants(pa.RecordBatch.from_arrays(arrays, schema=schema), REMOVED, **constants)

    RecordTable(spark, layout.storage, layout.removed, REMOVED).append_batches(map(whole, rows))


def unfinished_requests(spark: SparkSession | None, layout: Layout) -> tuple[ErasureRequest, ...]:
    """Return the recorded requests that are not done, in a fixed order."""
    removed, done = (
        RecordTable(spark, layout.storage, path, columns)
        for path, columns in ((layout.removed, REMOVED), (layout.forget, FORGET))
    )
    requests = "SELECT DISTINCT request, game_name FROM {records}"
    written = removed.select(f"{requests} WHERE reason = '{RemovalReason.FORGOTTEN.value}'")
    finished = {(row["request"], row["game_name"]) for row in done.select(requests)}
    found = {(row["request"], row["game_name"]) for row in written} - finished
    return tuple(sorted((ErasureRequest(*one) for one in found), key=lambda one: (one.id, one.game or "")))


def carry_out(
    spark: SparkSession | None, layout: Layout, request: ErasureRequest, read_batch: int | None = None
) -> RemovedRows:
    """Carry out a recorded request, and return what was removed; a second call removes the rest.

    Args:
        read_batch: as in `search.search_game`, where the game may have read more since that was written
            down; None for a request of this moment.

    Raises:
        TableUnsuited: there is no session, and a table needs one.
    """
    numbers = [0, 0, 0]
    with counting_engine() as engine:
        keep(engine, "written", _WRITTEN, _written(spark, layout, request))
        if request.game is not None and read_batch is not None:
            _write_down_copies(engine, spark, layout, request, request.game, read_batch)
        for portion in _portions(engine):
            removed = _remove(spark, layout, request.game, portion)
            numbers = [before + more for before, more in zip(numbers, removed, strict=True)]
    done = RemovedRows(request.id, request.game, *numbers)
    row = (done.request, done.game, done.silver, done.bronze, done.quarantine, datetime.now(timezone.utc))
    RecordTable(spark, layout.storage, layout.forget, FORGET).append([row])
    return done


def _remove(spark: SparkSession | None, layout: Layout, game: str | None, portion: _Portion) -> tuple[int, int, int]:
    """Remove records, and return how many rows: of silver, of bronze, of quarantine."""
    storage = layout.storage
    if game is None:
        refused = _Erasure(layout.quarantine, {"stage": Stage.BRONZE.value})
        return 0, 0, refused.carry_out(spark, storage, portion)
    of_silver = {"stage": Stage.SILVER.value, "game_name": game}
    retired = {"reason": RemovalReason.RETIRED.value, "game_name": game}
    silver, quarantine, _, _, bronze = (
        erasure.carry_out(spark, storage, portion)
        for erasure in (
            _Erasure(layout.silver(names_of(game).key), {}, f"_{_ID}"),
            _Erasure(layout.quarantine, of_silver),
            # a record that is forgotten counts as nothing else
            _Erasure(layout.dropped, of_silver),
            _Erasure(layout.removed, retired),
            # bronze's row goes last: until then nothing is lost
            _Erasure(layout.bronze, {}, batch_id="batch_id", partition={"game_name": game}),
        )
    )
    return silver, bronze, quarantine


def _portions(engine: Engine) -> Iterator[_Portion]:
    for rows in batches_of(engine, "SELECT DISTINCT record_id, batch_id FROM written", _WRITTEN, _MOST_RECORDS):
        batches: defaultdict[str, set[int | None]] = defaultdict(set)
        for record_id, batch in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            batches[record_id].add(batch)
        yield {record_id: frozenset(each) for record_id, each in batches.items()}


def _write_down_copies(
    engine: Engine, spark: SparkSession | None, layout: Layout, request: ErasureRequest, game: str, read_batch: int
) -> None:
    """Record further copies of the same records in bronze that the game has read since.

    They are in silver too, and silver does not say of which copy a row is.
    """
    columns = Struct((Column("game_name", Primitive.STRING), *POSITION, BATCH))
    bronze = snapshot(spark, layout.storage, layout.bronze, columns)
    schema = pa.schema(arrow_fields(FOUND))

    def read(rows: pa.RecordBatch) -> pa.RecordBatch:
        rows = rows.filter(pc.less_equal(rows.column("batch_id"), read_batch))
        arrays = [as_type(rows.column(one.name), one.type) for one in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    batches = bronze.batches(spark, read, ("game_name", [game]))
    mine = "SEMI JOIN written USING (record_id) ANTI JOIN written USING (record_id, batch_id)"
    keep(engine, "copies", FOUND, batches, mine)
    if engine.execute("FROM copies LIMIT 1").fetchone():
        write_down(spark, layout, request, batches_of(engine, "FROM copies", FOUND), datetime.now(timezone.utc))
        engine.execute("INSERT INTO written SELECT record_id, batch_id FROM copies")


def _written(spark: SparkSession | None, layout: Layout, request: ErasureRequest) -> Iterator[pa.RecordBatch]:
    """Yield the recorded records, in the columns `_WRITTEN`."""
    described = [Column(name, Primitive.STRING) for name in ("reason", "request", "game_name")]
    table = snapshot(spark, layout.storage, layout.removed, Struct((*described, *_WRITTEN)))

    def mine(rows: pa.RecordBatch) -> pa.RecordBatch:
        game = rows.column("game_name")
        is_game = game.is_null() if request.game is None else pc.equal(game, request.game)
        is_request = pc.equal(rows.column("request"), request.id)
        forgotten = pc.equal(rows.column("reason"), RemovalReason.FORGOTTEN.value)
        return rows.filter(pc.and_(pc.and_(forgotten, is_request), is_game)).select([_ID, "batch_id"])

    yield from table.batches(spark, mine)
