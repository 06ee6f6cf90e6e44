"""`mapInArrow` for nested columns, on every supported Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

ArrowFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_in_arrow(frame: DataFrame, function: ArrowFunction, schema: StructType) -> DataFrame:
    """Return the frame that `DataFrame.mapInArrow` gives, also where PySpark refuses the schema.

    PySpark before 3.5 refuses nested structs and arrays of timestamps in Python, before it asks the JVM, which reads
    them well. There the JVM is told the schema, and the Python worker, which only repeats the check, an empty one.
    """
    try:
        return frame.mapInArrow(function, schema)  # type: ignore[arg-type]
    except NotImplementedError:
        return _without_python_check(frame, function, schema)


def _without_python_check(frame: DataFrame, function: ArrowFunction, schema: StructType) -> DataFrame:
    from pyspark.rdd import PythonEvalType
    from pyspark.sql.column import _to_java_column, _to_seq  # type: ignore[attr-defined]
    from pyspark.sql.udf import _wrap_function

    context = frame.sparkSession.sparkContext
    jvm: Any = context._jvm
    evaluation = PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    wrapped = _wrap_function(context, function, StructType([]))
    declared = frame.sparkSession._jsparkSession.parseDataType(schema.json())
    udf = jvm.org.apache.spark.sql.execution.python.UserDefinedPythonFunction(
        "map_in_arrow", wrapped, declared, evaluation, True
    )
    columns = _to_seq(context, [frame[f"`{name}`"] for name in frame.columns], _to_java_column)
    return DataFrame(frame._jdf.pythonMapInArrow(udf.apply(columns).expr()), frame.sparkSession)
