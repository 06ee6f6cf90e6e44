"""What a predicate may say, and what is refused with its place, before anything is looked at."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.errors import PredicateInvalid
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
    paths_in,
    sought_in,
)
from demux.operations.predicate.parser import parse

A, B = Path(("a",)), Path(("b",))
ONE, TWO = Literal(Decimal(1)), Literal(Decimal(2))


def same(path: Path, literal: Literal) -> Comparison:
    return Comparison(path, Operator.EQUAL, literal)


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("a = 1", same(A, ONE)),
        ("a == -1.50", same(A, Literal(Decimal("-1.5")))),
        ("a = 2e3", same(A, Literal(Decimal(2000)))),
        ("a != 'x'", Comparison(A, Operator.UNEQUAL, Literal("x"))),
        # with the sides exchanged
        ("1 < a", Comparison(A, Operator.GREATER, ONE)),
        ("1 >= a", Comparison(A, Operator.AT_MOST, ONE)),
        ("a = TRUE", same(A, Literal(True))),
        ("a <> NULL", Comparison(A, Operator.UNEQUAL, Literal(None))),
        ("player.name = 'it''s'", same(Path(("player", "name")), Literal("it's"))),
        ("a.b.c.d.e = 1", same(Path(("a", "b", "c", "d", "e")), ONE)),
        ("`odd name`.`x``y` = 1", same(Path(("odd name", "x`y")), ONE)),
        (r"a = '\'", same(A, Literal("\\"))),
        ("a = 'x'' OR ''1''=''1'", same(A, Literal("x' OR '1'='1"))),
        ("a IN (1, (2), NULL)", InList(A, (ONE, TWO, Literal(None)))),
        ("a NOT IN ('x')", Not(InList(A, (Literal("x"),)))),
        (
            "a BETWEEN 1 AND 2",
            AllOf((Comparison(A, Operator.AT_LEAST, ONE), Comparison(A, Operator.AT_MOST, TWO))),
        ),
        (r"a LIKE 'x\%_'", Like(A, r"x\%_")),
        ("a NOT LIKE NULL", Not(Like(A, None))),
        ("a IS NOT NULL", Not(IsNull(A))),
        ("NOT a = 1 AND b = 2", AllOf((Not(same(A, ONE)), same(B, TWO)))),
        ("a = 1 AND b = 2 OR a = 2", AnyOf((AllOf((same(A, ONE), same(B, TWO))), same(A, TWO)))),
        ("a = 1 AND (b = 2 OR a = 2)", AllOf((same(A, ONE), AnyOf((same(B, TWO), same(A, TWO)))))),
        ("x = 1 OR x = 2 OR a = 1", AnyOf((same(Path(("x",)), ONE), same(Path(("x",)), TWO), same(A, ONE)))),
        ("TRUE", Constant(True)),
        ("NULL", Constant(None)),
        ("1 = 1", Comparison(ONE, Operator.EQUAL, ONE)),
    ],
)
def test_what_sql_means_by_it(text: str, predicate: Predicate) -> None:
    assert parse(text) == predicate
    assert parse(f" (\n({text}))\t") == predicate


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("lower(a) = 'x'", 1),
        ("a = 1 AND rand() < 1", 11),
        ("a = (SELECT 1)", 13),
        ("a IN (SELECT b FROM c)", 1),
        ("EXISTS (SELECT 1)", 16),
        ("a = CAST(1 AS int)", 10),
        ("a::int = 1", 1),
        ("a = DATE '2020-01-01'", 10),
        ("a = current_user", 0),
        ("a = ?", 0),
        ("a = :name", 0),
        ("a[0] = 1", 1),
        ("a = {x}", 6),
        ("a.* = 1", 3),
        ("`` = 1", 1),
        ("a + 1 = 2", 1),
        ("a || 'x' = 'y'", 1),
        ("a = 'x' 'y'", 5),
        ("a = 'x' COLLATE y", 5),
        ("a RLIKE 'x'", 1),
        ("a ILIKE 'x'", 1),
        ("a LIKE 'x' ESCAPE '!'", 1),
        ("a LIKE ANY ('x')", 13),
        ("a LIKE b", 8),
        ("a LIKE 1", 8),
        (r"a LIKE 'x\y'", 8),
        ("a LIKE 'x\\'", 8),
        ("a = b", 5),
        ("a", 1),
        ("'x'", 1),
        ("a IN ()", 1),
        ("(a, b) = (1, 2)", 2),
        ("a <=> 1", 1),
        ("a IS DISTINCT FROM 1", 1),
        ("a IS TRUE", 1),
        ("(a = 1) = TRUE", 2),
        ("1 < a < 2", 1),
        ("a BETWEEN SYMMETRIC 2 AND 1", 1),
        ("CASE WHEN a = 1 THEN TRUE END", 11),
        ("a = 123456789012345678901", 5),
        ("a = 0.1234567890123456", 5),
        ("a = 1e400", 5),
        ("a = 1 -- more", 5),
        ("", 1),
        ("a =", 3),
        ("a = 1; DROP TABLE b", 8),
        ("a = 1 UNION SELECT 1", 7),
        ("a = 1 LIMIT 5", 7),
        ("a = 1, b = 2", 6),
        ("a = 1 /* more */", 10),
        ("x' OR '1'='1", 2),
        ('a = "x"', 6),
        ("a = 1\0", 6),
        ("a = '\ud800'", 6),
    ],
)
def test_anything_else_is_refused_with_its_place(text: str, at: int) -> None:
    with pytest.raises(PredicateInvalid) as refused:
        parse(text)
    assert (refused.value.fields["at"], refused.value.exit_code) == (at, 2)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("a = 'x", "A quote of the predicate does not end, or it has a character that is not allowed."),
        (f"a = '{'x' * 9_995}'", "The predicate has 10,001 characters; at most 10,000 are allowed."),
        ("(" * 4_000 + "a = 1" + ")" * 4_000, "The predicate is nested too deep."),
        ("NOT " * 2_000 + "a = 1", "The predicate is nested too deep."),
        ("ann(a)", "The predicate has something that is not allowed (ANONYMOUS) at its character 1."),
        ("a\n= lower(b)", "The predicate has something that is not allowed (LOWER) at its character 5."),
    ],
)
def test_what_is_wrong_is_said_without_whom_it_names(text: str, cause: str) -> None:
    with pytest.raises(PredicateInvalid) as refused:
        parse(text)
    assert refused.value.message == cause


@given(st.text())
def test_whatever_it_is_it_is_a_predicate_or_refused(text: str) -> None:
    with suppress(PredicateInvalid):
        parse(text)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_literal_is_what_stands_between_its_quotes_and_nothing_else(text: str) -> None:
    literal = "'" + text.replace("'", "''") + "'"
    assert parse(f"a = {literal} AND b = {literal}") == AllOf((same(A, Literal(text)), same(B, Literal(text))))


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_name_between_backticks_is_one_name(name: str) -> None:
    assert parse(f"`{name.replace('`', '``')}`.x = 1") == same(Path((name, "x")), ONE)


def test_a_path_is_written_with_backticks_where_it_must() -> None:
    assert Path(("a", "b c", "`", "1x", "_y2")).text == "a.`b c`.````.`1x`._y2"


def test_a_predicate_says_which_columns_it_names_and_which_texts_it_seeks() -> None:
    text = "(p.name = 'annie' OR a IN ('bob', 'annie', 'bo', NULL)) AND a <> 'eve' AND NOT b = 'max' AND b LIKE 'tom'"
    predicate = parse(f"{text} AND 'jim' = 'jim' AND 'tim' = c AND d IS NULL AND e > 'kim' AND f = 1234")
    assert [path.text for path in paths_in(predicate)] == ["p.name", "a", "a", "b", "b", "c", "d", "e", "f"]
    # texts that are short, or that columns are not to be equal to, are in too many bytes
    assert sought_in(predicate) == (b"annie", b"bob", b"tim")
