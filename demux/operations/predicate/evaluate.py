"""Evaluates a bound predicate on rows, in SQL's three-valued logic, also where values are unknown. Pure.

The one evaluation: of silver's columns, of what can be read of payloads, here and in Spark's tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from demux.core.columns.arrow import as_type
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
    Operand,
    OperandType,
    Operator,
    Path,
    Predicate,
    Value,
)
from demux.operations.predicate.binder import sort_of

# 20 digits before the point, and 15 behind it, as `parser` lets pass
_EXACT = pa.decimal128(38, 15)
_COMPARABLE = {
    OperandType.TEXT: pa.string(),
    OperandType.NUMBER: _EXACT,
    OperandType.FLOATING: pa.float64(),
    OperandType.BOOLEAN: pa.bool_(),
    # microseconds since 1970: Python has not all years
    OperandType.TIME: pa.int64(),
}
_COMPARE = {
    Operator.EQUAL: pc.equal,
    Operator.UNEQUAL: pc.not_equal,
    Operator.LESS: pc.less,
    Operator.AT_MOST: pc.less_equal,
    Operator.GREATER: pc.greater,
    Operator.AT_LEAST: pc.greater_equal,
}


@dataclass(frozen=True, slots=True)
class RowValues:
    """The values of a path in some rows.

    Attributes:
        values: as `comparable` returns them.
        unknown: which of them could not be read, without NULLs; None: all are known.
    """

    values: pa.Array
    unknown: pa.BooleanArray | None = None


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The possible values of a predicate by row: exactly one where all values that matter are known; without NULLs."""

    true: pa.BooleanArray
    false: pa.BooleanArray
    null: pa.BooleanArray


def evaluate(predicate: Predicate, rows: int, values: Callable[[Path], RowValues]) -> Outcomes:
    """Return all that the predicate may be of each row.

    Unknown values are taken for independent of each other, so there may be outcomes that no row has.
    """
    match predicate:
        case Constant(value):
            return _known(pa.repeat(pa.scalar(value, pa.bool_()), rows))
        case Not(inner):
            return _inverted(evaluate(inner, rows, values))
        case AllOf(parts):
            return reduce(_both, (evaluate(part, rows, values) for part in parts))
        case AnyOf(parts):
            return _inverted(reduce(_both, (_inverted(evaluate(part, rows, values)) for part in parts)))
        case IsNull(operand):
            found = _values(operand, rows, values)
            return _outcomes(found.values.is_null(), found.unknown, unknown_may_be_null=False)
        case Comparison(operand, operator, literal, sort):
            found = _values(operand, rows, values)
            return _outcomes(_compared(found.values, operator, literal, sort), found.unknown)
        case InList(operand, literals, sort):
            found = _values(operand, rows, values)
            return _outcomes(_is_among(found.values, literals, sort), found.unknown)
        case Like(operand, pattern):
            found = _values(operand, rows, values)
            return _outcomes(_is_like(found.values, pattern), found.unknown)


def matching(predicate: Predicate, rows: pa.RecordBatch) -> pa.BooleanArray:
    """Return of which rows, in the columns that it is fitted to, the predicate is TRUE; without NULLs."""

    def values(path: Path) -> RowValues:
        column = rows.column(path.names[0])
        for name in path.names[1:]:
            column = pc.struct_field(column, [column.type.get_field_index(name)])
        return RowValues(comparable(column, sort_of(path)))

    return evaluate(predicate, len(rows), values).true


def comparable(column: pa.Array, sort: OperandType) -> pa.Array:
    """Return the values of a column in the one type in which values of this sort are compared."""
    if sort is OperandType.NOTHING:
        return column
    found = as_type(column, _COMPARABLE[sort])
    # zeros are equal
    return pc.add(found, 0.0) if sort is OperandType.FLOATING else found


def array_of(values: Iterable[Value], sort: OperandType) -> pa.Array:
    """Return values, as a fitted predicate has them, as `comparable` returns those of a column."""
    if sort is OperandType.NOTHING:
        return pa.array([None if value is None else True for value in values], pa.bool_())
    return comparable(pa.array(list(values), _COMPARABLE[sort]), sort)


def _known(held: pa.BooleanArray) -> Outcomes:
    return Outcomes(pc.fill_null(held, False), pc.fill_null(pc.invert(held), False), held.is_null())


def _outcomes(held: pa.BooleanArray, unknown: pa.BooleanArray | None, *, unknown_may_be_null: bool = True) -> Outcomes:
    found = _known(held)
    if unknown is None:
        return found
    null = pc.or_(found.null, unknown) if unknown_may_be_null else found.null
    return Outcomes(pc.or_(found.true, unknown), pc.or_(found.false, unknown), null)


def _inverted(found: Outcomes) -> Outcomes:
    return Outcomes(found.false, found.true, found.null)


def _both(one: Outcomes, other: Outcomes) -> Outcomes:
    """Return the possible values of AND of independent parts."""
    not_false = pc.or_(other.true, other.null)
    null = pc.or_(pc.and_(one.null, not_false), pc.and_(one.true, other.null))
    return Outcomes(pc.and_(one.true, other.true), pc.or_(one.false, other.false), null)


def _values(operand: Operand, rows: int, values: Callable[[Path], RowValues]) -> RowValues:
    if isinstance(operand, Path):
        return values(operand)
    (value,) = array_of([operand.value], sort_of(operand))
    return RowValues(pa.repeat(value, rows))


def _scalar(literal: Literal, sort: OperandType) -> pa.Scalar:
    return array_of([literal.value], sort)[0]


def _compared(values: pa.Array, operator: Operator, literal: Literal, sort: OperandType) -> pa.BooleanArray:
    if literal.value is None or sort is OperandType.NOTHING:
        return pa.nulls(len(values), pa.bool_())
    held = _COMPARE[operator](values, _scalar(literal, sort))
    if sort is OperandType.FLOATING and operator in (Operator.GREATER, Operator.AT_LEAST):
        # as Spark has it, NaN is above all
        return pc.or_(held, pc.is_nan(values))
    return held


def _is_among(values: pa.Array, literals: tuple[Literal, ...], sort: OperandType) -> pa.BooleanArray:
    known = [literal.value for literal in literals if literal.value is not None]
    if not known or sort is OperandType.NOTHING:
        return pa.nulls(len(values), pa.bool_())
    held = pc.is_in(values, array_of(known, sort))
    # where one of the literals is NULL, no value is surely none of them
    is_decided = held if len(known) < len(literals) else values.is_valid()
    return pc.if_else(pc.and_(is_decided, values.is_valid()), held, pa.scalar(None, pa.bool_()))


def _is_like(values: pa.Array, pattern: str | None) -> pa.BooleanArray:
    if pattern is None or not pa.types.is_string(values.type):
        return pa.nulls(len(values), pa.bool_())
    return pc.match_substring_regex(values, _expression(pattern))


def _expression(pattern: str) -> str:
    """Return the pattern as a regular expression of RE2."""
    parts: list[str] = []
    escaped = False
    for character in pattern:
        if escaped or character not in "%_\\":
            parts.append(f"\\x{{{ord(character):x}}}")
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            parts.append(".*" if character == "%" else ".")
    return rf"\A(?s:{''.join(parts)})\z"
