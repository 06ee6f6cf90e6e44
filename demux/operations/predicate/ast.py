"""The AST of predicates: a closed set of nodes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum

from demux.core.columns.types import ColumnType

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# of a literal; once it is fitted to a column: seconds of a time become microseconds since 1970, and a number that is
# compared with a floating one a float
Value = str | Decimal | float | int | bool | None


class Operator(Enum):
    """A comparison; the value is how it is written."""

    EQUAL = "="
    UNEQUAL = "<>"
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="

    @property
    def flipped(self) -> Operator:
        """The equivalent comparison with its sides exchanged."""
        match self:
            case Operator.LESS:
                return Operator.GREATER
            case Operator.AT_MOST:
                return Operator.AT_LEAST
            case Operator.GREATER:
                return Operator.LESS
            case Operator.AT_LEAST:
                return Operator.AT_MOST
            case _:
                return self


class OperandType(Enum):
    """How values are compared; the value is what people call them."""

    TEXT = "text"
    NUMBER = "a number"
    FLOATING = "a floating number"
    BOOLEAN = "a boolean"
    TIME = "a time"
    NOTHING = "only NULL or not"


@dataclass(frozen=True, slots=True)
class Path:
    """A column, or a field inside one.

    Attributes:
        names: from the column inwards; as the table has them once it is fitted.
        at: where it begins in the predicate's text, counted from 1; 0 where it is unknown.
        numbers: the columns' numbers, once it is fitted.
        type: the column's type, once it is fitted.
    """

    names: tuple[str, ...]
    at: int = field(default=0, compare=False)
    numbers: tuple[int, ...] = ()
    type: ColumnType | None = None

    @property
    def text(self) -> str:
        """The path as people write it."""
        parts = (name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`" for name in self.names)
        return ".".join(parts)


@dataclass(frozen=True, slots=True)
class Literal:
    """A value; `at` as in `Path`."""

    value: Value
    at: int = field(default=0, compare=False)


Operand = Path | Literal


@dataclass(frozen=True, slots=True)
class Comparison:
    """An operand compared with a literal."""

    operand: Operand
    operator: Operator
    literal: Literal
    sort: OperandType = OperandType.NOTHING


@dataclass(frozen=True, slots=True)
class InList:
    """Whether an operand is one of some literals (`IN`)."""

    operand: Operand
    literals: tuple[Literal, ...]
    sort: OperandType = OperandType.NOTHING


@dataclass(frozen=True, slots=True)
class Like:
    r"""Whether a text is like a pattern: `%` is any text, `_` any character, `\` takes the next one as it is."""

    operand: Operand
    pattern: str | None


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether an operand is NULL."""

    operand: Operand


@dataclass(frozen=True, slots=True)
class Constant:
    """Always the same; None is NULL."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite; NULL stays NULL."""

    inner: Predicate


@dataclass(frozen=True, slots=True)
class AllOf:
    """Whether all are true (`AND`)."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Whether one is true (`OR`)."""

    parts: tuple[Predicate, ...]


Predicate = Comparison | InList | Like | IsNull | Constant | Not | AllOf | AnyOf


def paths_in(predicate: Predicate) -> Iterator[Path]:
    """Yield the paths that a predicate names, in order, each as often as it does."""
    match predicate:
        case Not(inner):
            yield from paths_in(inner)
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from paths_in(part)
        case Comparison(Path() as path) | InList(Path() as path) | Like(Path() as path) | IsNull(Path() as path):
            yield path


def sought_in(predicate: Predicate) -> tuple[bytes, ...]:
    """Return the texts that columns are to be equal to, in UTF-8, each once: what to look for where nothing decodes.

    Of `<>`, of the operand of a NOT, and of texts below 3 bytes, nothing: too much would have these.
    """
    return tuple(dict.fromkeys(text for text in _sought(predicate) if len(text) >= _LEAST_SOUGHT))


_LEAST_SOUGHT = 3


def _sought(predicate: Predicate) -> Iterator[bytes]:
    match predicate:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from _sought(part)
        case Comparison(Path(), Operator.EQUAL, literal):
            yield from _text_of(literal)
        case InList(Path(), literals):
            for literal in literals:
                yield from _text_of(literal)


def _text_of(literal: Literal) -> Iterator[bytes]:
    if isinstance(literal.value, str):
        yield literal.value.encode("utf-8")
