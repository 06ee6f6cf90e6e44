"""Two versions of a message: what differs, and what that means. All kinds of change stand in the golden files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from demux.core.columns.types import Array, Column, Primitive, Struct
from demux.core.errors import SchemaInvalid
from demux.core.protobuf.compatibility.changes import (
    ChangeKind,
    Direction,
    Effect,
    Mode,
    SchemaChange,
    SchemaComparison,
    WireCompatibility,
)
from demux.core.protobuf.compatibility.compare import compare, silver_columns, table_of
from demux.core.protobuf.schema.protoc import CompiledSchema, compile_schema
from demux.core.registry.protocol import RegisteredSchema
from tests.support.data.protos import RECURSIVE, SCHEMAS, Schema, compiled
from tests.support.data.versions import version_of

Golden = Callable[[str, str], None]

PROTO3 = """
=> int32 a = 1;
map<string, bool> a = 1; =>
int32 a = 1; => int32 b = 1;
int32 a = 1; => sint32 a = 1;
int32 a = 1; => int64 a = 1;
int64 a = 1; => int32 a = 1;
string a = 1; => bytes a = 1;
int32 a = 1; => string b = 1;
string a = 1; string b = 2; => string b = 1; string a = 2;
string a = 1; => string a = 7;
string a = 1; => repeated string a = 1;
repeated int32 a = 1; => int32 a = 1;
repeated int32 a = 1; => repeated int32 a = 1 [packed = false];
map<int32, int32> a = 1; => map<int64, sint32> a = 1;
int32 a = 1; => optional int32 a = 1;
optional int32 a = 1; => int32 a = 1;
int32 a = 1; => int32 a = 1 [json_name = "x"];
int32 a = 1; => oneof o { int32 a = 1; }
int32 a = 1; int32 b = 2; => oneof o { int32 a = 1; int32 b = 2; }
optional int32 a = 1; => oneof o { int32 a = 1; }
oneof o { int32 a = 1; int32 b = 2; } => oneof p { int32 a = 1; int32 b = 2; }
oneof o { int32 a = 1; int32 b = 2; } => oneof o { int32 a = 1; } optional int32 b = 2;
oneof o { int32 a = 1; } optional int32 b = 2; => oneof o { int32 a = 1; int32 b = 2; }
oneof o { int32 a = 1; int32 b = 2; } => oneof o { int32 a = 1; }
oneof o { int32 a = 1; } => oneof o { int32 a = 1; int32 b = 2; }
=> oneof o { int32 b = 2; int32 c = 3; }
D d = 1; message D { int32 x = 1; } => E d = 1; message E { int32 x = 1; }
D d = 1; message D { int32 x = 1; } => D d = 1; message D { sint32 x = 1; string y = 2; }
map<string, D> d = 1; message D { int32 x = 1; } => map<string, D> d = 1; message D { string y = 2; }
repeated P d = 1; message P { string key = 1; int32 value = 2; } => map<string, int32> d = 1;
bytes d = 1; => D d = 1; message D {}
E e = 1; enum E { A = 0; } => E e = 1; enum E { A = 0; B = 1; }
E e = 1; enum E { A = 0; B = 1; } => E e = 1; enum E { A = 0; }
E e = 1; enum E { A = 0; B = 1; } => E e = 1; enum E { A = 0; C = 1; }
E e = 1; enum E { A = 0; B = 1; C = 2; } => E e = 1; enum E { A = 0; C = 1; B = 2; }
E e = 1; enum E { option allow_alias = true; A = 0; B = 1; C = 1; } => E e = 1; enum E { A = 0; C = 1; }
E e = 1; enum E { A = 0; } => int32 e = 1; enum E { A = 0; }
E e = 1; enum E { A = 0; } => F e = 1; enum F { X = 0; }
E e = 1; enum E { A = 0; reserved 5; } => E e = 1; enum E { A = 0; reserved 4 to 7; reserved "OLD"; }
reserved 1, 2, 9 to 11; reserved "x"; => reserved 1 to 2, 10;
reserved 4; => int32 a = 4;
M m = 1; E e = 2; enum E { A = 0; } => M m = 1; string e = 2;
"""
PROTO2 = """
optional int32 a = 1; => required int32 a = 1;
=> required int32 a = 1;
required int32 a = 1; =>
optional int32 a = 1; => optional int32 a = 1 [default = 5];
optional E e = 1; enum E { A = 0; } => optional E e = 1; enum E { A = 0; B = 1; }
optional group A = 1 { optional int32 x = 1; } => optional A a = 1; message A { optional int32 x = 1; }
extensions 100 to 200; => extensions 100 to 200; extend M { optional int32 more = 100; }
"""


def version(body: str, number: int, syntax: str = "proto3") -> CompiledSchema:
    return version_of(f"message M {{ {body} }}", number, "t.M", syntax)


def compared(old: str, new: str, syntax: str = "proto3") -> SchemaComparison:
    return compare(version(old, 1, syntax), version(new, 2, syntax))


def change_text(change: SchemaChange) -> str:
    refused = ", ".join(direction.value for direction in Direction if direction in change.refused) or "no"
    lines = [f"  {change.path or '(message)'} {change.number}: {change.kind.name} {change.old} -> {change.new}"]
    for name, reading in (("backward", change.backward), ("forward", change.forward)):
        lines.append(f"    {name}: {reading.wire.value}" + (f", {reading.why}" if reading.why else ""))
    lines.append(f"    refused: {refused}; silver: {change.effect.value} {change.silver}".rstrip())
    return "\n".join(lines)


def page(cases: str, syntax: str) -> str:
    lines = []
    for case in cases.strip("\n").split("\n"):
        old, new = (part.strip() for part in case.split("=>"))
        comparison = compared(old, new, syntax)
        lines += [f"{old or 'nothing'} => {new or 'nothing'}", *map(change_text, comparison.changes)]
        modes = ", ".join(mode.value for mode in comparison.modes)
        lines += [f"  modes: {modes}; {'breaks' if comparison.breaks else 'breaks nothing'}", ""]
    return "\n".join(lines)


@pytest.mark.thorough
def test_each_kind_of_change_has_its_verdicts(golden: Golden) -> None:
    golden("compatibility/proto3.txt", page(PROTO3, "proto3"))


def test_what_only_proto2_has_has_its_verdicts(golden: Golden) -> None:
    golden("compatibility/proto2.txt", page(PROTO2, "proto2"))


@pytest.mark.thorough
def test_every_kind_and_every_effect_is_shown_above() -> None:
    cases = [(case.split("=>"), syntax) for text, syntax in ((PROTO3, "proto3"), (PROTO2, "proto2"))
             for case in text.strip("\n").split("\n")]  # fmt: skip
    changes = [change for (old, new), syntax in cases for change in compared(old, new, syntax).changes]
    # an enum changes between closed and open with the syntax of its file only
    assert {change.kind for change in changes} == set(ChangeKind) - {ChangeKind.ENUM_OPENNESS_CHANGED}
    assert {change.effect for change in changes} == set(Effect)
    assert {change.wire for change in changes} == set(WireCompatibility)


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_a_schema_differs_from_itself_in_nothing(schema: Schema) -> None:
    for message in schema.messages:
        one = CompiledSchema(1, "s", 1, message, compiled(schema))
        assert compare(one, one) == SchemaComparison((), (), ())


def test_proto2_and_proto3_differ_in_presence_and_in_closed_enums() -> None:
    body = "enum E { A = 0; }"
    old = version(f"optional E e = 1; repeated int32 n = 2; {body}", 1, "proto2")
    new = version(f"E e = 1; repeated int32 n = 2; {body}", 2, "proto3")
    there = [
        (change.path, change.kind, change.backward.wire, change.forward.wire) for change in compare(old, new).changes
    ]
    assert there == [
        ("e", ChangeKind.PRESENCE_CHANGED, WireCompatibility.LOSS, WireCompatibility.COMPATIBLE),
        ("e", ChangeKind.ENUM_OPENNESS_CHANGED, WireCompatibility.COMPATIBLE, WireCompatibility.LOSS),
        ("n", ChangeKind.PACKED_CHANGED, WireCompatibility.COMPATIBLE, WireCompatibility.COMPATIBLE),
    ]


def test_editions_are_compared_by_their_features_and_not_by_their_syntax() -> None:
    old = version("optional int32 a = 1; repeated int32 n = 2 [packed = true];", 1, "proto2")
    assert compare(old, version("int32 a = 1; repeated int32 n = 2;", 2, "2023")).changes == ()


def test_another_message_name_is_the_same_on_the_wire_and_none_for_a_registry() -> None:
    change = (comparison := compare(version("int32 a = 1;", 1), version_of("message N { int32 a = 1; }", 2))).changes[0]
    assert (change.path, change.kind, change.old, change.new) == ("", ChangeKind.MESSAGE_TYPE_CHANGED, "t.M", "t.N")
    assert (change.wire, comparison.breaks, comparison.modes) == (WireCompatibility.COMPATIBLE, False, (Mode.NONE,))


def test_another_package_is_allowed_in_every_mode() -> None:
    schema = RegisteredSchema(2, "t", 2, 'syntax = "proto3"; package u; message M { int32 a = 1; }', "u.proto")
    comparison = compare(version("int32 a = 1;", 1), compile_schema(schema))
    assert [(change.old, change.new) for change in comparison.changes] == [("t.M", "u.M")]
    assert comparison.modes == (Mode.BACKWARD, Mode.FORWARD, Mode.FULL, Mode.NONE)


def test_recursive_messages_are_told_once() -> None:
    text = RECURSIVE.text.replace("string name = 1;", "int32 name = 1;").replace("bytes raw = 2;", "string raw = 2;")
    old = CompiledSchema(1, "s", 1, "recursive.Holder", compiled(RECURSIVE))
    new = CompiledSchema(2, "s", 2, "recursive.Holder", compiled(Schema("recursive", text, ())))
    comparison = compare(old, new)
    assert [(change.path, change.effect) for change in comparison.changes] == [
        ("ping.pong.raw", Effect.CONFLICT),
        ("pong.raw", Effect.CONFLICT),
        ("tree.name", Effect.CONFLICT),
        ("forest.name", Effect.CONFLICT),
    ]
    assert [conflict.split(" is ")[0] for conflict in comparison.conflicts] == [
        "Column ping.pong.raw",
        "Column pong.raw",
        "Column tree.name",
        "Column forest.element.name",
    ]


def test_what_changes_inside_json_text_changes_the_text() -> None:
    # b.x is JSON text in both: it holds a type that stands around it
    changes = compared("B b = 1; message B { M x = 1; }", "B b = 1; message B { B x = 1; }").changes
    assert [(change.path, change.kind, change.effect, change.silver) for change in changes] == [
        ("b.x", ChangeKind.MESSAGE_TYPE_CHANGED, Effect.NONE, ""),
        ("b.x.x", ChangeKind.FIELD_RENAMED, Effect.OTHER_VALUES, "the JSON text in column b.x changes"),
    ]


def test_types_that_all_hold_each_other_come_to_an_end() -> None:
    names = [f"T{number}" for number in range(5)]
    fields = " ".join(f"{name} {name.lower()} = {number};" for number, name in enumerate(names, start=1))
    bodies = [" ".join(f"message {name} {{ {fields} {x} x = 9; }}" for name in names) for x in ("int32", "sint32")]
    comparison = compared(f"T0 root = 1; {bodies[0]}", f"T0 root = 1; {bodies[1]}")
    assert {change.kind for change in comparison.changes} == {ChangeKind.TYPE_CHANGED}
    # each way through distinct types: 1 + 4 + 4*3 + 4*3*2 + 4*3*2
    assert len(comparison.changes) == 65


def test_too_many_fields_to_compare_are_refused() -> None:
    names = [f"T{number}" for number in range(9)]
    fields = " ".join(f"{name} {name.lower()} = {number};" for number, name in enumerate(names, start=1))
    body = "T0 root = 1; " + " ".join(f"message {name} {{ {fields} }}" for name in names)
    with pytest.raises(SchemaInvalid) as refused:
        compared(body, body)
    assert refused.value.message == "Message 't.M' unfolds into more than 20000 columns."


def test_a_table_keeps_what_earlier_versions_made() -> None:
    first, second, third = (
        version(body, number)
        for number, body in enumerate(
            ("int32 score = 5; string s = 1;", "string s = 1;", "string s = 1; int32 lives = 5;")
        )
    )
    table = table_of([first, second])
    change = compare(second, third, table).changes[0]
    assert (change.kind, change.effect) == (ChangeKind.FIELD_ADDED, Effect.KEEPS_OLD_NAME)
    assert change.silver == "column score keeps its name and gets the values of lives"


def test_a_conflict_that_an_earlier_version_left_is_no_change_and_still_breaks() -> None:
    first, second = version("int32 x = 1;", 1), version("string x = 1;", 2)
    third = version("string x = 1; bool more = 2;", 3)
    comparison = compare(second, third, table_of([first, second]))
    assert [change.effect for change in comparison.changes] == [Effect.ADDS_COLUMN]
    assert comparison.conflicts == ("Column x is INT, the schema writes STRING",)
    assert (comparison.breaks, comparison.added) == (True, ())


def test_a_table_takes_no_columns_of_a_version_that_does_not_fit() -> None:
    versions = [
        version("int32 x = 1;", 1),
        version("string x = 1; bool y = 2;", 2),
        version("repeated int32 z = 3;", 3),
    ]
    assert table_of(versions) == Struct(
        (Column("x", Primitive.INT, 1), Column("z", Array(Primitive.INT), 3)),
    )
    assert silver_columns(versions[0]) == Struct((Column("x", Primitive.INT, 1),))


def test_a_column_is_added_under_the_name_that_it_will_have() -> None:
    change = compared("int32 a = 1;", "int32 a = 1; int32 _schema_id = 2;").changes[0]
    assert change.silver == "adds column _schema_id__2 INT"


@pytest.mark.thorough
def test_five_thousand_changed_fields_are_told_one_by_one() -> None:
    old, new = (" ".join(f"{kind} f{n} = {n};" for n in range(1, 5001)) for kind in ("int32", "int64"))
    comparison = compared(old, new)
    assert len(comparison.changes) == len(comparison.widened) == 5000
