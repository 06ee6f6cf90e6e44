"""What must be known of rows before they are decoded: how many, of which schemas, how large."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from demux.core.schemas.ref import SchemaRef
from demux.core.spark.map_in_arrow import Sizes, sizes_column, sizes_in
from deserializer.decoders.arrow import REF


@dataclass(frozen=True, slots=True)
class BatchContents:
    """What must be known of rows before they are decoded: how many, how many of each ref, how large payloads are."""

    rows: int
    refs: Mapping[SchemaRef, int]
    sizes: Sizes


def contents_of(frame: DataFrame) -> BatchContents:
    """Return the contents of a frame with the columns of `INPUT`, in one pass over its rows."""
    names = [column.name for column in REF]
    counted = F.count(F.lit(1)).alias("rows")
    found = frame.groupBy(*names).agg(sizes_column("payload").alias("sizes"), counted).collect()
    return BatchContents(
        sum(row.rows for row in found),
        {SchemaRef(*(row[name] for name in names)): row.rows for row in found},
        reduce(or_, (sizes_in(row.sizes) for row in found), Sizes()),
    )
