"""Tallies and examples of the records in a frame: what Spark counts, as the data that decisions are made from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import astuple, replace

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from demux.ledger import counting
from demux.ledger.account import Difference, Example, Grain, Kind, Places, Taken, Tally, differences
from demux.ledger.counting import PLACES, TAKEN
from demux.ledger.reading import Reading

_MOST_EXAMPLES = 20


def tallies_of_games(records: DataFrame, grain: Grain) -> list[Tally]:
    """Return the tallies of a frame of `counting.places`."""
    return _tallies(records, Places, PLACES, grain)


def tallies_of_source(records: DataFrame) -> list[Tally]:
    """Return the tallies of a frame of `counting.takings`."""
    return _tallies(records, Taken, TAKEN, Grain.GAME)


def with_examples(
    spark: SparkSession, reading: Reading, records: DataFrame, tallies: Sequence[Tally], measures: Sequence[str]
) -> tuple[Difference, ...]:
    """Return the differences with their first examples; counts once more, and only where there are any."""
    found = differences(tallies)
    if not found:
        return ()
    wrong = {
        (tally.game, *(int(value) for value in astuple(tally.places)), tally.places.kind.value)
        for tally in tallies
        if tally.places.kind is not None
    }
    schema = ", ".join(["game string", *(f"{name} long" for name in measures), "kind string"])
    rows = counting.first_examples(
        records, spark.createDataFrame(sorted(wrong, key=str), schema), measures, _MOST_EXAMPLES
    ).collect()
    owners = _owners(spark, reading, [row.id for row in rows if row.kind == Kind.STRAY.value])
    by_difference: defaultdict[tuple[Kind, str | None], list[Example]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.batch is None, row.batch, str(row.id))):
        by_difference[Kind(row.kind), row.game].append(Example(str(row.id), row.batch, owners.get(row.id)))
    return tuple(replace(one, examples=tuple(by_difference[one.kind, one.game])) for one in found)


def _owners(spark: SparkSession, reading: Reading, ids: Sequence[str]) -> dict[str, str]:
    """Return which game has each of these records in bronze."""
    if not ids:
        return {}
    wanted = spark.createDataFrame([(one,) for one in sorted(set(ids))], "record_id string")
    bronze = reading.bronze_rows(spark).select("record_id", "game_name")
    return {row.record_id: row.game_name for row in bronze.join(F.broadcast(wanted), "record_id").collect()}


def _tallies(
    records: DataFrame, kind: type[Places] | type[Taken], measures: Sequence[str], grain: Grain
) -> list[Tally]:
    found = counting.tallied(records, measures, grain).collect()
    return [
        Tally(row.game, _places(kind, measures, row), row.records, row.first_batch, row.last_batch) for row in found
    ]


def _places(kind: type[Places] | type[Taken], measures: Sequence[str], row: Row) -> Places | Taken:
    return kind(*(bool(row[name]) if name == "is_unique" else row[name] for name in measures))
