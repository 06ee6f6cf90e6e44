"""The engine that counts: DuckDB, in this process; and its tallies, as the data that decisions are made from.

It has what is copied into it, and reads no file, no other variable of this process and no network. What does not fit
into memory is in a temporary folder, which is removed when the block ends.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields, replace
from tempfile import TemporaryDirectory
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.extras import duckdb
from demux.core.storage.files import Storage
from demux.operations.reconcile.balance import (
    DifferenceExample,
    Grain,
    LedgerDifference,
    LedgerFault,
    Tally,
    differences,
)
from demux.operations.reconcile.location_sql import Counted, examples_in, tallies_in
from demux.operations.reconcile.table_snapshots import FileRows, Snapshot, frame_batches

Engine: TypeAlias = "duckdb.DuckDBPyConnection"

_MEMORY = "300MiB"
# each one needs memory of its own
_MOST_THREADS = 4
_MOST_EXAMPLES = 20


@contextmanager
def counting_engine() -> Iterator[Engine]:
    """Yield an engine without tables."""
    with TemporaryDirectory(prefix="demux-ledger-") as folder:
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": _MEMORY,
            "threads": min(_MOST_THREADS, os.cpu_count() or 1),
            "temp_directory": folder,
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
        }
        with duckdb.connect(config=config) as engine:
            engine.execute("SET enable_external_access = false")
            engine.execute("SET lock_configuration = true")
            yield engine


_SILVER = Struct((Column("game", Primitive.STRING), Column("_record_id", Primitive.STRING)))


def register(
    engine: Engine,
    spark: SparkSession | None,
    name: str,
    table: Snapshot,
    only: tuple[str, Collection[str]] | None = None,
) -> None:
    """Make the rows of a table known to the engine; of `only`, a column and values, those that have one of the values.

    Raises:
        TableUnsuited: Spark must read it, and there is no session.
    """
    if table.version < 0:
        engine.register(name, _schema(table.columns).empty_table())
    elif table.rows is not None:
        _copy_files(engine, name, table.rows.reader(*(only or ())))
    else:
        frame = table.frame(spark)
        _copy_frame(engine, name, frame if only is None else frame.where(F.col(only[0]).isin(*only[1])), table.columns)


def register_silver(
    engine: Engine,
    storage: Storage,
    spark: SparkSession | None,
    tables: Mapping[str, Snapshot],
    names: Mapping[str, str],
) -> None:
    """Make all rows of the silver tables known to the engine, as one table: game, _record_id.

    Args:
        names: the games' exact names by key; a key that no game has is its own name.
    """
    schema = _schema(_SILVER)
    files = [
        replace(file, constants={"game": names.get(key, key)})
        for key, table in tables.items()
        if table.rows is not None
        for file in table.rows.files
    ]
    _copy_files(engine, "silver_files", FileRows(storage, files, list(schema)).reader())
    engine.register("silver_by_spark", schema.empty_table())
    frames = [
        table.frame(spark).select(F.lit(names.get(key, key)).alias("game"), "_record_id")
        for key, table in tables.items()
        if table.rows is None
    ]
    if frames:
        engine.unregister("silver_by_spark")
        _copy_frame(engine, "silver_by_spark", _union(frames), _SILVER)
    engine.execute("CREATE TEMP VIEW silver AS FROM silver_files UNION ALL FROM silver_by_spark")


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of all frames; as a tree, as a chain of a thousand is too deep for Spark."""
    while len(frames) > 1:
        pairs = [frames[at : at + 2] for at in range(0, len(frames), 2)]
        frames = [pair[0].unionByName(pair[1]) if len(pair) == 2 else pair[0] for pair in pairs]
    return frames[0]


def _copy_files(engine: Engine, name: str, rows: pa.RecordBatchReader) -> None:
    """Make the rows of files a table of the engine."""
    engine.register("rows", rows)
    engine.execute(f"CREATE TEMP TABLE {name} AS FROM rows")
    engine.unregister("rows")


def _copy_frame(engine: Engine, name: str, frame: DataFrame, columns: Struct) -> None:
    """Make the rows of a frame a table of the engine, batch by batch."""
    tables = (table.cast(_schema(columns)) for table in frame_batches(frame))
    keep(engine, name, columns, (batch for table in tables for batch in table.to_batches()))


def keep(engine: Engine, name: str, columns: Struct, batches: Iterable[pa.RecordBatch], condition: str = "") -> None:
    """Make a table of the engine of rows in these columns, of those for which the SQL condition holds."""
    engine.register("batch", _schema(columns).empty_table())
    engine.execute(f"CREATE TEMP TABLE {name} AS FROM batch")
    for batch in batches:
        if len(batch):
            # an error of the reader is not one of the engine
            engine.register("batch", pa.Table.from_batches([batch]))
            engine.execute(f"INSERT INTO {name} FROM batch {condition}")
    engine.unregister("batch")


def batches_of(engine: Engine, query: str, columns: Struct, most_rows: int = 10_000) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a query of the engine, which has these columns; the engine does nothing else meanwhile."""
    fields, found = arrow_fields(columns), engine.execute(query)
    while rows := found.fetchmany(most_rows):
        arrays = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), fields, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _schema(columns: Struct) -> pa.Schema:
    return pa.schema(arrow_fields(columns))


def tallies_of(engine: Engine, counted: Counted, grain: Grain = Grain.GAME) -> list[Tally]:
    """Return the tallies of the records of a reading."""
    end = 1 + len(fields(counted))
    rows = engine.execute(tallies_in(counted, grain)).fetchall()
    return [Tally(row[0], counted(*row[1:end]), *row[end:]) for row in rows]


def with_examples(
    engine: Engine, spark: SparkSession | None, bronze: Snapshot, counted: Counted, tallies: Sequence[Tally]
) -> tuple[LedgerDifference, ...]:
    """Return the differences with their first examples; counts once more, and only where there are any."""
    found = differences(tallies)
    if not found:
        return ()
    wrong = {
        (tally.game, tally.places.kind.value, *map(int, astuple(tally.places)))
        for tally in tallies
        if tally.places.kind is not None
    }
    places = [(field.name, pa.int64()) for field in fields(counted)]
    schema = pa.schema([("game", pa.string()), ("kind", pa.string()), *places])
    engine.register("wrong", pa.table(list(zip(*wrong, strict=True)), schema=schema))
    rows = engine.execute(examples_in(counted), {"most": _MOST_EXAMPLES}).fetchall()
    strays = {record for kind, _, record, _ in rows if kind == LedgerFault.STRAY.value}
    owners: dict[str, str] = {}
    if strays:
        register(engine, spark, "everywhere", bronze, ("record_id", strays))
        owners = dict(engine.execute("SELECT record_id, game_name FROM everywhere").fetchall())
    by_difference: defaultdict[tuple[LedgerFault, str | None], list[DifferenceExample]] = defaultdict(list)
    for kind, game, record, batch in sorted(rows, key=lambda row: (row[3] is None, row[3], str(row[2]))):
        by_difference[LedgerFault(kind), game].append(DifferenceExample(str(record), batch, owners.get(record)))
    return tuple(replace(one, examples=tuple(by_difference[one.kind, one.game])) for one in found)
