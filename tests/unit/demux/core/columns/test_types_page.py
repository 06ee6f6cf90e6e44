"""docs/columns.md: its example is compiled and decoded, so that the page cannot lie."""

from __future__ import annotations

import re
from pathlib import Path

from demux.core.columns.types import Primitive, sql_name
from demux.core.protobuf.decode.decoder import PayloadDecoder
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.protocol import RegisteredSchema
from tests.support.oracle import arrow_rows

PAGE = (Path(__file__).parents[5] / "docs" / "columns.md").read_text("utf-8")
SHOWN: dict[str, object] = {"`''`": "", "NULL": None, "`BLITZ`": "BLITZ", "`[]`": [], "`{}`": []}


def example() -> PayloadDecoder:
    (text,) = re.findall(r"```protobuf\n(.*?)```", PAGE, re.DOTALL)
    done = compile_schema(RegisteredSchema(1, "page", 1, text, "page.proto", (), "Event"))
    return PayloadDecoder(done.descriptor_set, done.message, frozenset())


def table() -> dict[str, tuple[str, object]]:
    """Type and value of an empty payload by column, as the page's second table says."""
    (body,) = re.findall(r"\| column \| type \| of an empty payload \|\n\|[- |]+\|\n((?:\|.*\|\n)+)", PAGE)
    rows: dict[str, tuple[str, object]] = {}
    for line in body.splitlines():
        names, types, values = (cell.strip() for cell in line.strip("|").split(" | "))
        many = re.findall(r"`(\w+)`", names)
        split = (types.split(", "), values.split(", ")) if len(many) > 1 else ([types], [values])
        rows |= {name: (kind, SHOWN[value]) for name, kind, value in zip(many, *split, strict=True)}
    return rows


def test_the_example_has_the_columns_that_the_page_says() -> None:
    assert {column.name: sql_name(column.type) for column in example().columns} == {
        name: kind for name, (kind, _) in table().items()
    }


def test_an_empty_payload_has_the_values_that_the_page_says() -> None:
    by = example()
    (row,) = arrow_rows(by.decode([b""]).columns, [column.name for column in by.columns])
    assert row == {name: value for name, (_, value) in table().items()}


def test_the_page_names_every_column_type() -> None:
    assert {sql_name(primitive) for primitive in Primitive if sql_name(primitive) not in PAGE} == set()
