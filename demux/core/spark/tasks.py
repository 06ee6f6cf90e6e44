"""Python work of many tasks in one Spark job, each task with a part of its own."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructField, StructType

from demux.core.spark.classic import default_parallelism, is_classic, run_by_rdd
from demux.core.spark.map_in_arrow import Batches, in_worker, map_in_arrow

Part = TypeVar("Part")
Result = TypeVar("Result")

_RESULT = StructType([StructField("result", BinaryType())])
# more than the tasks of any cluster here: Spark makes no empty partitions
_ASKED_ROWS = 100_000


def run_tasks_over(
    spark: SparkSession, parts: Sequence[Part], work: Callable[[Part], Iterable[Result]]
) -> list[Result]:
    """Return what the work yields of all parts, in their order; one Spark job with a task for each part.

    Parts, results and what the work refers to travel by value; workers import this package as they have it.

    Args:
        parts: of what is to be done; none is no job.
        work: called with one part, in a worker.
    """
    if not parts:
        return []
    if is_classic(spark):

        def run_parts(mine: Iterator[Part]) -> Iterator[Result]:
            for part in mine:
                yield from work(part)

        return run_by_rdd(spark, parts, in_worker(run_parts))
    # a worker reads its own part alone
    pickled = [pickle.dumps(part, pickle.HIGHEST_PROTOCOL) for part in parts]

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                results = [pickle.dumps(one, pickle.HIGHEST_PROTOCOL) for one in work(pickle.loads(pickled[number]))]
                yield pa.RecordBatch.from_arrays([pa.array(results, pa.binary())], names=["result"])

    rows = map_in_arrow(spark.range(0, len(parts), 1, len(parts)), run, _RESULT).collect()
    return [pickle.loads(row.result) for row in rows]


@lru_cache(maxsize=1)
def parallel_tasks(spark: SparkSession) -> int:
    """Return how many tasks run at the same time; asked for once in a session, over Spark Connect by a small job."""
    return default_parallelism(spark) or _partitions(spark)


def _partitions(spark: SparkSession) -> int:
    found: Any = spark.range(_ASKED_ROWS).select(F.spark_partition_id()).distinct().count()
    return int(found)
