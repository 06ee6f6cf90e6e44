"""What a fitted predicate says of one row, in SQL's three-valued logic, also where some values are not known. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import Enum
from functools import lru_cache, reduce
from itertools import product
from math import isnan
from typing import Any

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


class UnknownValue(Enum):
    """The placeholder of a value that could not be read."""

    UNKNOWN = "unknown"


UNKNOWN = UnknownValue.UNKNOWN
# values as `terms.Value` has them once a predicate is fitted
Values = Callable[[Path], Value | UnknownValue]
# what a predicate may be of a row; None is NULL
Outcomes = frozenset[bool | None]

_ANY: Outcomes = frozenset({True, False, None})
_NULL: Outcomes = frozenset({None})


def outcomes(predicate: Predicate, values: Values) -> Outcomes:
    """Return all that the predicate may be: one outcome where all values that matter are known.

    Unknown values are taken for independent of each other, so there may be outcomes that no row has.
    """
    match predicate:
        case Constant(value):
            return frozenset({value})
        case Not(inner):
            return frozenset(None if one is None else not one for one in outcomes(inner, values))
        case AllOf(parts):
            return _combined((outcomes(part, values) for part in parts), decisive=False)
        case AnyOf(parts):
            return _combined((outcomes(part, values) for part in parts), decisive=True)
        case IsNull(operand):
            known = _value(operand, values)
            return frozenset({True, False}) if known is UNKNOWN else frozenset({known is None})
        case Comparison(operand, operator, literal, sort):
            return _compared(_value(operand, values), lambda value: _holds(operator, value, literal.value, sort))
        case InList(operand, literals, sort):
            return _compared(_value(operand, values), lambda value: _is_among(value, literals, sort))
        case Like(operand, pattern):
            return _compared(_value(operand, values), lambda value: _is_like(value, pattern))


def constant(predicate: Predicate) -> bool | None:
    """Return what a fitted predicate without columns is."""
    (found,) = outcomes(predicate, lambda _: None)
    return found


def _compared(value: Value | UnknownValue, holds: Callable[[Any], bool | None]) -> Outcomes:
    if value is UNKNOWN:
        return _ANY
    return _NULL if value is None else frozenset({holds(value)})


def _value(operand: Operand, values: Values) -> Value | UnknownValue:
    return operand.value if isinstance(operand, Literal) else values(operand)


def _combined(parts: Iterable[Outcomes], decisive: bool) -> Outcomes:
    """Return what AND (decisive: FALSE) or OR (decisive: TRUE) of independent parts may be."""

    def both(one: bool | None, other: bool | None) -> bool | None:
        if decisive in (one, other):
            return decisive
        return None if None in (one, other) else not decisive

    def of_two(one: Outcomes, other: Outcomes) -> Outcomes:
        return frozenset(both(left, right) for left, right in product(one, other))

    return reduce(of_two, parts, frozenset({not decisive}))


def _is_among(value: Value, literals: tuple[Literal, ...], sort: OperandType) -> bool | None:
    found = {_holds(Operator.EQUAL, value, literal.value, sort) for literal in literals}
    return True if True in found else None if None in found else False


def _holds(operator: Operator, value: Value, other: Value, sort: OperandType) -> bool | None:
    if value is None or other is None:
        return None
    left, right = _ordered(value, sort), _ordered(other, sort)
    match operator:
        case Operator.EQUAL:
            return bool(left == right)
        case Operator.UNEQUAL:
            return bool(left != right)
        case Operator.LESS:
            return bool(left < right)
        case Operator.AT_MOST:
            return bool(left <= right)
        case Operator.GREATER:
            return bool(left > right)
        case Operator.AT_LEAST:
            return bool(left >= right)


def _ordered(value: Any, sort: OperandType) -> Any:
    """Return a key that sorts values in Spark's order: texts by their bytes, NaN equal to itself and above all."""
    match sort:
        case OperandType.TEXT:
            return value.encode("utf-8")
        case OperandType.FLOATING:
            return (True, 0.0) if isnan(value) else (False, value)
        case _:
            return value


def _is_like(value: Any, pattern: str | None) -> bool | None:
    return None if pattern is None else _expression(pattern).fullmatch(value) is not None


@lru_cache(maxsize=64)
def _expression(pattern: str) -> re.Pattern[str]:
    parts: list[str] = []
    escaped = False
    for character in pattern:
        if escaped or character not in "%_\\":
            parts.append(re.escape(character))
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            parts.append(".*" if character == "%" else ".")
    return re.compile("".join(parts), re.DOTALL)
