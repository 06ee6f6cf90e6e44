"""The one Spark session of a pytest process, and which lane it is; `tests/spark` and `tests/flow` both use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

from demux.settings import SparkSettings
from demux.spark import SHORT_LIVED, session, stop


def lane_of_spark() -> str:
    """Return `current` (Spark 4) or `oldest` (Spark 3)."""
    return "current" if pyspark.__version__.startswith("4.") else "oldest"


@contextmanager
def one_session(logs: Path) -> Iterator[SparkSession]:
    """Hold the process's session while the block runs; who comes second shares the first one's."""
    shared = SparkContext._active_spark_context is not None
    spark = session(SparkSettings(master="local[2]", conf=SHORT_LIVED), logs)
    try:
        yield spark
    finally:
        if not shared:
            stop(spark)
