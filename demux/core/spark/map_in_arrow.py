"""`mapInArrow` for nested columns and for large records, on every supported Spark."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar
from zipimport import zipimporter

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from demux.core.columns.arrow import MAX_BATCH_BYTES, MAX_BATCH_ROWS
from demux.core.spark.allocator import keep_freed_memory
from demux.core.spark.classic import map_in_arrow_unchecked
from demux.core.spark.session_conf import get_conf, set_conf

T = TypeVar("T")
U = TypeVar("U")

Batches = Iterator[pa.RecordBatch]
ArrowFunction = Callable[[Batches], Batches]

_SMALL_BYTES = MAX_BATCH_BYTES // MAX_BATCH_ROWS
_ROWS_PER_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"


def map_in_arrow(frame: DataFrame, function: ArrowFunction, schema: StructType) -> DataFrame:
    """Return the frame that `DataFrame.mapInArrow` gives, also where PySpark refuses the schema.

    PySpark before 3.5 refuses nested structs and arrays of timestamps in Python, before it asks the JVM, which reads
    them well.
    """
    work = in_worker(function)
    try:
        return frame.mapInArrow(work, schema)  # type: ignore[arg-type]
    except NotImplementedError:
        return map_in_arrow_unchecked(frame, work, schema)


def in_worker(function: Callable[[Iterator[T]], Iterator[U]]) -> Callable[[Iterator[T]], Iterator[U]]:
    """Return the function as a worker runs it best: freed memory is kept, and the next task begins earlier.

    PySpark's worker begins each task with `importlib.invalidate_caches`, which reads the directories of all archives
    on the path again, for a tenth of a second: its own zip, and a jar. What is not in this cache is looked up again
    when it is wanted.
    """

    def run(rows: Iterator[T]) -> Iterator[U]:
        keep_freed_memory()
        try:
            yield from function(rows)
        finally:
            for path, importer in list(sys.path_importer_cache.items()):
                if isinstance(importer, zipimporter):
                    del sys.path_importer_cache[path]

    return run


def number_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the batches of a task, each with the number of its first row; no two rows of a frame have the same.

    As Spark's `monotonically_increasing_id`: the same frame numbers its rows alike every time.
    """
    task = TaskContext.get()
    number = task.partitionId() << 33 if task is not None else 0
    for batch in batches:
        yield number, batch
        number += len(batch)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the records of a frame are.

    Attributes:
        largest_bytes: the bytes of the largest one.
        large_bytes: the bytes of all those together of which 10,000 would not be a batch.
    """

    largest_bytes: int = 0
    large_bytes: int = 0

    def __or__(self, other: Sizes) -> Sizes:
        """Return the sizes of both frames together."""
        return Sizes(max(self.largest_bytes, other.largest_bytes), self.large_bytes + other.large_bytes)


def sizes_column(binary: str) -> Column:
    """Return an aggregate of a BINARY column, to be read by `sizes_in`."""
    size = F.length(binary)
    large = F.sum(F.when(size > _SMALL_BYTES, size))
    return F.struct(F.coalesce(F.max(size), F.lit(0)).alias("largest"), F.coalesce(large, F.lit(0)).alias("large"))


def sizes_in(aggregated: Row) -> Sizes:
    """Return the value of a `sizes_column`."""
    return Sizes(aggregated.largest, aggregated.large)


def rows_per_batch(sizes: Sizes) -> int:
    """Return how many rows one Arrow batch may have: at least 1, and few enough for twice `MAX_BATCH_BYTES`."""
    if sizes.large_bytes <= MAX_BATCH_BYTES:
        return MAX_BATCH_ROWS
    return max(1, min(MAX_BATCH_ROWS, MAX_BATCH_BYTES // sizes.largest_bytes))


@contextmanager
def batches_within_memory(frame: DataFrame, sizes: Sizes) -> Iterator[None]:
    """Hand the rows of this frame's session to Python in batches of `rows_per_batch` while the block runs.

    Spark counts rows and not bytes: 10,000 rows of 10 MB would be one batch. The setting is the session's own; the
    frame of a streaming batch has a session to itself. A smaller number that the user has set stays.
    """
    spark = frame.sparkSession
    before = int(get_conf(spark, _ROWS_PER_BATCH) or 0)
    rows = rows_per_batch(sizes)
    # 0 and less mean without limit
    set_conf(spark, _ROWS_PER_BATCH, str(min(rows, before) if before > 0 else rows))
    try:
        yield
    finally:
        set_conf(spark, _ROWS_PER_BATCH, str(before))


def merge_small_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of `MAX_BATCH_ROWS` or `MAX_BATCH_BYTES` at least, but for the last.

    Where large rows make the batches of a frame few-rowed, most of them are small, and work has a price per batch.
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + len(batch), size + batch.nbytes
        if rows >= MAX_BATCH_ROWS or size >= MAX_BATCH_BYTES:
            yield _one(waiting)
            waiting, rows, size = [], 0, 0
    if rows:
        yield _one(waiting)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (together,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return together
