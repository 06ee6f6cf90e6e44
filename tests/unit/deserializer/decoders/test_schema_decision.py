"""What is done with each schema ref of a batch."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations
from random import Random

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from hypothesis import given
from hypothesis import strategies as st

from demux.core.causes import Cause
from demux.core.columns.types import Array, Column, Primitive, Struct
from demux.core.errors import ApprovalNeeded, SchemaInvalid, SchemaUnknown
from demux.core.protobuf.schema import descriptor_pool as pool
from demux.core.protobuf.schema.comments import without_comments
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.subject_choice import ForeignSchema
from demux.core.settings.games import Contract, Frozen, SchemaChanges
from deserializer.decoders.schema_decision import Refusal, SchemaLookup, WriterSchema, decide
from tests.support.data.chess import EMPTY, MISFIT, VERSION_1, VERSION_2, VERSION_3, compiled

NO_TABLE = Struct(())
V1, V2, V3 = compiled(VERSION_1, 11, 1), compiled(VERSION_2, 12, 2), compiled(VERSION_3, 13, 3)
ONE, TWO, THREE = SchemaRef(11), SchemaRef(12), SchemaRef(13)
UNKNOWN = SchemaUnknown("The registry has no schema 99.", "Register it.")
BROKEN = SchemaInvalid("Schema 98 does not compile: no.", "Correct it.")

AFTER_V1 = Struct((Column("user_name", Primitive.STRING, 1), Column("moves", Primitive.INT, 2)))
BLITZ, OPENING = Column("blitz", Primitive.BOOLEAN, 1), Column("opening", Primitive.STRING, 2)


def writer(schema_id: int) -> WriterSchema:
    schema = {11: V1, 12: V2, 13: V3}[schema_id]
    return WriterSchema(schema_id, without_comments(schema.descriptor_set), schema.message)


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
    answers: dict[SchemaRef, SchemaLookup] = {ONE: V1, TWO: V2, THREE: V3}
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
        (99, UNKNOWN, Refusal(Cause.UNKNOWN_SCHEMA, "The registry has no schema 99.", may_pass=True)),
        (98, BROKEN, Refusal(Cause.INVALID_SCHEMA, "Schema 98 does not compile: no.", may_pass=True)),
        (
            97,
            replace(V1, schema_id=97, message="Checkers"),
            Refusal(Cause.INVALID_SCHEMA, "The schema has no message 'Checkers'.", may_pass=True),
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
    schema_id: int, answer: SchemaLookup, refusal: Refusal
) -> None:
    decisions = decide(NO_TABLE, {ONE: V1, SchemaRef(schema_id): answer}, rows={ONE: 2, SchemaRef(schema_id): 1})
    assert decisions.by_ref == {ONE: writer(11), SchemaRef(schema_id): refusal}
    assert decisions.writers == {ONE: writer(11)}
    assert decisions.columns == AFTER_V1


def test_a_schema_that_not_every_payload_could_be_read_by_is_refused_before_one_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def twice(files: FileDescriptorSet) -> FileDescriptorSet:
        broken = FileDescriptorSet.FromString(files.SerializeToString())
        broken.file[-1].message_type.append(broken.file[-1].message_type[0])
        return broken

    monkeypatch.setattr(pool, "unhide_methods", twice)
    text = VERSION_1.replace("moves", "steps")
    decisions = decide(NO_TABLE, {ONE: compiled(text, 11, 1)})
    refused = decisions.by_ref[ONE]
    assert isinstance(refused, Refusal)
    assert refused.cause is Cause.INVALID_SCHEMA
    assert "of the schema cannot be used" in refused.sentence


def test_a_batch_of_refused_rows_alone_makes_no_columns() -> None:
    decisions = decide(NO_TABLE, {SchemaRef(None): UNKNOWN, SchemaRef(99): UNKNOWN})
    assert (decisions.columns, decisions.added) == (NO_TABLE, ())


def test_a_message_without_fields_has_no_columns_and_is_decoded() -> None:
    schema = compiled(EMPTY, 20)
    decisions = decide(NO_TABLE, {SchemaRef(20): schema})
    assert decisions.columns == NO_TABLE
    assert decisions.by_ref == {SchemaRef(20): WriterSchema(20, without_comments(schema.descriptor_set), "Chess")}


def test_a_field_with_the_name_of_an_origin_column_does_not_take_it() -> None:
    schema = compiled('syntax = "proto3"; message Chess { string _Offset = 4; }', 21)
    assert [column.name for column in decide(NO_TABLE, {SchemaRef(21): schema}).columns] == ["_Offset__4"]


def test_rows_that_name_one_schema_in_several_ways_are_decoded_by_it() -> None:
    by_guid, framed = SchemaRef(None, "0f"), SchemaRef(11, None, "0")
    decisions = decide(NO_TABLE, {by_guid: V1, framed: V1, ONE: V1})
    assert decisions.by_ref == {by_guid: writer(11), framed: writer(11), ONE: writer(11)}
    assert decisions.added == ("user_name", "moves")


def test_the_ids_of_a_batch_are_those_that_its_refs_stand_for() -> None:
    answers: dict[SchemaRef, SchemaLookup] = {
        SchemaRef(None, "0f"): V2,
        SchemaRef(11, None, "0"): V1,
        ONE: V1,
        SchemaRef(99): UNKNOWN,
        SchemaRef(None, "aa"): UNKNOWN,
        SchemaRef(None): UNKNOWN,
    }
    decisions = decide(NO_TABLE, answers)
    assert decisions.schema_ids() == (11, 12, 99)
    assert decisions.schema_ids([ONE, SchemaRef(None, "aa")]) == (11,)


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
    assert decide(table.columns, {SchemaRef(22): new}, table.message).by_ref[SchemaRef(22)] == WriterSchema(
        22, without_comments(new.descriptor_set), new.message
    )


FROZEN, RESCUING = (Contract(SchemaChanges.FREEZE, frozen) for frozen in Frozen)
ASKING = Contract(SchemaChanges.ASK)
WIDER = compiled('syntax = "proto3"; message Chess { string player = 1; int64 moves = 2; bool rated = 5; }', 14, 4)
RENAMED = compiled('syntax = "proto3"; message Chess { string player = 1; sint32 moves = 2; }', 15, 5)


def test_a_wider_number_makes_its_column_wider_and_narrower_rows_go_on_fitting() -> None:
    decisions = decide(AFTER_V1, {ONE: V1, SchemaRef(14): WIDER})
    moves, rated = Column("moves", Primitive.BIGINT, 2), Column("rated", Primitive.BOOLEAN, 5)
    assert decisions.columns == Struct((AFTER_V1.columns[0], moves, rated))
    assert (decisions.added, decisions.widened) == (("rated",), ("moves",))
    assert {type(each) for each in decisions.by_ref.values()} == {WriterSchema}


@pytest.mark.parametrize("contract", [FROZEN, RESCUING, ASKING])
def test_a_table_without_columns_takes_its_first_schema_in_every_mode(contract: Contract) -> None:
    assert decide(NO_TABLE, {ONE: V1}, contract=contract) == decide(NO_TABLE, {ONE: V1})


@pytest.mark.parametrize("contract", [FROZEN, RESCUING, ASKING])
def test_a_schema_that_changes_nothing_is_read_and_one_that_does_not_fit_is_refused_in_every_mode(
    contract: Contract,
) -> None:
    answers: dict[SchemaRef, SchemaLookup] = {
        ONE: V1,
        SchemaRef(15): RENAMED,
        SchemaRef(20): compiled(MISFIT, 20, 6),
        SchemaRef(99): UNKNOWN,
    }
    assert decide(AFTER_V1, answers, contract=contract) == decide(AFTER_V1, answers)


def test_a_frozen_table_sets_rows_aside_whose_schema_would_change_it() -> None:
    decisions = decide(AFTER_V1, {ONE: V1, TWO: V2, SchemaRef(14): WIDER}, contract=FROZEN)
    assert (decisions.columns, decisions.added, decisions.widened) == (AFTER_V1, (), ())
    assert decisions.by_ref == {
        ONE: writer(11),
        TWO: Refusal(
            Cause.SCHEMA_FROZEN, "The table is frozen, and schema 12 adds column board STRUCT<blitz: BOOLEAN>."
        ),
        SchemaRef(14): Refusal(
            Cause.SCHEMA_FROZEN,
            "The table is frozen, and schema 14 makes column moves BIGINT, adds column rated BOOLEAN.",
        ),
    }


def test_a_frozen_table_that_rescues_reads_such_rows_but_takes_no_wider_number() -> None:
    decisions = decide(AFTER_V1, {ONE: V1, TWO: V2, SchemaRef(14): WIDER}, contract=RESCUING)
    assert (decisions.columns, decisions.added, decisions.widened) == (AFTER_V1, (), ())
    assert decisions.writers == {ONE: writer(11), TWO: writer(12)}
    refusal = decisions.by_ref[SchemaRef(14)]
    assert isinstance(refusal, Refusal)
    assert refusal.cause is Cause.SCHEMA_FROZEN


def test_a_table_that_asks_takes_what_was_approved_and_waits_for_the_rest() -> None:
    answers: dict[SchemaRef, SchemaLookup] = {ONE: V1, TWO: V2, THREE: V3}
    with pytest.raises(ApprovalNeeded) as raised:
        decide(AFTER_V1, answers, contract=replace(ASKING, approved=frozenset({12})))
    assert raised.value.schema_ids == (13,)
    assert raised.value.message == (
        "The game waits until its changed schemas are approved: schema 13 adds column board.opening STRING, adds "
        "column clocks ARRAY<BIGINT>."
    )
    approved = replace(ASKING, approved=frozenset({12, 13}))
    assert decide(AFTER_V1, answers, contract=approved) == decide(AFTER_V1, answers)


def test_a_sentence_names_a_few_of_many_changes() -> None:
    fields = " ".join(f"int32 f{number} = {number};" for number in range(3, 12))
    many = compiled(f'syntax = "proto3"; message Chess {{ {fields} }}', 16, 7)
    refusal = decide(AFTER_V1, {SchemaRef(16): many}, contract=FROZEN).by_ref[SchemaRef(16)]
    assert isinstance(refusal, Refusal)
    assert refusal.sentence.endswith("adds column f7 INT, and 4 more.")


# a version that fits, one that widens, one that adds, one that does not fit; of two other subjects, one each
_SCHEMAS: dict[SchemaRef, SchemaLookup] = {
    SchemaRef(11): V1,
    SchemaRef(13): V3,
    SchemaRef(14): WIDER,
    SchemaRef(16): compiled(MISFIT, 16, 6),
    SchemaRef(31): compiled('syntax = "proto3"; message Other { bool odd = 1; }', 31, 1, "aaa"),
    SchemaRef(32): compiled('syntax = "proto3"; message Other { double odd = 1; }', 32, 9, "zzz"),
    SchemaRef(99): UNKNOWN,
}


@given(st.dictionaries(st.sampled_from(list(_SCHEMAS)), st.integers(1, 3), min_size=1), st.randoms())
def test_a_batch_decides_the_same_in_any_order_and_its_leading_schema_always_fits(
    rows: dict[SchemaRef, int], random: Random
) -> None:
    refs = list(rows)
    first = decide(NO_TABLE, {ref: _SCHEMAS[ref] for ref in refs}, rows=rows)
    random.shuffle(refs)
    assert decide(NO_TABLE, {ref: _SCHEMAS[ref] for ref in refs}, rows={ref: rows[ref] for ref in refs}) == first
    subjects: Counter[str] = Counter()
    for ref, count in rows.items():
        if isinstance(schema := _SCHEMAS[ref], CompiledSchema):
            subjects[schema.subject] += count
    most = [subject for subject, count in subjects.items() if count == max(subjects.values())]
    if len(most) == 1:
        mine = {ref: rows[ref] for ref in rows if getattr(_SCHEMAS[ref], "subject", None) == most[0]}
        leading = [ref for ref, count in mine.items() if count == max(mine.values())]
        assert any(isinstance(first.by_ref[ref], WriterSchema) for ref in leading)


@pytest.mark.parametrize("batches", list(permutations([ONE, TWO, THREE])))
def test_compatible_versions_in_any_order_of_batches_make_the_same_columns_by_field(
    batches: tuple[SchemaRef, ...],
) -> None:
    columns, message = NO_TABLE, None
    for ref in batches:
        decisions = decide(columns, {ref: {ONE: V1, TWO: V2, THREE: V3}[ref]}, message)
        columns, message = decisions.columns, decisions.message
    numbers = {column.number: column.type for column in columns}
    assert (numbers[1], numbers[2], numbers[4]) == (Primitive.STRING, Primitive.INT, Array(Primitive.BIGINT))
    assert isinstance(numbers[3], Struct)
    assert {(one.number, one.type) for one in numbers[3]} == {(1, Primitive.BOOLEAN), (2, Primitive.STRING)}


def test_most_rows_lead_then_the_newest_version_and_never_the_smallest_id_or_name() -> None:
    misfit, right = compiled(MISFIT, 1, 1), replace(V1, version=2)
    refs = SchemaRef(1), SchemaRef(11)
    both: dict[SchemaRef, SchemaLookup] = {refs[0]: misfit, refs[1]: right}

    def decoded(**rows: int) -> list[int]:
        decisions = decide(NO_TABLE, both, rows=dict(zip(refs, rows.values(), strict=True)))
        return [writer.schema_id for writer in decisions.writers.values()]

    assert decoded(misfit=2, right=1) == [1]
    assert decoded(misfit=1, right=2) == [11]
    # where two tie, the newer version
    assert decoded(misfit=1, right=1) == [11]
    other_subject = {refs[0]: replace(misfit, subject="aaa"), refs[1]: replace(right, subject="bbb")}
    for rows, leads in (((3, 1), 1), ((1, 3), 11), ((1, 1), 11)):
        decisions = decide(NO_TABLE, other_subject, rows=dict(zip(refs, rows, strict=True)))
        assert [writer.schema_id for writer in decisions.writers.values()] == [leads]


def test_a_schema_of_another_game_is_refused_whatever_the_table_has() -> None:
    foreign = ForeignSchema(31, "Schema 31 is of the subject 'aaa', and the game has the subject 'chess'.")
    for table in (NO_TABLE, AFTER_V1):
        decisions = decide(table, {SchemaRef(31): foreign})
        assert decisions.columns == table
        assert decisions.by_ref == {SchemaRef(31): Refusal(Cause.SCHEMA_CONFLICT, foreign.message, may_pass=True)}
