"""A predicate as a Spark column says of every row what it says in Python, whatever is in the texts of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from demux.core.columns.spark import spark_struct
from demux.core.columns.types import Column, Primitive, Struct
from demux.operations.predicate.ast import Value
from demux.operations.predicate.binder import fit
from demux.operations.predicate.evaluate import outcomes
from demux.operations.predicate.parser import parse
from demux.operations.predicate.to_spark import to_column

PLAYER = Struct((Column("name", Primitive.STRING, 1), Column("it's `odd`.", Primitive.STRING, 2)))
COLUMNS = Struct(
    (
        Column("t", Primitive.STRING, 1),
        Column("n", Primitive.BIGINT, 2),
        Column("i", Primitive.INT, 3),
        Column("big", Primitive.DECIMAL_20_0, 4),
        Column("f", Primitive.DOUBLE, 5),
        Column("r", Primitive.FLOAT, 6),
        Column("b", Primitive.BOOLEAN, 7),
        Column("at", Primitive.TIMESTAMP, 8),
        Column("raw", Primitive.BINARY, 9),
        Column("player", PLAYER, 10),
    )
)
NAN, INFINITE = float("nan"), float("inf")
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
AT = datetime(2026, 1, 31, 12, 0, 0, 1, timezone.utc)
INJECTED = "x' OR '1'='1"
# t, n, i, big, f, r, b, at, raw, player
ROWS: list[tuple[Any, ...]] = [
    ("ann", 5, 5, Decimal(5), 0.1, 0.5, True, AT, b"x", ("ann", "odd")),
    (
        "Ann",
        -5,
        2**31 - 1,
        Decimal(2**64 - 1),
        -0.0,
        0.10000000149011612,
        False,
        AT.replace(microsecond=0),
        b"",
        (None, "%"),
    ),
    (INJECTED, 2**53 + 1, 0, Decimal(2**53 + 1), NAN, NAN, None, AT.replace(year=1500), None, None),
    ("a%b_\\", 2**63 - 1, None, None, INFINITE, -INFINITE, True, None, None, (INJECTED, None)),
    (
        "\U0001f600\n",
        -(2**63),
        -1,
        Decimal(0),
        1e15,
        0.0,
        False,
        AT.replace(year=9999),
        b"x",
        ("\uffff", "`; DROP TABLE x"),
    ),
    (None, None, None, None, None, None, None, None, None, None),
]
PREDICATES = (
    "t = 'ann'", "t <> 'ann'", "t > 'ann'", "t < '\uffff'", "t >= '\U0001f600'", "t = 'x'' OR ''1''=''1'", "t = NULL",
    "t IN ('ann', NULL)", "t NOT IN ('ann', 'Ann')", "t NOT IN ('ann', NULL)", "t BETWEEN 'a' AND 'b'", "t IS NULL",
    r"t LIKE 'a\%%'", r"t LIKE '%\\'", r"t LIKE '%\_%'", "t LIKE '_nn'", "t LIKE '%'", "t NOT LIKE 'a%'", "t LIKE NULL",
    "t LIKE '_\n'", "t LIKE ''", "n = 5.0", "n = 5.5", "n < 5.5", "n = 9007199254740993", "n = 9007199254740992",
    "n > 9223372036854775807", "n <= 9223372036854775807", "n >= -9223372036854775808", "n > 99999999999999999999",
    "i < 2147483648", "i IN (0, 5, NULL)", "big = 18446744073709551615", "big > -0.000000000000001", "f = 0.1", "f = 0",
    "f < 0", "f > 999999999999999", "f <> 0.1", "f NOT BETWEEN 0 AND 1", "r = 0.1", "r > 0", "r = 0.5", "b = TRUE",
    "b <> TRUE", "at = '2026-01-31T12:00:00.000001'", "at > '2026-01-31 12:00:00'", "at < '1582-10-15'",
    "at = '1500-01-31T12:00:00.000001'", "at >= '2026-01-31'", "raw IS NULL", "raw = NULL", "player IS NULL",
    "player.name = 'ann'", "player.`it's ``odd``.` = '`; DROP TABLE x'", "PLAYER.NAME IN ('x'' OR ''1''=''1')",
    "NOT (t = 'ann' OR n = 5) AND (b = TRUE OR b IS NULL)", "t = 'ann' OR NULL", "NOT NULL", "1 = 2 OR t = 'ann'",
    "NOT n IN (5, -5) OR player.name IS NULL AND NOT b = FALSE", " OR ".join(f"n = {one}" for one in range(-5, 600)),
)  # fmt: skip


def micros(value: Any) -> Any:
    """A time in microseconds since 1970, exactly."""
    return (value - EPOCH) // timedelta(microseconds=1) if isinstance(value, datetime) else value


def values_of(row: tuple[Any, ...]) -> Mapping[tuple[str, ...], Value]:
    """The values of a row by path."""
    found: dict[tuple[str, ...], Any] = {}
    for column, value in zip(COLUMNS, row, strict=True):
        found[(column.name,)] = value
        if isinstance(column.type, Struct):
            inside = (None,) * len(column.type.columns) if value is None else value
            found |= {(column.name, one.name): each for one, each in zip(column.type, inside, strict=True)}
    return found


def test_spark_and_python_agree_on_every_row(spark: SparkSession) -> None:
    fitted = [fit(parse(text), COLUMNS) for text in PREDICATES]
    # PySpark would take old times for those of another calendar
    numbered = Struct(tuple(replace(one, type=Primitive.BIGINT) if one.name == "at" else one for one in COLUMNS))
    known = [tuple(map(micros, row)) for row in ROWS]
    frame = spark.createDataFrame(known, spark_struct(numbered)).coalesce(1)
    frame = frame.withColumn("at", F.expr("timestamp_micros(at)"))
    said = frame.select(*(to_column(one).alias(str(at)) for at, one in enumerate(fitted))).collect()
    for found, values in zip(said, map(values_of, known), strict=True):
        expected = [outcomes(one, lambda path, values=values: values[path.names]) for one in fitted]  # type: ignore[misc]
        both = zip(PREDICATES, found, expected, strict=True)
        assert [(text, one) for text, one, other in both if {one} != other] == [], values
