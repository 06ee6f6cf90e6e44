"""Binds a predicate to the columns of a table: names, types and values, or an error. Pure."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from difflib import get_close_matches

from demux.core.columns.types import Array, Column, ColumnType, Map, Primitive, Struct, sql_name
from demux.core.errors import PredicateInvalid
from demux.core.text import printable
from demux.core.time_expressions import time_of
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
    Path,
    Predicate,
    Value,
    paths_in,
)

_MOST_NEAR = 3
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def missing_from(predicate: Predicate, columns: Struct) -> tuple[str, ...]:
    """Return the paths that the columns have not, each once, as they were written."""
    missing = (path.text for path in paths_in(predicate) if _find_column(path, columns) is None)
    return tuple(dict.fromkeys(missing))


def near(missing: str, columns: Struct) -> tuple[str, ...]:
    """Return the paths of columns that are spelled nearly like one that is missing."""
    known = {path.lower(): path for path in _all_paths(columns, "")}
    return tuple(known[name] for name in get_close_matches(missing.lower(), known, n=_MOST_NEAR))


def fit(predicate: Predicate, columns: Struct) -> Predicate:
    """Return the predicate with the columns' own names and types, and its values as these have them.

    Raises:
        PredicateInvalid: a column is not there, or is compared with what it never can be.
    """
    match predicate:
        case Not(inner):
            return Not(fit(inner, columns))
        case AllOf(parts):
            return AllOf(tuple(fit(part, columns) for part in parts))
        case AnyOf(parts):
            return AnyOf(tuple(fit(part, columns) for part in parts))
        case Comparison(operand, operator, literal):
            fitted = _operand(operand, columns)
            return Comparison(fitted, operator, _literal(literal, fitted), sort_of(fitted))
        case InList(operand, literals):
            fitted = _operand(operand, columns)
            return InList(fitted, tuple(_literal(one, fitted) for one in literals), sort_of(fitted))
        case Like(operand, pattern):
            fitted = _operand(operand, columns)
            _require(fitted, OperandType.TEXT, "LIKE")
            return Like(fitted, pattern)
        case IsNull(operand):
            return IsNull(_operand(operand, columns))
        case Constant():
            return predicate


def sort_of(operand: Operand) -> OperandType:
    """Return how a fitted operand is compared."""
    if isinstance(operand, Path):
        assert operand.type is not None
        return sort_of_type(operand.type)
    match operand.value:
        case None:
            return OperandType.NOTHING
        case bool():
            return OperandType.BOOLEAN
        case str():
            return OperandType.TEXT
        case _:
            return OperandType.NUMBER


def sort_of_type(kind: ColumnType) -> OperandType:
    """Return how values of a column are compared."""
    match kind:
        case Primitive.STRING:
            return OperandType.TEXT
        case Primitive.BOOLEAN:
            return OperandType.BOOLEAN
        case Primitive.TIMESTAMP:
            return OperandType.TIME
        case Primitive.FLOAT | Primitive.DOUBLE:
            return OperandType.FLOATING
        case Primitive.INT | Primitive.BIGINT | Primitive.DECIMAL_20_0:
            return OperandType.NUMBER
        case _:
            return OperandType.NOTHING


@dataclass(frozen=True, slots=True)
class _BoundColumn:
    names: tuple[str, ...]
    numbers: tuple[int, ...]
    type: ColumnType


def _find_column(path: Path, columns: Struct) -> _BoundColumn | None:
    inside: ColumnType = columns
    found: list[Column] = []
    for name in path.names:
        if not isinstance(inside, Struct):
            return None
        # no two names are equal when case is ignored
        column = next((one for one in inside if one.name.lower() == name.lower()), None)
        if column is None:
            return None
        found.append(column)
        inside = column.type
    return _BoundColumn(tuple(one.name for one in found), tuple(one.number for one in found), inside)


def _operand(operand: Operand, columns: Struct) -> Operand:
    if isinstance(operand, Literal):
        return operand
    found = _find_column(operand, columns)
    if found is None:
        raise unknown_column(operand.text, near(operand.text, columns))
    return replace(operand, names=found.names, numbers=found.numbers, type=found.type)


def unknown_column(missing: str, nearest: tuple[str, ...]) -> PredicateInvalid:
    """Return the error of a column that no table has."""
    hint = f" Did you mean {' or '.join(map(printable, nearest))}?" if nearest else ""
    return PredicateInvalid(
        f"No table that is meant has the column {printable(missing)}.{hint}",
        "See `demux show GAME` for its columns; what is inside lists and maps cannot be named.",
        column=missing,
        near=nearest,
    )


def _literal(literal: Literal, operand: Operand) -> Literal:
    """Return the literal as values of the operand are; raises as `fit`."""
    if literal.value is None:
        return literal
    sort = sort_of(operand)
    if isinstance(operand, Literal) and sort is OperandType.NOTHING:
        # NULL is compared with anything
        return literal
    value = _as(literal.value, sort, operand)
    if value is None:
        raise _unfit(operand, f"compared with {_shown(literal.value)}", literal.at)
    return replace(literal, value=value)


def _as(value: Value, sort: OperandType, operand: Operand) -> Value:
    match sort, value:
        case (OperandType.TEXT, str()) | (OperandType.BOOLEAN, bool()):
            return value
        case OperandType.NUMBER, Decimal():
            return value
        case OperandType.FLOATING, Decimal():
            is_single = isinstance(operand, Path) and operand.type is Primitive.FLOAT
            return _single(float(value)) if is_single else float(value)
        case OperandType.TIME, str():
            moment = time_of(value)
            return None if moment is None else (moment - _EPOCH) // timedelta(microseconds=1)
        case _:
            return None


def _single(value: float) -> float:
    """Return the nearest number that a FLOAT has."""
    try:
        found: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return found


def _require(operand: Operand, sort: OperandType, word: str) -> None:
    if sort_of(operand) is not sort and not (isinstance(operand, Literal) and operand.value is None):
        raise _unfit(operand, f"used with {word}", operand.at)


def _unfit(operand: Operand, how: str, at: int) -> PredicateInvalid:
    what, kind = _operand_texts(operand)
    place = f" at its character {at}" if at else ""
    return PredicateInvalid(
        f"In the predicate{place}, {what} is {how}, and it is {kind}.",
        "Compare texts and times with literals in single quotes ('2026-01-31T12:00:00'), numbers with numbers, "
        "booleans with TRUE or FALSE; anything else only IS NULL.",
        at=at,
    )


def _operand_texts(operand: Operand) -> tuple[str, str]:
    if isinstance(operand, Literal):
        return "a value", _shown(operand.value)
    assert operand.type is not None
    # without what is inside, which may be long
    return f"the column {printable(operand.text)}", sql_name(operand.type).partition("<")[0]


def _shown(value: Value) -> str:
    # the value may be personal data
    match value:
        case bool():
            return OperandType.BOOLEAN.value
        case str():
            return "a text"
        case None:
            return "NULL"
        case _:
            return OperandType.NUMBER.value


def _all_paths(columns: Struct, above: str) -> list[str]:
    found: list[str] = []
    for column in columns:
        path = f"{above}{Path((column.name,)).text}"
        found.append(path)
        match column.type:
            case Struct():
                found += _all_paths(column.type, f"{path}.")
            case Array() | Map() | Primitive():
                pass
    return found
