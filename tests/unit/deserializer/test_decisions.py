"""What is done with each schema ref of a batch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from demux.causes import Cause
from demux.columns import Array, Column, Primitive, Struct
from demux.errors import SchemaInvalid, SchemaUnknown
from demux.protobuf.comments import without_comments
from demux.schema_ref import SchemaRef
from deserializer.decisions import Answer, Refusal, Writer, decide, schema_ids_of
from tests.chess import EMPTY, MISFIT, VERSION_1, VERSION_2, VERSION_3, compiled

NO_TABLE = Struct(())
V1, V2, V3 = compiled(VERSION_1, 11, 1), compiled(VERSION_2, 12, 2), compiled(VERSION_3, 13, 3)
ONE, TWO, THREE = SchemaRef(11), SchemaRef(12), SchemaRef(13)
UNKNOWN = SchemaUnknown("The registry has no schema 99.", "Register it.")
BROKEN = SchemaInvalid("Schema 98 does not compile: no.", "Correct it.")

AFTER_V1 = Struct((Column("user_name", Primitive.STRING, 1), Column("moves", Primitive.INT, 2)))
BLITZ, OPENING = Column("blitz", Primitive.BOOLEAN, 1), Column("opening", Primitive.STRING, 2)


def writer(schema_id: int) -> Writer:
    schema = {11: V1, 12: V2, 13: V3}[schema_id]
    return Writer(schema_id, without_comments(schema.descriptor_set), schema.message)


def test_the_first_batch_makes_the_columns_of_its_schema() -> None:
    decisions = decide(NO_TABLE, {ONE: V1})
    assert decisions.columns == AFTER_V1
    assert decisions.added == ("user_name", "moves")
    assert decisions.by_ref == {ONE: writer(11)}


def test_a_new_version_adds_columns_at_the_end_and_nested_ones_too() -> None:
    second = decide(AFTER_V1, {TWO: V2})
    assert second.added == ("board",)
    assert second.columns == Struct((*AFTER_V1, Column("board", Struct((BLITZ,)), 3)))
    third = decide(second.columns, {THREE: V3})
    assert third.added == ("board.opening", "clocks")
    assert third.columns == Struct(
        (*AFTER_V1, Column("board", Struct((BLITZ, OPENING)), 3), Column("clocks", Array(Primitive.BIGINT), 4))
    )


def test_an_old_version_in_a_new_table_adds_nothing() -> None:
    table = decide(NO_TABLE, {THREE: V3}).columns
    late = decide(table, {TWO: V2, ONE: V1})
    assert (late.columns, late.added) == (table, ())
    assert late.by_ref == {ONE: writer(11), TWO: writer(12)}


def test_a_second_decision_about_the_same_batch_adds_nothing() -> None:
    answers: dict[SchemaRef, Answer] = {ONE: V1, TWO: V2, THREE: V3}
    first = decide(NO_TABLE, answers)
    again = decide(first.columns, answers)
    assert (again.columns, again.added, again.by_ref) == (first.columns, (), first.by_ref)


def test_in_one_batch_the_older_version_names_the_columns_whatever_its_id() -> None:
    old, new = replace(V1, schema_id=50), replace(V2, schema_id=7)
    decisions = decide(NO_TABLE, {SchemaRef(7): new, SchemaRef(50): old})
    assert [column.name for column in decisions.columns] == ["user_name", "moves", "board"]


@pytest.mark.parametrize(
    ("schema_id", "answer", "refusal"),
    [
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
    schema_id: int, answer: Answer, refusal: Refusal
) -> None:
    decisions = decide(NO_TABLE, {ONE: V1, SchemaRef(schema_id): answer})
    assert decisions.by_ref == {ONE: writer(11), SchemaRef(schema_id): refusal}
    assert decisions.writers == {ONE: writer(11)}
    assert decisions.columns == AFTER_V1


def test_a_batch_of_refused_rows_alone_makes_no_columns() -> None:
    decisions = decide(NO_TABLE, {SchemaRef(None): UNKNOWN, SchemaRef(99): UNKNOWN})
    assert (decisions.columns, decisions.added) == (NO_TABLE, ())


def test_a_message_without_fields_has_no_columns_and_is_decoded() -> None:
    schema = compiled(EMPTY, 20)
    decisions = decide(NO_TABLE, {SchemaRef(20): schema})
    assert decisions.columns == NO_TABLE
    assert decisions.by_ref == {SchemaRef(20): Writer(20, without_comments(schema.descriptor_set), "Chess")}


def test_a_field_with_the_name_of_an_origin_column_does_not_take_it() -> None:
    schema = compiled('syntax = "proto3"; message Chess { string _Offset = 4; }', 21)
    assert [column.name for column in decide(NO_TABLE, {SchemaRef(21): schema}).columns] == ["_Offset__4"]


def test_rows_that_name_one_schema_in_several_ways_are_decoded_by_it() -> None:
    by_guid, framed = SchemaRef(None, "0f"), SchemaRef(11, None, "0")
    decisions = decide(NO_TABLE, {by_guid: V1, framed: V1, ONE: V1})
    assert decisions.by_ref == {by_guid: writer(11), framed: writer(11), ONE: writer(11)}
    assert decisions.added == ("user_name", "moves")


def test_the_ids_of_a_batch_are_those_that_its_refs_stand_for() -> None:
    answers: dict[SchemaRef, Answer] = {
        SchemaRef(None, "0f"): V2,
        SchemaRef(11, None, "0"): V1,
        ONE: V1,
        SchemaRef(99): UNKNOWN,
        SchemaRef(None, "aa"): UNKNOWN,
        SchemaRef(None): UNKNOWN,
    }
    assert schema_ids_of(answers) == {11, 12, 99}


TWO_MESSAGES = 'syntax = "proto3"; message Move { string square = 1; } message Chat { string text = 1; }'


def test_another_message_of_the_same_schema_does_not_get_into_the_tables_columns() -> None:
    both = compiled(TWO_MESSAGES, 21, 1)
    move, chat = replace(both, message="Move"), replace(both, message="Chat")
    first, second = SchemaRef(21, None, "0"), SchemaRef(21, None, "1")
    decisions = decide(NO_TABLE, {first: move, second: chat})
    assert decisions.message == "Move"
    assert decisions.by_ref[second] == Refusal(
        Cause.SCHEMA_CONFLICT, "The table holds Move, and schema 21 means its message Chat here."
    )
    later = decide(decisions.columns, {second: chat}, decisions.message)
    assert (later.columns, later.by_ref) == (decisions.columns, {second: decisions.by_ref[second]})


def test_a_message_that_a_new_version_has_renamed_is_the_same_one() -> None:
    old, new = (
        compiled('syntax = "proto3"; message Move { string square = 1; }', 21, 1),
        compiled('syntax = "proto3"; message Turn { string at = 1; }', 22, 2),
    )
    table = decide(NO_TABLE, {SchemaRef(21): old})
    assert decide(table.columns, {SchemaRef(22): new}, table.message).by_ref[SchemaRef(22)] == Writer(
        22, without_comments(new.descriptor_set), new.message
    )
