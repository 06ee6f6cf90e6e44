"""The one Spark session of a pytest process, and which lane it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from demux.core.settings.settings import SparkSettings
from demux.core.storage.access import StoreAccess
from demux.core.streaming.session import SHORT_LIVED, session, stop

# a test's queries see few rows: to compile code for each takes longer than to interpret it
INTERPRETED: Mapping[str, str] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

# Spark's defaults
_COMPILED: Mapping[str, str] = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}

# with room from the beginning it collects less garbage
_JVM: Mapping[str, str] = {name: f"{options} -Xms1g" for name, options in SHORT_LIVED.items()}


def lane_of_spark() -> str:
    """Return `current` (Spark 4) or `oldest` (Spark 3)."""
    return "current" if pyspark.__version__.startswith("4.") else "oldest"


@contextmanager
def one_session(logs: Path) -> Iterator[SparkSession]:
    """Hold the process's session while the block runs."""
    # with the jars of S3; a test of a store says which server it is
    spark = session(SparkSettings(master="local[2]", conf={**_JVM, **INTERPRETED}), logs, StoreAccess())
    try:
        yield spark
    finally:
        stop(spark)


@contextmanager
def compiled(spark: SparkSession) -> Iterator[None]:
    """Compile plans while the block runs."""
    _set(spark, _COMPILED)
    try:
        yield
    finally:
        _set(spark, INTERPRETED)


def _set(spark: SparkSession, conf: Mapping[str, str]) -> None:
    for name, value in conf.items():
        spark.conf.set(name, value)
