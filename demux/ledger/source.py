"""The source compared with bronze: by records where a table has positions, by number where not; Kafka by offsets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from demux.causes import Stage
from demux.ledger import counting
from demux.ledger.account import Difference, Hole, Intake, Kind, intake
from demux.ledger.counting import TAKEN
from demux.ledger.reading import Reading, twice
from demux.ledger.snapshots import Snapshot, together
from demux.ledger.standing import Part, Range, Seen, SourceStand, holes
from demux.ledger.tallies import tallies_of_source, with_examples

_MOST_RANGES = 100
_MOST_SHOWN = 20
_ENDS = "log string, partition int, end long"


@dataclass(frozen=True, slots=True)
class SourceSide:
    """What balances between the source and bronze, and what does not; as in `demux.ledger.account.Ledger`."""

    intake: Intake | None
    differences: tuple[Difference, ...] = ()
    holes: tuple[Hole, ...] = ()
    notes: tuple[str, ...] = ()


def of_source(spark: SparkSession, reading: Reading) -> SourceSide:
    """Return what balances between the source and bronze."""
    stand = reading.source_stand
    if stand is None:
        return SourceSide(None, notes=("The source was not compared: bronze was made again meanwhile.",))
    taken = [reading.bronze_rows(spark)]
    parts = [counting.taken_in_bronze(taken[0])]
    if reading.quarantine[1].version >= 0:
        quarantine = reading.quarantine[1].frame(spark)
        taken.append(quarantine.where(F.col("stage") == Stage.BRONZE.value))
        parts.append(counting.taken_in_quarantine(quarantine))
    if reading.dropped.version >= 0:
        dropped = reading.dropped_rows(spark)
        taken.append(_only_dropped(dropped, taken[1:]))
        parts.append(counting.taken_and_dropped(dropped))
    if reading.removed.version >= 0:
        removed = reading.removed_rows(spark)
        taken.append(_not_in(removed, taken))
        parts.append(counting.taken_and_retired(reading.retired_rows(spark)))
        parts.append(counting.taken_and_forgotten(removed))
    table = _Table(None) if reading.source is None else _table(spark, reading.source)
    records = counting.takings(together([*parts, *table.rows]))
    tallies = tallies_of_source(records)
    wrong = with_examples(spark, reading, records, tallies, TAKEN)
    if table.numbered and (short := table.numbered - _numbered(taken)) > 0:
        wrong = (Difference(Kind.NOT_TAKEN_IN, None, short, None, None), *wrong)
    notes = table.notes
    if stand.table is not None and stand.version is None:
        notes = ("The source was not compared: bronze has not read a first version of its table whole.",)
    return SourceSide(intake(tallies, table.numbered), wrong, _holes(spark, stand, taken), notes)


@dataclass(frozen=True, slots=True)
class _Table:
    """A source table to be counted.

    Attributes:
        numbered: how many records it has without a position; None where it cannot be read.
        rows: those with one, for `counting.takings`.
        notes: why it cannot be read.
    """

    numbered: int | None
    rows: tuple[DataFrame, ...] = ()
    notes: tuple[str, ...] = ()


def _table(spark: SparkSession, both: tuple[Snapshot, Snapshot]) -> _Table:
    try:
        readings = list(twice(spark, both))
        numbered = counting.with_ids(readings[0][0]).where("id IS NULL").count()
    except (PySparkException, Py4JJavaError):
        # its log or its old files are gone
        return _Table(None, notes=(f"The source was not compared: version {both[0].version} of it cannot be read.",))
    return _Table(numbered, tuple(counting.of_source(frame, which) for frame, which in readings))


def _only_dropped(dropped: DataFrame, quarantine: Sequence[DataFrame]) -> DataFrame:
    """Return the rows dropped at stage bronze that are not in quarantine any more, or again."""
    return _not_in(dropped.where(F.col("stage") == Stage.BRONZE.value), quarantine)


def _not_in(rows: DataFrame, tables: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of records that are in none of these."""
    for table in tables:
        rows = rows.join(table.select("record_id"), "record_id", "left_anti")
    return rows


def _numbered(taken: Sequence[DataFrame]) -> int:
    """Return how many records have a number of ours."""
    positions = ["origin", "topic", "partition", "offset"]
    return together([frame.select(*positions) for frame in taken]).where(counting.is_numbered()).count()


def _holes(spark: SparkSession, stand: SourceStand, taken: Sequence[DataFrame]) -> tuple[Hole, ...]:
    """Return the holes in Kafka's offsets, up to where bronze stands: behind that, a batch may be half written."""
    if not stand.ends:
        return ()
    ends = spark.createDataFrame([(*part, end) for part, end in stand.ends.items()], _ENDS)
    columns = ["origin", "record_id", "partition", "offset"]
    offsets = counting.kafka_offsets(together([frame.select(*columns) for frame in taken]), ends)
    seen = {(row.log, row.partition): _seen(row) for row in counting.seen(offsets).collect()}
    if any(one.last - one.first + 1 > one.offsets for one in seen.values()):
        inner: defaultdict[Part, list[Range]] = defaultdict(list)
        for row in counting.inner_holes(offsets, _MOST_RANGES).collect():
            inner[row.log, row.partition].append((row["first"], row["end"]))
        seen = {part: replace(one, inner=tuple(sorted(inner[part]))) for part, one in seen.items()}
    return holes(seen, stand, _MOST_SHOWN)


def _seen(row: Row) -> Seen:
    return Seen(row["first"], row["last"], row["offsets"])
