"""SQL's three-valued logic: other databases say the same; and what may be where values are not known."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from decimal import Decimal
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.columns.types import Column, Primitive, Struct
from demux.operations.predicate.ast import Constant, Path, Predicate, Value
from demux.operations.predicate.binder import fit, sort_of
from demux.operations.predicate.evaluate import RowValues, array_of, evaluate
from demux.operations.predicate.parser import parse

KINDS = {"t": Primitive.STRING, "n": Primitive.BIGINT, "f": Primitive.DOUBLE, "b": Primitive.BOOLEAN}
COLUMNS = Struct(tuple(Column(name, kind, number) for number, (name, kind) in enumerate(KINDS.items(), start=1)))
# of a value that is not known
UNKNOWN = object()
NAN, INFINITE = float("nan"), float("inf")

# few of each, so that they meet
TEXTS: list[Value] = ["", "a", "A", "ab", "b%", "a_b", "ß", "\U0001f600", "\uffff", "a\nb", "x' OR '1'='1"]
NUMBERS: list[Value] = [-1, 0, 1, 2**53 + 1, 2**63 - 1]
FLOATING: list[Value] = [-1.5, -0.0, 0.0, 1.0, INFINITE]
VALUES: dict[str, list[Value]] = {
    "t": [None, *TEXTS],
    "n": [None, *NUMBERS],
    "f": [None, *FLOATING],
    "b": [None, True, False],
}
PATTERNS = ["%", "_", "a%", "%b", "a_b", "__", "A", "", "%_%", "a%b%"]


def literal(value: Value) -> str:
    match value:
        case None | bool():
            return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
        case str():
            return "'" + value.replace("'", "''") + "'"
        case _:
            return str(value)


def literals(name: str) -> st.SearchStrategy[str]:
    return st.sampled_from([value for value in VALUES[name] if value != INFINITE]).map(literal)


@st.composite
def conditions(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(sorted(KINDS)))
    no, one, other = draw(st.sampled_from(["", "NOT "])), draw(literals(name)), draw(literals(name))
    compared = draw(st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="]))
    kinds = [
        f"{name} {compared} {one}",
        f"{one} {compared} {name}",
        f"{name} {no}IN ({one}, {other})",
        f"{name} {no}BETWEEN {one} AND {other}",
        f"{name} IS {no}NULL",
        f"t {no}LIKE {draw(st.sampled_from(PATTERNS).map(literal) | st.just('NULL'))}",
        draw(st.sampled_from(["TRUE", "FALSE", "NULL"])),
    ]
    return draw(st.sampled_from(kinds))


# nothing between the words but what their order of binding says
predicates = st.recursive(
    conditions(),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(" ".join),
        inner.map("NOT {}".format),
        inner.map("({})".format),
    ),
    max_leaves=6,
)
rows = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in VALUES.items()})


def fitted(text: str) -> Predicate:
    return fit(parse(text), COLUMNS)


def of_row(predicate: Predicate, row: Mapping[str, object]) -> set[bool | None]:
    """What the predicate may be of a row."""

    def values(path: Path) -> RowValues:
        value: Any = row[path.names[0]]
        known = None if value is UNKNOWN else value
        return RowValues(array_of([known], sort_of(path)), pa.array([value is UNKNOWN]))

    found = evaluate(predicate, 1, values)
    may_be = {True: found.true, False: found.false, None: found.null}
    return {outcome for outcome, held in may_be.items() if held.to_pylist() == [True]}


@pytest.fixture(scope="module")
def other() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("PRAGMA case_sensitive_like = ON")
        database.execute("CREATE TABLE row (t TEXT, n INTEGER, f REAL, b INTEGER)")
        yield database


@given(predicates, rows)
def test_another_database_says_the_same(other: sqlite3.Connection, text: str, row: dict[str, Any]) -> None:
    other.execute("DELETE FROM row")
    other.execute("INSERT INTO row VALUES (:t, :n, :f, :b)", row)
    ((said,),) = other.execute(f"SELECT {text} FROM row")
    assert of_row(fitted(text), row) == {None if said is None else bool(said)}


@given(predicates, rows, st.sets(st.sampled_from(sorted(KINDS)), min_size=1, max_size=2))
def test_whatever_an_unknown_value_is_its_outcome_was_among_those_that_may_be(
    text: str, row: dict[str, Value], unknown: set[str]
) -> None:
    predicate = fitted(text)
    may_be = of_row(predicate, {**row, **dict.fromkeys(unknown, UNKNOWN)})
    ways = product(*(VALUES[name] for name in sorted(unknown)))
    found = {one for way in ways for one in of_row(predicate, {**row, **dict(zip(sorted(unknown), way, strict=True))})}
    assert found <= may_be


@pytest.mark.parametrize(
    ("text", "may_be"),
    [
        ("t = 'a'", {True, False, None}),
        ("t IS NULL", {True, False}),
        # what is known decides
        ("t = 'a' AND n = 2", {False}),
        ("t = 'a' OR n = 1", {True}),
        ("t = 'a' AND n = 1", {True, False, None}),
        ("t = 'a' AND b", {False, None}),
        ("NOT (t = 'a' OR n = 1)", {False}),
    ],
)
def test_what_is_known_may_decide_where_something_is_not(text: str, may_be: set[bool | None]) -> None:
    row: dict[str, object] = {"t": UNKNOWN, "n": 1, "b": None}
    assert of_row(fitted(text.replace(" b", " b = TRUE")), row) == may_be


@pytest.mark.parametrize(
    ("text", "value", "is_so"),
    [
        # a NaN is equal to itself and above all, zeros are equal, as Spark has them
        ("f > 1e15", NAN, True),
        ("f = 1", NAN, False),
        ("f >= 0", -0.0, True),
        ("f < 0", -0.0, False),
        (r"t LIKE 'a\%%'", "a%b", True),
        (r"t LIKE 'a\%%'", "ab", False),
        (r"t LIKE 'a\_'", "a_", True),
        (r"t LIKE 'a\\b'", "a\\b", True),
        ("t LIKE '%.*'", "ab.*", True),
        ("t LIKE 'a%z'", "a\n\nz", True),
        ("n = 1.0", 1, True),
        ("n = 1.5", 1, False),
        ("n < 1.5", 1, True),
        ("n = 9007199254740993", 2**53 + 1, True),
        ("n = 9007199254740992", 2**53 + 1, False),
    ],
)
def test_single_values(text: str, value: Value, is_so: bool) -> None:
    assert of_row(fitted(text), {text[0]: value}) == {is_so}


@pytest.mark.parametrize(
    ("text", "value"),
    [("1 = 1", True), ("'a' IN ('b')", False), ("NULL = 1", None), ("NULL LIKE 'a'", None), ("'ab' LIKE 'a_'", True)],
)
def test_a_predicate_without_columns_is_always_the_same(text: str, value: bool | None) -> None:
    assert of_row(fitted(text), {}) == {value}
    assert of_row(Constant(value), {}) == {value}


def test_values_are_looked_up_by_path() -> None:
    seen: list[Path] = []

    def values(path: Path) -> RowValues:
        seen.append(path)
        return RowValues(array_of([Decimal(1), None], sort_of(path)))

    found = evaluate(fitted("N = 1"), 2, values)
    assert (found.true.to_pylist(), found.null.to_pylist()) == ([True, False], [False, True])
    (path,) = seen
    assert (path.names, path.numbers, path.type) == (("n",), (2,), Primitive.BIGINT)
