"""Classic Spark alone: its JVM, which this process starts and ends, and tuning that Spark Connect does not offer.

The only file of the product that may name the JVM, the Spark context or an RDD (tests/unit/test_architecture.py). Over
Spark Connect each function here does nothing, or is not called.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

Part = TypeVar("Part")
Result = TypeVar("Result")

# what PySpark raises; a failure of the JVM that it does not know comes as py4j's
SPARK_ERRORS = (PySparkException, Py4JJavaError)

# the property of a thread that says which of FAIR scheduling's pools its jobs go to
_POOL = "spark.scheduler.pool"


def is_classic(spark: SparkSession | StreamingQuery) -> bool:
    """Return whether the JVM of a session or query is this process's own, and not behind Spark Connect."""
    return not type(spark).__module__.startswith("pyspark.sql.connect.")


def has_context() -> bool:
    """Return whether this process has a classic session."""
    return SparkContext._active_spark_context is not None


def launch(conf: dict[str, str], log: Path) -> SparkSession:
    """Return a new session in a new JVM, whose output goes to the file; raises what PySpark raises."""
    given = SparkConf(loadDefaults=False).setAll(list(conf.items()))
    with log.open("ab") as out:
        gateway = launch_gateway(given, popen_kwargs={"stdout": out, "stderr": out})  # type: ignore[no-untyped-call]
        return SparkSession(SparkContext(conf=given, gateway=gateway))


def stop(spark: SparkSession) -> None:
    """Stop a session, and its JVM where this process started it; a second call does nothing."""
    gateway = spark.sparkContext._gateway
    spark.stop()
    # below spark-submit the JVM was there before us
    if gateway is not None and gateway.proc is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
        SparkContext._gateway = SparkContext._jvm = None


def choose_pool(spark: SparkSession, name: str) -> None:
    """Send this thread's jobs to a FAIR pool of their own; over Spark Connect a server has one pool for a session."""
    if is_classic(spark):
        spark.sparkContext.setLocalProperty(_POOL, name)


def run_by_rdd(
    spark: SparkSession, parts: Sequence[Part], run: Callable[[Iterator[Part]], Iterator[Result]]
) -> list[Result]:
    """Return what the function yields of all parts, a task each: 70 to 100 ms sooner than by a DataFrame."""
    rows = spark.sparkContext.parallelize(parts, len(parts))
    found: list[Result] = rows.mapPartitions(run).collect()  # type: ignore[arg-type]
    return found


def has_class(spark: SparkSession, name: str) -> bool:
    """Return whether the class is on the JVM's class path."""
    jvm: Any = spark.sparkContext._jvm
    try:
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        jvm.java.lang.Class.forName(name, False, loader)
    except Exception:  # py4j wraps ClassNotFoundException
        return False
    return True


def progress_since(query: Any, batch_id: int) -> list[str]:
    """Return what a query says of itself since this batch, oldest first, as JSON; each batch once or more."""
    if is_classic(query):
        # PySpark would make each one of a hundred calls
        kept = query._jsq.recentProgress()
        found = itertools.takewhile(lambda progress: progress.batchId() > batch_id, reversed(kept))
        return [progress.json() for progress in found][::-1]
    return [progress.json for progress in query.recentProgress if progress.batchId > batch_id]


def default_parallelism(spark: SparkSession) -> int | None:
    """Return how many tasks run at the same time, as far as Spark says it."""
    return spark.sparkContext.defaultParallelism if is_classic(spark) else None


def map_in_arrow_unchecked(frame: DataFrame, function: Any, schema: StructType) -> DataFrame:
    """Return the frame of `mapInArrow` before Spark 3.5, with a schema that only its JVM accepts.

    The JVM gets the schema, and the Python worker, which repeats PySpark's check, an empty one.
    """
    from pyspark.rdd import PythonEvalType
    from pyspark.sql.column import _to_java_column, _to_seq  # type: ignore[attr-defined]
    from pyspark.sql.udf import _wrap_function

    context = frame.sparkSession.sparkContext
    jvm: Any = context._jvm
    evaluation = PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    wrapped = _wrap_function(context, function, StructType([]))
    declared = frame.sparkSession._jsparkSession.parseDataType(schema.json())
    udf = getattr(jvm, "org.apache.spark.sql.execution.python.UserDefinedPythonFunction")(
        "map_in_arrow", wrapped, declared, evaluation, True
    )
    columns = _to_seq(context, [frame[f"`{name}`"] for name in frame.columns], _to_java_column)
    return DataFrame(frame._jdf.pythonMapInArrow(udf.apply(columns).expr()), frame.sparkSession)
