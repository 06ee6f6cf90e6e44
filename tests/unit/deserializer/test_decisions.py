"""What is done with each schema id of a batch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from demux.causes import Cause
from demux.columns import Array, Column, Primitive, Struct
from demux.errors import SchemaInvalid, SchemaUnknown
from deserializer.decisions import Answer, Refusal, Writer, decide
from tests.chess import EMPTY, MISFIT, VERSION_1, VERSION_2, VERSION_3, compiled

NO_TABLE = Struct(())
V1, V2, V3 = compiled(VERSION_1, 11, 1), compiled(VERSION_2, 12, 2), compiled(VERSION_3, 13, 3)
UNKNOWN = SchemaUnknown("The registry has no schema 99.", "Register it.")
BROKEN = SchemaInvalid("Schema 98 does not compile: no.", "Correct it.")

AFTER_V1 = Struct((Column("user_name", Primitive.STRING, 1), Column("moves", Primitive.INT, 2)))
BLITZ, OPENING = Column("blitz", Primitive.BOOLEAN, 1), Column("opening", Primitive.STRING, 2)


def writer(schema_id: int) -> Writer:
    schema = {11: V1, 12: V2, 13: V3}[schema_id]
    return Writer(schema.descriptor_set, schema.message)


def test_the_first_batch_makes_the_columns_of_its_schema() -> None:
    decisions = decide(NO_TABLE, {11}, {11: V1})
    assert decisions.columns == AFTER_V1
    assert decisions.added == ("user_name", "moves")
    assert decisions.by_schema_id == {11: writer(11)}


def test_a_new_version_adds_columns_at_the_end_and_nested_ones_too() -> None:
    second = decide(AFTER_V1, {12}, {12: V2})
    assert second.added == ("board",)
    assert second.columns == Struct((*AFTER_V1, Column("board", Struct((BLITZ,)), 3)))
    third = decide(second.columns, {13}, {13: V3})
    assert third.added == ("board.opening", "clocks")
    assert third.columns == Struct(
        (*AFTER_V1, Column("board", Struct((BLITZ, OPENING)), 3), Column("clocks", Array(Primitive.BIGINT), 4))
    )


def test_an_old_version_in_a_new_table_adds_nothing() -> None:
    table = decide(NO_TABLE, {13}, {13: V3}).columns
    late = decide(table, {11, 12}, {11: V1, 12: V2})
    assert (late.columns, late.added) == (table, ())
    assert late.by_schema_id == {11: writer(11), 12: writer(12)}


def test_a_second_decision_about_the_same_batch_adds_nothing() -> None:
    answers: dict[int, Answer] = {11: V1, 12: V2, 13: V3}
    first = decide(NO_TABLE, {11, 12, 13}, answers)
    again = decide(first.columns, {11, 12, 13}, answers)
    assert (again.columns, again.added, again.by_schema_id) == (first.columns, (), first.by_schema_id)


def test_in_one_batch_the_older_version_names_the_columns_whatever_its_id() -> None:
    old, new = replace(V1, schema_id=50), replace(V2, schema_id=7)
    decisions = decide(NO_TABLE, {7, 50}, {7: new, 50: old})
    assert [column.name for column in decisions.columns] == ["user_name", "moves", "board"]


@pytest.mark.parametrize(
    ("schema_id", "answer", "refusal"),
    [
        (None, None, Refusal(Cause.UNKNOWN_SCHEMA, "The wrapper has no schema id.")),
        (99, UNKNOWN, Refusal(Cause.UNKNOWN_SCHEMA, "The registry has no schema 99.")),
        (98, BROKEN, Refusal(Cause.INVALID_SCHEMA, "Schema 98 does not compile: no.")),
        (
            97,
            replace(V1, schema_id=97, message="Checkers"),
            Refusal(Cause.INVALID_SCHEMA, "The schema has no message 'Checkers'."),
        ),
        (
            96,
            compiled(MISFIT, 96, 4),
            Refusal(
                Cause.SCHEMA_CONFLICT,
                "Schema 96 does not fit the table: Column moves is INT, the schema writes STRING.",
            ),
        ),
    ],
)
def test_an_id_that_cannot_be_decoded_is_refused_and_the_others_are_not(
    schema_id: int | None, answer: Answer | None, refusal: Refusal
) -> None:
    answers: dict[int, Answer] = {11: V1}
    if schema_id is not None and answer is not None:
        answers[schema_id] = answer
    decisions = decide(NO_TABLE, {11, schema_id}, answers)
    assert decisions.by_schema_id == {11: writer(11), schema_id: refusal}
    assert decisions.columns == AFTER_V1


def test_a_batch_of_refused_rows_alone_makes_no_columns() -> None:
    decisions = decide(NO_TABLE, {None, 99}, {99: UNKNOWN})
    assert (decisions.columns, decisions.added) == (NO_TABLE, ())


def test_a_message_without_fields_has_no_columns_and_is_decoded() -> None:
    schema = compiled(EMPTY, 20)
    decisions = decide(NO_TABLE, {20}, {20: schema})
    assert decisions.columns == NO_TABLE
    assert decisions.by_schema_id == {20: Writer(schema.descriptor_set, "Chess")}


def test_a_field_with_the_name_of_an_origin_column_does_not_take_it() -> None:
    schema = compiled('syntax = "proto3"; message Chess { string _Offset = 4; }', 21)
    assert [column.name for column in decide(NO_TABLE, {21}, {21: schema}).columns] == ["_Offset__4"]
