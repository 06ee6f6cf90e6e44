"""Parses a predicate with sqlglot; nodes that are not listed here are refused. Pure."""

from __future__ import annotations

import logging
from decimal import Decimal, InvalidOperation

import sqlglot
from sqlglot import exp, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError

from demux.core.errors import PredicateInvalid
from demux.core.text import printable
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
    Operator,
    Path,
    Predicate,
)

# it would repeat the predicate, which may be personal data
logging.getLogger("sqlglot").disabled = True

_MOST_CHARACTERS = 10_000
# more than any name of a column, or number that one holds
_MOST_DIGITS = 20
_MOST_FRACTION = 15
_REMEDY = (
    "Allowed are columns (player.name, odd names between backticks), texts between single quotes, numbers, TRUE, FALSE "
    "and NULL; =, <>, <, <=, >, >=, IN, BETWEEN, LIKE, IS NULL; AND, OR, NOT and parentheses."
)
_OPERATORS: dict[type[exp.Expr], Operator] = {
    exp.EQ: Operator.EQUAL,
    exp.NEQ: Operator.UNEQUAL,
    exp.LT: Operator.LESS,
    exp.LTE: Operator.AT_MOST,
    exp.GT: Operator.GREATER,
    exp.GTE: Operator.AT_LEAST,
}


class _QuotedTexts(Dialect):
    """Texts between single quotes, names between backticks, both doubled inside; nothing else is special in them."""

    class Tokenizer(tokens.Tokenizer):
        QUOTES = ["'"]  # noqa: RUF012 - sqlglot's
        IDENTIFIERS = ["`"]  # noqa: RUF012 - sqlglot's
        STRING_ESCAPES = ["'"]  # noqa: RUF012 - sqlglot's
        COMMENTS = []  # noqa: RUF012 - sqlglot's


def parse(text: str) -> Predicate:
    """Return the predicate of a text.

    Raises:
        PredicateInvalid: it is no predicate, or has something that is not allowed; with its place.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise PredicateInvalid(
            f"The predicate has no UTF-8 text at its character {error.start + 1}.", _REMEDY, at=error.start + 1
        ) from None
    if len(text) > _MOST_CHARACTERS:
        raise PredicateInvalid(
            f"The predicate has {len(text):,} characters; at most {_MOST_CHARACTERS:,} are allowed.",
            "Forget some of it after the other.",
        )
    try:
        return _condition(sqlglot.parse_one(text, into=exp.Condition, dialect=_QuotedTexts))
    except ParseError as error:
        raise _unreadable(error) from None
    except TokenError:
        raise PredicateInvalid(
            "A quote of the predicate does not end, or it has a character that is not allowed.", _REMEDY
        ) from None
    except RecursionError:
        raise PredicateInvalid("The predicate is nested too deep.", _REMEDY) from None


def _unreadable(error: ParseError) -> PredicateInvalid:
    found = error.errors[0] if error.errors else {}
    line, end, word = found.get("line") or 1, found.get("col") or 1, found.get("highlight") or ""
    begin = max(1, end + 1 - max(1, len(word)))
    return PredicateInvalid(
        f"The predicate cannot be read from its line {line}, character {begin} on.", _REMEDY, line=line, at=begin
    )


def _condition(node: exp.Expr) -> Predicate:
    """Return the predicate of a node; raises as `parse`."""
    match node:
        case exp.Paren():
            return _condition(_only(node, "this").this)
        case exp.Not():
            return Not(_condition(_only(node, "this").this))
        case exp.And():
            return AllOf(tuple(map(_condition, _flat(node))))
        case exp.Or():
            return AnyOf(tuple(map(_condition, _flat(node))))
        case exp.Boolean():
            return Constant(bool(node.this))
        case exp.Null():
            return Constant(None)
        case exp.Is() if isinstance(node.expression, exp.Null):
            return IsNull(_operand(_only(node, "this", "expression").this))
        case exp.In() if node.expressions:
            return InList(_operand(_only(node, "this", "expressions").this), tuple(map(_literal, node.expressions)))
        case exp.Between():
            _only(node, "this", "low", "high")
            operand, low, high = _operand(node.this), _literal(node.args["low"]), _literal(node.args["high"])
            parts = ((Operator.AT_LEAST, low), (Operator.AT_MOST, high))
            return AllOf(tuple(Comparison(operand, operator, bound) for operator, bound in parts))
        case exp.Like():
            return _like(node)
        case _ if type(node) in _OPERATORS:
            return _comparison(_only(node, "this", "expression"), _OPERATORS[type(node)])
        case _:
            raise _refused(node)


def _flat(node: exp.Connector) -> list[exp.Expr]:
    """Return the operands of a chain of ANDs or ORs; not by recursion, as it may be long."""
    found: list[exp.Expr] = []
    waiting: list[exp.Expr] = [node]
    while waiting:
        one = waiting.pop()
        if type(one) is type(node):
            _only(one, "this", "expression")
            waiting += [one.expression, one.this]
        else:
            found.append(one)
    return found


def _comparison(node: exp.Expr, operator: Operator) -> Comparison:
    left, right = _operand(node.this), _operand(node.expression)
    match left, right:
        case _, Literal():
            return Comparison(left, operator, right)
        case Literal(), Path():
            return Comparison(right, operator.flipped, left)
        case _:
            raise PredicateInvalid(
                f"The predicate compares two columns{_place(right.at)}.", "Compare a column with a value.", at=right.at
            )


def _like(node: exp.Like) -> Predicate:
    _only(node, "this", "expression", "negate")
    pattern = _literal(node.expression)
    if not isinstance(pattern.value, str | None):
        raise _wrong("LIKE takes a text between single quotes", pattern.at)
    if pattern.value is not None and not _is_pattern(pattern.value):
        raise _wrong(r"in a pattern, \ may only precede %, _ or \ ", pattern.at)
    found = Like(_operand(node.this), pattern.value)
    return Not(found) if node.args.get("negate") else found


def _is_pattern(pattern: str) -> bool:
    escaped = False
    for character in pattern:
        if escaped and character not in "%_\\":
            return False
        escaped = character == "\\" and not escaped
    return not escaped


def _operand(node: exp.Expr) -> Operand:
    match node:
        case exp.Paren():
            return _operand(_only(node, "this").this)
        case exp.Column() | exp.Dot():
            return Path(tuple(part for part, _ in _parts(node)), _at(node))
        case _:
            return _literal(node)


def _parts(node: exp.Expr) -> list[tuple[str, int]]:
    """Return the names of a path from the left, each with its place."""
    match node:
        case exp.Dot():
            return [*_parts(_only(node, "this", "expression").this), *_parts(node.expression)]
        case exp.Column():
            _only(node, "this", "table", "db", "catalog")
            return [
                one
                for name in ("catalog", "db", "table", "this")
                if (inner := node.args.get(name)) is not None
                for one in _parts(inner)
            ]
        case exp.Identifier(this=str() as name) if name:
            return [(name, _at(node))]
        case _:
            raise _refused(node)


def _literal(node: exp.Expr) -> Literal:
    match node:
        case exp.Paren():
            return _literal(_only(node, "this").this)
        case exp.Null():
            return Literal(None, _at(node))
        case exp.Boolean():
            return Literal(bool(node.this), _at(node))
        case exp.Literal() if node.is_string:
            return Literal(str(node.this), _at(node))
        case exp.Literal():
            return Literal(_number(str(node.this), _at(node)), _at(node))
        case exp.Neg(this=exp.Literal() as inner) if not inner.is_string:
            return Literal(-_number(str(inner.this), _at(inner)), _at(inner))
        case _:
            raise _refused(node)


def _number(text: str, at: int) -> Decimal:
    try:
        found = Decimal(text)
    except InvalidOperation:
        raise _wrong("there is no such number", at) from None
    # as a column may hold it, exactly
    digits = max(0, found.adjusted() + 1)
    fraction = max(0, -int(found.normalize().as_tuple().exponent)) if found else 0
    if digits > _MOST_DIGITS or fraction > _MOST_FRACTION:
        raise _wrong(f"a number has at most {_MOST_DIGITS} digits, and {_MOST_FRACTION} of its fraction", at)
    return found


def _only(node: exp.Expr, *known: str) -> exp.Expr:
    """Return the node if it has these arguments only: the parser knows more clauses than we do."""
    others = [name for name, value in node.args.items() if name not in known and value not in (None, False, [])]
    if others:
        raise _refused(node)
    return node


def _refused(node: exp.Expr) -> PredicateInvalid:
    at = _at(node)
    kind = printable(node.key.upper().replace("_", " "))
    return PredicateInvalid(f"The predicate has something that is not allowed ({kind}){_place(at)}.", _REMEDY, at=at)


def _wrong(what: str, at: int) -> PredicateInvalid:
    return PredicateInvalid(f"The predicate cannot be meant{_place(at)}: {what.rstrip()}.", _REMEDY, at=at)


def _at(node: exp.Expr) -> int:
    """Return where a node begins, counted from 1; 0 where the parser does not say."""
    found: list[int] = [one.meta["start"] for one in node.walk() if one.meta.get("start") is not None]
    return min(found) + 1 if found else 0


def _place(at: int) -> str:
    return f" at its character {at}" if at else ""
