"""Tallies and examples of the records that the engine counts, as the data that decisions are made from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import astuple, fields, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from demux.operations.reconcile.balance import (
    DifferenceExample,
    Grain,
    LedgerDifference,
    LedgerFault,
    Tally,
    differences,
)
from demux.operations.reconcile.duckdb_engine import Engine, register
from demux.operations.reconcile.location_sql import Counted, examples_in, tallies_in
from demux.operations.reconcile.table_snapshots import Snapshot

_MOST_EXAMPLES = 20


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
