"""Rows of one game written by Spark: what does not decode to quarantine, then the rest to the game's table.

Where rows are appended, each commit carries the position that follows on the rows, as an application transaction. A
writer that dies between the two leaves quarantine ahead of the table; whoever comes next, with any engine and any
writer, decodes the rows again and leaves out the records that are in a table by then, whatever would become of them.
`deserializer.fleet.round` has the same order, with files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from demux.core.catalog.spark_tables import read_table
from demux.core.columns.spark import spark_struct
from demux.core.control.freshness import BUCKETS_PER_OCTAVE, LAST_BUCKET, Freshness
from demux.core.delta.app_transactions import Batch
from demux.core.delta.batch_commit import REFUSED
from demux.core.schemas.ref import SchemaRef
from demux.core.settings.source import SourceKind
from demux.core.spark.map_in_arrow import Sizes, map_in_arrow, sizes_column, sizes_in
from demux.core.tables import QUARANTINE
from deserializer.decoders.arrow import REF, to_refused
from deserializer.decoders.schema_decision import Decisions
from deserializer.decoders.select import ARROW, RowDecoder
from deserializer.silver.evolve import silver_rows
from deserializer.silver.spark_quarantine import QuarantineBySpark
from deserializer.silver.spark_table import SilverBySpark


@dataclass(frozen=True, slots=True)
class BatchContents:
    """What must be known of rows before they are decoded.

    Attributes:
        refs: how many rows each ref has.
        sizes: of payloads.
        ages: of the rows, at the time of reading.
        read_at: this time (UTC).
    """

    rows: int
    refs: Mapping[SchemaRef, int]
    sizes: Sizes
    ages: Freshness
    read_at: datetime


def contents_of(frame: DataFrame) -> BatchContents:
    """Return the contents of a frame with the columns of `INPUT`, in one pass over its rows."""
    now = datetime.now(timezone.utc)
    names = [column.name for column in REF]
    counted = F.count(F.lit(1)).alias("rows")
    groups = frame.groupBy(*names, _age_bucket(now).alias("bucket"))
    found = groups.agg(sizes_column("payload").alias("sizes"), counted).collect()
    refs: Counter[SchemaRef] = Counter()
    ages: Counter[int] = Counter()
    for row in found:
        refs[SchemaRef(*(row[name] for name in names))] += row.rows
        if row.bucket is not None:
            ages[row.bucket] += row.rows
    sizes = reduce(or_, (sizes_in(row.sizes) for row in found), Sizes())
    return BatchContents(refs.total(), refs, sizes, Freshness.of(ages), now)


def _age_bucket(now: datetime) -> Column:
    """Return the bucket of `Freshness` of a row's age; NULL without a timestamp, and for a row of an archive."""
    age_ms = F.greatest(F.lit(now.timestamp() * 1000) - F.expr("unix_micros(`timestamp`)") / 1000, F.lit(1.0))
    bucket = F.least(F.ceil(F.log2(age_ms) * BUCKETS_PER_OCTAVE), F.lit(LAST_BUCKET))
    return F.when(F.col("timestamp").isNotNull() & (F.col("origin") != SourceKind.FILES.value), bucket)


def write_rows(
    rows: DataFrame,
    decisions: Decisions,
    game: str,
    batch: Batch,
    put_bad: Callable[[DataFrame], None],
    put_good: Callable[[DataFrame], None],
    decoder: RowDecoder = ARROW,
) -> int:
    """Return how many rows do not decode, once these are in quarantine, and then the others in silver.

    Args:
        rows: in the columns of `INPUT`.
        decisions: what to do with each row.
        game: the exact name.
        batch: what bad rows carry in quarantine.
        put_bad: writes rows to quarantine; not called without any.
        put_good: writes rows to silver.
        decoder: of the good rows.
    """
    refused = to_refused(decisions, game, batch.query_id, batch.batch_id, datetime.now(timezone.utc))
    bad = map_in_arrow(rows, refused, spark_struct(QUARANTINE)).persist()
    try:
        rows_bad = bad.count()
        if rows_bad:
            put_bad(bad)
    finally:
        bad.unpersist()
    put_good(silver_rows(rows, decisions, decoder).where(~F.col(REFUSED)).drop(REFUSED))
    return rows_bad


def exclude_committed_rows(
    rows: DataFrame, game: str, table: SilverBySpark, quarantine: QuarantineBySpark
) -> DataFrame:
    """Return those of the rows, by `record_id`, that an interrupted writer put into no table."""
    settled = quarantine.records(game)
    if table.exists:
        silver = read_table(rows.sparkSession, table.address)
        settled.append(silver.select(F.col("_record_id").alias("record_id")))
    columns = rows.columns
    for ids in settled:
        rows = rows.join(ids, "record_id", "left_anti").select(*columns)
    return rows
