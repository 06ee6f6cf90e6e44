"""A predicate and the columns of a table: what goes together, and what is said where it does not."""

from __future__ import annotations

from decimal import Decimal

import pytest

from demux.core.columns.types import Array, Column, Map, Primitive, Struct
from demux.core.errors import PredicateInvalid
from demux.operations.predicate.ast import (
    AllOf,
    Comparison,
    InList,
    IsNull,
    Like,
    Literal,
    Not,
    OperandType,
    Operator,
    Path,
)
from demux.operations.predicate.binder import fit, missing_from, near, unknown_column
from demux.operations.predicate.parser import parse

PLAYER = Struct((Column("name", Primitive.STRING, 1), Column("odd `name`", Primitive.INT, 2)))
COLUMNS = Struct(
    (
        Column("user_name", Primitive.STRING, 1),
        Column("score", Primitive.BIGINT, 2),
        Column("big", Primitive.DECIMAL_20_0, 3),
        Column("ratio", Primitive.FLOAT, 4),
        Column("share", Primitive.DOUBLE, 5),
        Column("done", Primitive.BOOLEAN, 6),
        Column("at", Primitive.TIMESTAMP, 7),
        Column("raw", Primitive.BINARY, 8),
        Column("Player", PLAYER, 9),
        Column("tags", Array(Primitive.STRING), 10),
        Column("by_name", Map(Primitive.STRING, PLAYER), 11),
    )
)


@pytest.mark.parametrize(
    ("text", "value", "sort"),
    [
        ("user_name = 'ann'", "ann", OperandType.TEXT),
        ("score = 5", Decimal(5), OperandType.NUMBER),
        ("big > -0.5", Decimal("-0.5"), OperandType.NUMBER),
        # as the column has it
        ("ratio = 0.1", 0.10000000149011612, OperandType.FLOATING),
        ("ratio = 1e20 OR ratio = 1e19", 1.0000000200408773e20, OperandType.FLOATING),
        ("share = 0.1", 0.1, OperandType.FLOATING),
        ("done = FALSE", False, OperandType.BOOLEAN),
        ("at >= '1970-01-02T00:00:00.000001'", 86_400_000_001, OperandType.TIME),
        ("at < '1960-01-01'", -315_619_200_000_000, OperandType.TIME),
        ("user_name = NULL", None, OperandType.TEXT),
        ("raw = NULL", None, OperandType.NOTHING),
    ],
)
def test_values_are_as_the_column_has_them(text: str, value: object, sort: OperandType) -> None:
    parsed = parse(text.replace(" OR ratio = 1e19", "").replace("1e20", "99999999999999999999"))
    found = fit(parsed, COLUMNS)
    assert isinstance(found, Comparison)
    assert (found.literal.value, found.sort) == (value, sort)
    assert type(found.literal.value) is type(value)


def test_names_are_the_tables_own_whatever_their_case_and_have_numbers_and_types() -> None:
    found = fit(parse("NOT (player.`ODD ``NAME``` IN (1, NULL) AND USER_NAME LIKE 'a%' AND tags IS NULL)"), COLUMNS)
    odd = Path(("Player", "odd `name`"), 0, (9, 2), Primitive.INT)
    name, tags = COLUMNS.columns[0], COLUMNS.columns[9]
    assert found == Not(
        AllOf(
            (
                InList(odd, (Literal(Decimal(1)), Literal(None)), OperandType.NUMBER),
                Like(Path(("user_name",), 0, (1,), name.type), "a%"),
                IsNull(Path(("tags",), 0, (10,), tags.type)),
            )
        )
    )


@pytest.mark.parametrize(
    ("text", "cause", "at"),
    [
        ("score = 'ann'", "at its character 9, the column score is compared with a text, and it is BIGINT.", 9),
        ("user_name = 5", "at its character 13, the column user_name is compared with a number, and it is STRING.", 13),
        ("user_name IN ('a', TRUE)", "the column user_name is compared with a boolean, and it is STRING.", 0),
        ("done = 1", "at its character 8, the column done is compared with a number, and it is BOOLEAN.", 8),
        ("done = 'true'", "at its character 8, the column done is compared with a text, and it is BOOLEAN.", 8),
        ("at = 5", "at its character 6, the column at is compared with a number, and it is TIMESTAMP.", 6),
        ("at = 'yesterday'", "at its character 6, the column at is compared with a text, and it is TIMESTAMP.", 6),
        ("raw = 'x'", "at its character 7, the column raw is compared with a text, and it is BINARY.", 7),
        ("tags = 'x'", "at its character 8, the column tags is compared with a text, and it is ARRAY.", 8),
        ("player = 'x'", "at its character 10, the column Player is compared with a text, and it is STRUCT.", 10),
        ("score LIKE '5%'", "at its character 1, the column score is used with LIKE, and it is BIGINT.", 1),
        (
            "score BETWEEN 1 AND 'x'",
            "at its character 21, the column score is compared with a text, and it is BIGINT.",
            21,
        ),
        ("1 = 'x'", "at its character 5, a value is compared with a text, and it is a number.", 5),
    ],
)
def test_what_can_never_be_equal_is_refused_and_nothing_is_cast(text: str, cause: str, at: int) -> None:
    with pytest.raises(PredicateInvalid) as refused:
        fit(parse(text), COLUMNS)
    place = "In the predicate, " if not at else "In the predicate "
    assert (refused.value.message, refused.value.fields["at"]) == (place + cause, at)


def test_columns_that_are_not_there_are_said_as_they_were_written_each_once() -> None:
    text = "user_nam = 'x' OR player.nmae = 'x' OR user_nam IS NULL OR score.x = 1 OR by_name.name = 'x' OR done = TRUE"
    assert missing_from(parse(text), COLUMNS) == ("user_nam", "player.nmae", "score.x", "by_name.name")
    assert missing_from(parse("PLAYER.NAME = 'x'"), COLUMNS) == ()
    with pytest.raises(PredicateInvalid) as refused:
        fit(parse("scor = 1"), COLUMNS)
    assert refused.value.message == "No table that is meant has the column scor. Did you mean score?"
    assert refused.value.fields == {"column": "scor", "near": ("score",)}


@pytest.mark.parametrize(
    ("missing", "nearest"),
    [
        ("usr_name", ("user_name", "by_name")),
        ("USERNAME", ("user_name", "Player.name")),
        ("scores", ("score",)),
        ("player.`odd name`", ("Player.`odd ``name```", "Player.name")),
        ("nothing_like_it", ()),
    ],
)
def test_near_columns_are_named(missing: str, nearest: tuple[str, ...]) -> None:
    assert near(missing, COLUMNS) == nearest


def test_a_hostile_name_is_made_safe_for_the_terminal() -> None:
    said = unknown_column("x\x1b[31m", ("y\u202e",))
    assert said.message == r"No table that is meant has the column x\u001b[31m. Did you mean y\u202e?"


def test_the_operator_is_kept() -> None:
    found = fit(parse("5 <= score"), COLUMNS)
    assert isinstance(found, Comparison)
    assert found.operator is Operator.AT_LEAST
