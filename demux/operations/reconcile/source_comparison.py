"""The source compared with bronze: by records where a table has positions, by number where not; Kafka by offsets."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from demux.core.errors import TableUnsuited
from demux.core.extras import duckdb
from demux.core.spark.classic import SPARK_ERRORS
from demux.operations.reconcile.balance import (
    LedgerDifference,
    LedgerFault,
    OffsetHole,
    SourceAccount,
    SourceLocations,
    intake,
)
from demux.operations.reconcile.consistent_snapshot import ConsistentSnapshot, register_twice
from demux.operations.reconcile.duckdb_engine import Engine, tallies_of, with_examples
from demux.operations.reconcile.location_sql import (
    INNER_HOLES,
    NO_SOURCE,
    NUMBERED_IN_SOURCE,
    NUMBERED_TAKEN,
    SEEN,
    TAKEN_VIEWS,
)
from demux.operations.reconcile.offsets import Part, Range, SeenOffsets, SourceOffsets, holes

_MOST_RANGES = 100
_MOST_SHOWN = 20
_ENDS = pa.schema([("log", pa.string()), ("partition", pa.int32()), ("ended", pa.int64())])


@dataclass(frozen=True, slots=True)
class SourceSide:
    """What balances between the source and bronze, and what does not; as in `balance.Ledger`."""

    intake: SourceAccount | None
    differences: tuple[LedgerDifference, ...] = ()
    holes: tuple[OffsetHole, ...] = ()
    notes: tuple[str, ...] = ()


def of_source(engine: Engine, spark: SparkSession | None, reading: ConsistentSnapshot) -> SourceSide:
    """Return what balances between the source and bronze, of a reading whose other tables the engine knows."""
    offsets = reading.source_offsets
    if offsets is None:
        return SourceSide(None, notes=("The source was not compared: bronze was made again meanwhile.",))
    numbered, notes = _read_table(engine, spark, reading)
    ends = [{"log": log, "partition": part, "ended": end} for (log, part), end in offsets.ends.items()]
    engine.register("ends", pa.Table.from_pylist(ends, schema=_ENDS))
    engine.execute(TAKEN_VIEWS)
    tallies = tallies_of(engine, SourceLocations)
    wrong = with_examples(engine, spark, reading.bronze, SourceLocations, tallies)
    if numbered and (short := numbered - _number(engine, NUMBERED_TAKEN)) > 0:
        wrong = (LedgerDifference(LedgerFault.NOT_TAKEN_IN, None, short, None, None), *wrong)
    if offsets.table is not None and offsets.version is None:
        notes = ("The source was not compared: bronze has not read a first version of its table whole.",)
    return SourceSide(intake(tallies, numbered), wrong, _holes(engine, offsets), notes)


def _read_table(
    engine: Engine, spark: SparkSession | None, reading: ConsistentSnapshot
) -> tuple[int | None, tuple[str, ...]]:
    """Make the source table known to the engine, an empty one where it cannot be read.

    Returns:
        How many records it has without a position, None where it cannot be read; why it cannot be read.
    """
    engine.execute(NO_SOURCE)
    if reading.source is None:
        return None, ()
    try:
        register_twice(engine, spark, "source", reading.source)
        return _number(engine, NUMBERED_IN_SOURCE), ()
    except (TableUnsuited, duckdb.InvalidInputException, *SPARK_ERRORS):
        # its log or its old files are gone
        engine.execute(NO_SOURCE)
        return None, (f"The source was not compared: version {reading.source[0].version} of it cannot be read.",)


def _number(engine: Engine, query: str) -> int:
    ((number,),) = engine.execute(query).fetchall()
    return int(number)


def _holes(engine: Engine, offsets: SourceOffsets) -> tuple[OffsetHole, ...]:
    """Return the holes in Kafka's offsets, up to bronze's offset: behind that, a batch may be half written."""
    if not offsets.ends:
        return ()
    found = engine.execute(SEEN).fetchall()
    inner: defaultdict[Part, list[Range]] = defaultdict(list)
    if any(last - first + 1 > offsets for _, _, first, last, offsets in found):
        for log, partition, first, end in engine.execute(INNER_HOLES, {"most": _MOST_RANGES}).fetchall():
            inner[log, partition].append((first, end))
    seen = {
        (log, part): SeenOffsets(first, last, offsets, tuple(sorted(inner[log, part])))
        for log, part, first, last, offsets in found
    }
    return holes(seen, offsets, _MOST_SHOWN)
