"""The one Spark session of a pytest process, and which lane it is; `tests/spark` and `tests/flow` both use it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

from demux.settings import SparkSettings
from demux.spark import SHORT_LIVED, session, stop

# a test's queries see few rows: to compile code for each takes longer than to interpret it
INTERPRETED: Mapping[str, str] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

# with room from the beginning it collects less garbage
_JVM: Mapping[str, str] = {name: f"{options} -Xms1g" for name, options in SHORT_LIVED.items()}


def lane_of_spark() -> str:
    """Return `current` (Spark 4) or `oldest` (Spark 3)."""
    return "current" if pyspark.__version__.startswith("4.") else "oldest"


@contextmanager
def one_session(logs: Path, conf: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Hold the process's session while the block runs; who comes second shares the first one's, and its `conf`."""
    shared = SparkContext._active_spark_context is not None
    spark = session(SparkSettings(master="local[2]", conf={**_JVM, **(conf or {})}), logs)
    try:
        yield spark
    finally:
        if not shared:
            stop(spark)
