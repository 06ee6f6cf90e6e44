"""Rows of a silver table as a backfill leaves them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Struct
from demux.core.schemas.ref import SchemaRef
from demux.core.tables import SILVER_ORIGIN
from deserializer.decoders.schema_decision import SchemaLookup, WriterSchema, decide
from deserializer.redecode.rescue_backfill import to_filled
from tests.support.data.chess import VERSION_1, VERSION_3, compiled, payload

V1, V3 = compiled(VERSION_1, 11, 1), compiled(VERSION_3, 13, 3)
# has what no column is for
V4 = compiled(VERSION_3.replace("bool blitz = 1;", "bool blitz = 1; int32 level = 3;"), 14, 4)
ANSWERS: dict[SchemaRef, SchemaLookup] = {SchemaRef(11): V1, SchemaRef(13): V3}
DECISIONS = decide(Struct(()), ANSWERS)
EVERYTHING = Struct((*DECISIONS.columns, *SILVER_ORIGIN))


def writers(*schema_ids: int) -> tuple[WriterSchema, ...]:
    return tuple(DECISIONS.writers[SchemaRef(schema_id)] for schema_id in schema_ids)


def filled(rows: list[dict[str, Any]], by: tuple[WriterSchema, ...]) -> list[dict[str, Any]]:
    batch = pa.RecordBatch.from_pylist(rows, schema=pa.schema(arrow_fields(EVERYTHING)))
    (made,) = to_filled(DECISIONS.columns, by)(iter([batch]))
    found: list[dict[str, Any]] = made.to_pylist()
    return found


def row(rescued: bytes, **values: Any) -> dict[str, Any]:
    return {column.name: None for column in EVERYTHING} | values | {"_rescued": rescued}


def test_a_row_gets_what_it_lacks_and_keeps_what_no_column_is_for() -> None:
    left = payload(V4, board={"opening": "ruy", "level": 7}, clocks=[2**40])
    before = row(left, user_name="bert", board={"blitz": True, "opening": None})
    (after,) = filled([before], writers(13, 11))
    assert {name: after[name] for name in ("user_name", "moves", "board", "clocks")} == {
        "user_name": "bert",
        # not on the wire: nobody knows
        "moves": None,
        "board": {"blitz": True, "opening": "ruy"},
        "clocks": [2**40],
    }
    assert (after["_rescued"], after["_changed"]) == (payload(V4, board={"level": 7}), True)


def test_an_older_schema_fills_what_a_newer_one_has_dropped() -> None:
    (after,) = filled([row(payload(V3, clocks=[1]))], writers(11, 13))
    assert (after["clocks"], after["_rescued"], after["_changed"]) == ([1], None, True)


def test_a_second_time_changes_nothing() -> None:
    once = filled([row(payload(V4, board={"level": 7}, clocks=[1])), row(b"\xff")], writers(13, 11))
    again = filled([{name: each[name] for name in row(b"")} for each in once], writers(13, 11))
    assert [each["_changed"] for each in once] == [True, False]
    assert again == [each | {"_changed": False} for each in once]
