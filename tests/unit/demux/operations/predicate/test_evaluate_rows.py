"""A predicate says of columns of every type what another database says, whatever is in the texts of both."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Column, Primitive, Struct
from demux.operations.predicate.ast import Not
from demux.operations.predicate.binder import fit
from demux.operations.predicate.evaluate import matching
from demux.operations.predicate.parser import parse

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
        Column("moment", Primitive.TIMESTAMP, 8),
        Column("raw", Primitive.BINARY, 9),
        Column("player", PLAYER, 10),
    )
)
NAN, INFINITE = float("nan"), float("inf")
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
AT = datetime(2026, 1, 31, 12, 0, 0, 1, timezone.utc)
INJECTED = "x' OR '1'='1"
# t, n, i, big, f, r, b, moment, raw, player
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
    "b <> TRUE", "moment = '2026-01-31T12:00:00.000001'", "moment > '2026-01-31 12:00:00'", "moment < '1582-10-15'",
    "moment = '1500-01-31T12:00:00.000001'", "moment >= '2026-01-31'", "raw IS NULL", "raw = NULL", "player IS NULL",
    "player.name = 'ann'", "player.`it's ``odd``.` = '`; DROP TABLE x'", "PLAYER.NAME IN ('x'' OR ''1''=''1')",
    "NOT (t = 'ann' OR n = 5) AND (b = TRUE OR b IS NULL)", "t = 'ann' OR NULL", "NOT NULL", "1 = 2 OR t = 'ann'",
    "NOT n IN (5, -5) OR player.name IS NULL AND NOT b = FALSE", " OR ".join(f"n = {one}" for one in range(-5, 600)),
)  # fmt: skip


def rows() -> pa.RecordBatch:
    """The rows in columns of Arrow; Python's own times do not reach as far."""
    columns = []
    for field, values in zip(arrow_fields(COLUMNS), zip(*ROWS, strict=True), strict=True):
        columns.append(pa.array([as_arrow(value) for value in values], field.type))
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(arrow_fields(COLUMNS)))


def as_arrow(value: Any) -> Any:
    match value:
        case datetime():
            return (value - EPOCH) // timedelta(microseconds=1)
        case tuple():
            return dict(zip((column.name for column in PLAYER), value, strict=True))
        case _:
            return value


@pytest.fixture(scope="module")
def other() -> Iterator[duckdb.DuckDBPyConnection]:
    with closing(duckdb.connect()) as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("rows", pa.Table.from_batches([rows()]))
        yield database


def in_its_words(text: str) -> str:
    """The predicate as DuckDB writes it: other quotes of names, and no escape in a pattern by itself."""
    names = re.sub("`((?:[^`]|``)*)`", lambda found: '"' + found[1].replace("``", "`") + '"', text)
    return re.sub("(LIKE '(?:[^']|'')*')", r"\1 ESCAPE '\\'", names)


@pytest.mark.parametrize("text", PREDICATES, ids=range(len(PREDICATES)))
def test_rows_match_as_in_another_database(other: duckdb.DuckDBPyConnection, text: str) -> None:
    said = [one for (one,) in other.execute(f"SELECT {in_its_words(text)} FROM rows").fetchall()]
    fitted = fit(parse(text), COLUMNS)
    assert matching(fitted, rows()).to_pylist() == [one is True for one in said]
    # where neither it nor its opposite holds, it is NULL
    assert matching(Not(fitted), rows()).to_pylist() == [one is False for one in said]


def test_a_batch_without_rows_has_none_that_match() -> None:
    assert matching(fit(parse("player.name LIKE 'a%' OR f > 1"), COLUMNS), rows().slice(0, 0)).to_pylist() == []


def test_a_pattern_of_every_character_matches_itself_alone() -> None:
    everything = "".join(map(chr, range(128))) + "ß\U0001f600"
    escaped = re.sub(r"([%_\\])", r"\\\1", everything).replace("'", "''")
    columns = Struct((Column("t", Primitive.STRING, 1),))
    texts = pa.RecordBatch.from_pydict({"t": [everything, everything + "\n", everything[1:], None]})
    # a NUL and such are no characters of a predicate's text, but of a parameter of it
    fitted = fit(parse(f"t LIKE '{escaped}'"), columns)
    assert matching(fitted, texts).to_pylist() == [True, False, False, False]
