"""Arrow batches of bronze to Arrow batches of silver, and to what quarantine says of each row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.causes import Cause
from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Struct
from demux.core.delta.batch_commit import REFUSED
from demux.core.errors import SchemaUnknown
from demux.core.schemas.ref import SchemaRef
from demux.core.settings.games import Contract, Frozen, SchemaChanges
from demux.core.tables import QUARANTINE
from deserializer.decoders.arrow import INPUT, silver_columns, to_refused, to_silver
from deserializer.decoders.schema_decision import Decisions, SchemaLookup, decide
from tests.support.data.chess import EMPTY, VERSION_1, VERSION_3, compiled, payload

V1, V3, NO_FIELDS = compiled(VERSION_1, 11, 1), compiled(VERSION_3, 13, 3), compiled(EMPTY, 20, 9)
ANSWERS: dict[SchemaRef, SchemaLookup] = {
    SchemaRef(11): V1,
    SchemaRef(13): V3,
    SchemaRef(None, "0f"): V3,
    SchemaRef(11, None, "0"): V1,
    SchemaRef(99): SchemaUnknown("The registry has no schema 99.", "Register it."),
    SchemaRef(None): SchemaUnknown("The record has no schema id.", "Correct the producer."),
}
DECISIONS = decide(Struct(()), ANSWERS)
MOMENT = datetime(2025, 1, 2, tzinfo=timezone.utc)

ANNA = payload(V1, user_name="anna", moves=3)
BERT = payload(V3, player="bert", moves=-1, board={"blitz": True, "opening": "ruy"}, clocks=[1, 2**40])
TRUNCATED = ANNA[:3]

# schema id, or guid, or id and message indexes; and the payload
Ref = int | str | tuple[int, str] | None
Row = tuple[Ref, bytes | None]
rows = st.lists(
    st.sampled_from(
        [
            *((11, ANNA), (13, BERT), (11, TRUNCATED), (13, b"\xff"), (99, ANNA), (None, b""), (11, None)),
            *(("0f", BERT), ("0f", b"\xff"), ((11, "0"), ANNA)),
        ]
    ),
    max_size=20,
)


def columns_of(ref: Ref) -> dict[str, int | str | None]:
    match ref:
        case str():
            return {"schema_id": None, "schema_guid": ref, "message_indexes": None}
        case (schema_id, indexes):
            return {"schema_id": schema_id, "schema_guid": None, "message_indexes": indexes}
        case _:
            return {"schema_id": ref, "schema_guid": None, "message_indexes": None}


def batch(some: Sequence[Row], first: int = 0) -> pa.RecordBatch:
    """Rows of bronze; record ids count from `first`."""
    records = [
        {
            **columns_of(ref),
            "payload": data,
            "origin": "delta",
            "topic": "events",
            "partition": 1,
            "offset": first + number,
            "timestamp": MOMENT,
            "record_id": f"r{first + number}",
        }
        for number, (ref, data) in enumerate(some)
    ]
    return pa.RecordBatch.from_pylist(records, schema=pa.schema(arrow_fields(INPUT)))


def silver(some: Sequence[Row], decisions: Decisions = DECISIONS) -> list[dict[str, Any]]:
    return as_rows(to_silver(decisions)(iter([batch(some)])), "_record_id")


def refusals(some: Sequence[Row]) -> list[dict[str, Any]]:
    return as_rows(to_refused(DECISIONS, "chess", "query", 7, MOMENT)(iter([batch(some)])), "record_id")


def as_rows(batches: Iterable[pa.RecordBatch], record_id: str) -> list[dict[str, Any]]:
    everything = [row for one in batches for row in one.to_pylist()]
    return sorted(everything, key=lambda row: int(row[record_id][1:]))


def test_rows_of_two_versions_come_into_the_columns_of_one_table() -> None:
    anna, bert = silver([(11, ANNA), (13, BERT)])
    origin = {"_origin": "delta", "_topic": "events", "_partition": 1, "_rescued": None, REFUSED: False}
    assert anna == {
        **{"user_name": "anna", "moves": 3, "board": None, "clocks": None, "_schema_id": 11},
        **{**origin, "_offset": 0, "_timestamp": MOMENT, "_record_id": "r0"},
    }
    assert bert == {
        **{"user_name": "bert", "moves": -1, "board": {"blitz": True, "opening": "ruy"}, "clocks": [1, 2**40]},
        **{**origin, "_schema_id": 13, "_offset": 1, "_timestamp": MOMENT, "_record_id": "r1"},
    }


def test_what_the_table_or_the_rows_own_schema_has_no_place_for_is_rescued() -> None:
    table = decide(Struct(()), {SchemaRef(11): ANSWERS[SchemaRef(11)]}).columns
    decisions = decide(table, ANSWERS, contract=Contract(SchemaChanges.FREEZE, Frozen.RESCUE))
    assert decisions.columns == table
    plain, known, unknown, refused = silver([(11, ANNA), (13, BERT), (11, BERT), (11, TRUNCATED)], decisions)
    assert (plain["_rescued"], refused["_rescued"]) == (None, None)
    names = [column.name for column in table]
    assert [known[name] for name in names] == [unknown[name] for name in names] == ["bert", -1]
    left = payload(V3, board={"blitz": True, "opening": "ruy"}, clocks=[1, 2**40])
    assert (known["_rescued"], unknown["_rescued"]) == (left, left)


@pytest.mark.parametrize("data", [b"", None])
def test_an_empty_payload_and_a_missing_one_are_a_message_of_defaults(data: bytes | None) -> None:
    (row,) = silver([(11, data)])
    assert (row["user_name"], row["moves"], row[REFUSED]) == ("", 0, False)


def test_a_refused_row_keeps_its_position_and_has_no_values() -> None:
    (row,) = silver([(11, TRUNCATED)])
    assert (row["_record_id"], row["_schema_id"], row[REFUSED]) == ("r0", 11, True)
    assert {row[column.name] for column in DECISIONS.columns} == {None}


def test_every_batch_has_the_types_of_the_table() -> None:
    expected = [field.type for field in arrow_fields(silver_columns(DECISIONS.columns))]
    batches = list(to_silver(DECISIONS)(iter([batch([(11, ANNA), (13, BERT), (13, b"\xff"), (None, b"")])])))
    assert [[column.type for column in one.columns] for one in batches] == [expected] * len(batches)
    assert {tuple(one.schema.names) for one in batches} == {
        tuple(column.name for column in silver_columns(DECISIONS.columns))
    }


def test_a_message_without_fields_is_a_row_of_its_origin_alone() -> None:
    decisions = decide(Struct(()), {SchemaRef(20): NO_FIELDS})
    (row,) = silver([(20, b"")], decisions)
    assert (row["_record_id"], row[REFUSED]) == ("r0", False)
    assert next(iter(row)) == "_schema_id"


def test_each_refused_row_has_its_cause_and_its_sentence() -> None:
    some: list[Row] = [(11, ANNA), (11, TRUNCATED), (99, ANNA), (None, BERT)]
    refused = refusals(some)
    assert [(row["record_id"], row["cause"], row["bytes"]) for row in refused] == [
        ("r1", Cause.MALFORMED_PAYLOAD.value, TRUNCATED),
        ("r2", Cause.UNKNOWN_SCHEMA.value, ANNA),
        ("r3", Cause.UNKNOWN_SCHEMA.value, BERT),
    ]
    assert [row["sentence"] for row in refused[1:]] == [
        "The registry has no schema 99.",
        "The record has no schema id.",
    ]
    assert refused[0]["sentence"]
    assert {(row["stage"], row["game_name"], row["query_id"], row["batch_id"]) for row in refused} == {
        ("silver", "chess", "query", 7)
    }
    assert list(refused[0]) == [column.name for column in QUARANTINE]


def test_a_row_that_names_its_schema_by_guid_has_the_id_of_that_schema() -> None:
    good, bad, framed = silver([("0f", BERT), ("0f", b"\xff"), ((11, "0"), ANNA)])
    assert (good["user_name"], good["_schema_id"], good[REFUSED]) == ("bert", 13, False)
    assert (bad["_schema_id"], bad[REFUSED]) == (13, True)
    assert (framed["user_name"], framed["_schema_id"], framed[REFUSED]) == ("anna", 11, False)
    (refused,) = refusals([("0f", b"\xff")])
    assert (refused["schema_id"], refused["schema_guid"], refused["cause"]) == (None, "0f", "MALFORMED_PAYLOAD")


def test_two_schemas_with_the_same_message_name_decode_each_its_own_rows() -> None:
    text = 'syntax = "proto3"; package p; message Event { %s }'
    one, two = compiled(text % "int32 a = 1;", 1), compiled(text % "string b = 2;", 2, subject="other")
    decisions = decide(Struct(()), {SchemaRef(1): one, SchemaRef(2): two})
    first, second = silver([(1, payload(one, a=5)), (2, payload(two, b="five"))], decisions)
    assert (one.message, two.message) == ("p.Event", "p.Event")
    assert (first["a"], first["b"], first["_schema_id"]) == (5, None, 1)
    assert (second["a"], second["b"], second["_schema_id"]) == (None, "five", 2)


def test_an_empty_batch_gives_no_rows() -> None:
    assert silver([]) == []
    assert refusals([]) == []


@given(rows)
def test_every_row_comes_out_once_whatever_stands_beside_it(some: list[Row]) -> None:
    alone = [{**silver([row])[0], "_offset": None, "_record_id": None} for row in some]
    together = silver(some)
    assert [row["_record_id"] for row in together] == [f"r{number}" for number in range(len(some))]
    assert [{**row, "_offset": None, "_record_id": None} for row in together] == alone


@given(rows)
def test_a_row_is_refused_in_silver_exactly_when_it_has_a_cause(some: list[Row]) -> None:
    refused = {row["_record_id"] for row in silver(some) if row[REFUSED]}
    assert {row["record_id"] for row in refusals(some)} == refused


@given(rows, st.integers(1, 5))
def test_the_size_of_the_batches_does_not_matter(some: list[Row], size: int) -> None:
    parts = (batch(some[start : start + size], start) for start in range(0, len(some), size))
    assert as_rows(to_silver(DECISIONS)(parts), "_record_id") == silver(some)
