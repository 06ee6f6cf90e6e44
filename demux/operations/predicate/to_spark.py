"""A fitted predicate as a Spark column: built of functions, so that nothing of it is ever read as SQL. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from demux.core.columns.types import Primitive
from demux.core.names import quoted
from demux.operations.predicate.ast import (
    AllOf,
    AnyOf,
    Comparison,
    Constant,
    InList,
    IsNull,
    Like,
    Literal,
    Not,
    Operator,
    Path,
    Predicate,
)
from demux.operations.predicate.evaluate import constant

# 20 digits before the point, and 15 behind it, as `parsing` lets pass
_EXACT = "decimal(35,15)"


def to_column(predicate: Predicate) -> SparkColumn:
    """Return the column that is TRUE, FALSE or NULL, as `demux.operations.predicate.evaluate` says it of each row."""
    match predicate:
        case Constant(value):
            return _boolean(value)
        case Not(inner):
            return ~to_column(inner)
        case AllOf(parts):
            return _joined([to_column(part) for part in parts], lambda one, other: one & other)
        case AnyOf(parts):
            return _joined([to_column(part) for part in parts], lambda one, other: one | other)
        case Comparison(Path() as path, operator, literal):
            return _compared(_column(path), operator, _literal(literal, path))
        case InList(Path() as path, literals):
            same = [_compared(_column(path), Operator.EQUAL, _literal(literal, path)) for literal in literals]
            return _joined(same, lambda one, other: one | other)
        case Like(Path() as path, pattern):
            return _boolean(None) if pattern is None else _column(path).like(pattern)
        case IsNull(Path() as path):
            return _column(path).isNull()
        case _:
            return _boolean(constant(predicate))


def _joined(parts: Sequence[SparkColumn], join: Callable[[SparkColumn, SparkColumn], SparkColumn]) -> SparkColumn:
    """Return all parts as one; as a tree, as a chain of a thousand is too deep for Spark."""
    while len(parts) > 1:
        pairs = [parts[at : at + 2] for at in range(0, len(parts), 2)]
        parts = [join(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]


def _column(path: Path) -> SparkColumn:
    found = F.col(".".join(map(quoted, path.names)))
    is_whole = path.type in (Primitive.INT, Primitive.BIGINT, Primitive.DECIMAL_20_0)
    return found.cast(_EXACT) if is_whole else found


def _literal(literal: Literal, path: Path) -> SparkColumn:
    value = literal.value
    match path.type:
        case _ if value is None:
            return F.lit(None)
        case Primitive.INT | Primitive.BIGINT | Primitive.DECIMAL_20_0:
            # as text: PySpark makes a decimal of its own digits
            return F.lit(f"{value:f}" if isinstance(value, Decimal) else str(value)).cast(_EXACT)
        case Primitive.TIMESTAMP:
            assert isinstance(value, int)
            # PySpark would take a time before 1582 for one of another calendar
            return F.lit(str(Decimal(value).scaleb(-6))).cast("decimal(26,6)").cast("timestamp")
        case Primitive.FLOAT:
            return F.lit(value).cast("float")
        case _:
            return F.lit(value)


def _compared(column: SparkColumn, operator: Operator, literal: SparkColumn) -> SparkColumn:
    match operator:
        case Operator.EQUAL:
            return column == literal
        case Operator.UNEQUAL:
            return column != literal
        case Operator.LESS:
            return column < literal
        case Operator.AT_MOST:
            return column <= literal
        case Operator.GREATER:
            return column > literal
        case Operator.AT_LEAST:
            return column >= literal


def _boolean(value: bool | None) -> SparkColumn:
    return F.lit(value).cast("boolean")
