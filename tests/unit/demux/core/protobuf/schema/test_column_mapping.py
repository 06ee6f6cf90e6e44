from __future__ import annotations

import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from demux.core.columns.types import EMPTY_STRUCT, Array, Column, ColumnType, Map, Primitive, Struct, sql_name
from demux.core.errors import SchemaInvalid
from demux.core.protobuf.schema.column_mapping import (
    Cardinality,
    Enumeration,
    FieldPresence,
    JsonText,
    Message,
    columns_of,
    shape_of,
)
from demux.core.protobuf.schema.descriptor_pool import pool_of
from tests.support.data.protos import (
    ALL_DELIMITED,
    CASES,
    EDITION_2023,
    NAMES,
    PROTO2,
    PROTO3,
    RECURSIVE,
    WELL_KNOWN,
    Schema,
    compiled,
    of_text,
    wide,
)
from tests.support.oracle import column_names

SCALAR_TYPES = {
    "int32": "INT",
    "int64": "BIGINT",
    "uint32": "BIGINT",
    "uint64": "DECIMAL(20,0)",
    "sint32": "INT",
    "sint64": "BIGINT",
    "bool": "BOOLEAN",
    "fixed32": "BIGINT",
    "fixed64": "DECIMAL(20,0)",
    "sfixed32": "INT",
    "sfixed64": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "bytes": "BINARY",
    "mood": "STRING",
}


def descriptor_of(schema: Schema, message: str) -> Descriptor:
    return pool_of(FileDescriptorSet.FromString(compiled(schema))).FindMessageTypeByName(message)


def shape(schema: Schema, message: str, reserved: frozenset[str] = frozenset()) -> Message:
    return shape_of(descriptor_of(schema, message), reserved)


def sql(schema: Schema, message: str) -> dict[str, str]:
    return {column.name: sql_name(column.type) for column in columns_of(shape(schema, message))}


def presences(schema: Schema, message: str) -> dict[str, FieldPresence]:
    return {field.name: field.presence for field in shape(schema, message).fields}


@pytest.mark.parametrize(("message", "form"), [("Singular", "{}"), ("Optional", "{}"), ("Repeated", "ARRAY<{}>")])
def test_every_scalar_has_its_column_type(message: str, form: str) -> None:
    types = sql(PROTO3, f"kinds3.{message}")
    assert {name: types[f"f_{name}"] for name in SCALAR_TYPES} == {
        name: form.format(column) for name, column in SCALAR_TYPES.items()
    }


def test_maps_have_the_types_of_their_keys_and_values() -> None:
    assert sql(PROTO3, "kinds3.MapKeys")["f_fixed64"] == "MAP<DECIMAL(20,0), INT>"
    assert sql(PROTO3, "kinds3.MapKeys")["f_uint32"] == "MAP<BIGINT, INT>"
    assert sql(PROTO3, "kinds3.MapValues")["f_mood"] == "MAP<STRING, STRING>"
    inner = "STRUCT<id: INT, text: STRING, maybe: BIGINT, list: ARRAY<DOUBLE>>"
    assert sql(PROTO3, "kinds3.MapValues")["f_inner"] == f"MAP<STRING, {inner}>"


def test_wrappers_are_their_scalars() -> None:
    types = sql(WELL_KNOWN, "known.Wrappers")
    assert types["one_uint64value"] == "DECIMAL(20,0)"
    assert types["one_uint32value"] == "BIGINT"
    assert types["one_bytesvalue"] == "BINARY"
    assert types["many_boolvalue"] == "ARRAY<BOOLEAN>"


def test_well_known_types_have_their_own_columns() -> None:
    assert sql(WELL_KNOWN, "known.Times") == {
        "one": "TIMESTAMP",
        "many": "ARRAY<TIMESTAMP>",
        "by_name": "MAP<STRING, TIMESTAMP>",
        "took": "STRUCT<seconds: BIGINT, nanos: INT>",
        "laps": "ARRAY<STRUCT<seconds: BIGINT, nanos: INT>>",
        "at": "TIMESTAMP",
        "text": "STRING",
    }
    assert set(sql(WELL_KNOWN, "known.Json").values()) == {"STRING", "ARRAY<STRING>", "MAP<STRING, STRING>"}
    assert sql(WELL_KNOWN, "known.Others")["mask"] == "STRUCT<paths: ARRAY<STRING>>"
    assert sql(WELL_KNOWN, "known.Others")["empties"] == "ARRAY<STRUCT<_empty: BOOLEAN>>"


def test_presence_follows_the_syntax() -> None:
    assert set(presences(PROTO3, "kinds3.Optional").values()) == {FieldPresence.EXPLICIT}
    singular = presences(PROTO3, "kinds3.Singular")
    assert {name for name, presence in singular.items() if presence is FieldPresence.EXPLICIT} == {"f_inner"}
    assert set(presences(PROTO2, "kinds2.Required").values()) == {FieldPresence.REQUIRED}
    assert set(presences(PROTO2, "kinds2.Defaults").values()) == {FieldPresence.EXPLICIT}
    assert set(presences(EDITION_2023, "kinds2023.Explicit").values()) == {FieldPresence.EXPLICIT}
    assert set(presences(EDITION_2023, "kinds2023.Implicit").values()) == {FieldPresence.IMPLICIT}
    assert presences(EDITION_2023, "kinds2023.Mixed")["must"] is FieldPresence.REQUIRED
    members = presences(PROTO3, "kinds3.OneOf")
    assert {name for name, presence in members.items() if presence is FieldPresence.IMPLICIT} == {"before", "after"}


def test_an_enum_has_the_first_name_of_each_number() -> None:
    (mood,) = [f.value for f in shape(PROTO3, "kinds3.Singular").fields if f.name == "f_mood"]
    assert mood == Enumeration(((0, "CALM"), (-1, "ANGRY"), (2, "GLAD"), (2147483647, "HUGE")), is_closed=False)


def test_lists_know_whether_they_are_packed() -> None:
    def packed(schema: Schema, message: str) -> set[bool]:
        return {field.packed for field in shape(schema, message).fields}

    assert packed(PROTO3, "kinds3.Expanded") == {False}
    assert packed(PROTO2, "kinds2.Lists") == {False}
    assert packed(PROTO2, "kinds2.Packed") == {True}
    mixed = {field.name: field.packed for field in shape(EDITION_2023, "kinds2023.Mixed").fields}
    assert (mixed["expanded"], mixed["packed"], mixed["closed"]) == (False, True, True)


def test_groups_and_what_stands_in_groups_are_delimited() -> None:
    def groups(schema: Schema, message: str) -> set[str]:
        return {field.name for field in shape(schema, message).fields if field.delimited}

    assert groups(PROTO2, "kinds2.Groups") == {"single", "many", "chosen"}
    assert groups(EDITION_2023, "kinds2023.Delimited") == {"inner", "inners"}
    assert groups(ALL_DELIMITED, "delimited.Root") == {"maps", "inners"}
    assert groups(ALL_DELIMITED, "delimited.Maps") == set()
    (bag, _) = shape(PROTO2, "kinds2.HasBag").fields
    assert isinstance(bag.value, Message)
    assert [(field.name, field.delimited) for field in bag.value.fields] == [("kinds2_Item_item", True)]


def test_extensions_are_columns_by_their_full_name_in_order_of_number() -> None:
    assert [(field.number, field.name) for field in shape(PROTO2, "kinds2.Extended").fields] == [
        (1, "own"),
        (100, "kinds2_note"),
        (101, "kinds2_Scope_note"),
        (102, "kinds2_Scope_closed"),
        (103, "kinds2_inner"),
        (104, "kinds2_words"),
        (105, "kinds2_many"),
        (106, "kinds2_mood"),
        (107, "kinds2_ownn"),
        (108, "kinds2_sub"),
    ]


def test_a_type_inside_itself_is_json_text_there() -> None:
    tree = {field.name: field for field in shape(RECURSIVE, "recursive.Tree").fields}
    assert [tree[name].value for name in ("left", "children", "by_name")] == [JsonText("recursive.Tree")] * 3
    assert tree["children"].cardinality is Cardinality.REPEATED
    assert sql(RECURSIVE, "recursive.Ping")["pong"] == "STRUCT<pings: ARRAY<STRING>, raw: BINARY>"
    assert sql(RECURSIVE, "recursive.Pong")["pings"].startswith("ARRAY<STRUCT<pong: STRING, count: BIGINT,")


def test_names_that_differ_only_in_case_are_told_apart_by_number_the_lowest_first() -> None:
    assert [field.name for field in shape(NAMES, "names.Cases").fields] == [
        "name__3",
        "NAME__2",
        "Name",
        "name__3__4",
        "deep",
    ]


def test_reserved_names_are_avoided_at_the_top_only() -> None:
    reserved = frozenset({"_schema_id", "_decoded_at"})
    top = [field.name for field in shape(NAMES, "names.Reserved", reserved).fields]
    assert top == ["_schema_id__1", "_Decoded_At__2", "_offset", "_empty"]
    deep = next(field.value for field in shape(NAMES, "names.Cases", reserved).fields if field.name == "deep")
    assert isinstance(deep, Message)
    assert [field.name for field in deep.fields] == ["a", "A__2", "_schema_id"]


@pytest.mark.parametrize(("schema", "message"), CASES)
def test_names_are_those_of_the_rule_written_down_twice(schema: Schema, message: str) -> None:
    reserved = frozenset({"_schema_id", "f_int32"})
    names = {field.number: field.name for field in shape(schema, message, reserved).fields}
    assert names == column_names(descriptor_of(schema, message), reserved)


@pytest.mark.parametrize(("schema", "message"), CASES)
def test_no_level_has_two_names_that_are_equal_without_case(schema: Schema, message: str) -> None:
    def check(column_type: ColumnType) -> None:
        match column_type:
            case Struct(columns):
                assert len({column.name.lower() for column in columns}) == len(columns)
                for column in columns:
                    check(column.type)
            case Array(inside) | Map(_, inside):
                check(inside)

    check(columns_of(shape(schema, message)))


def test_a_message_without_fields_is_a_flag_inside_and_no_column_at_the_top() -> None:
    assert columns_of(shape(PROTO3, "kinds3.Empty")) == Struct(())
    nested = columns_of(shape(PROTO3, "kinds3.Nested")).by_number()
    assert nested[3] == Column("empty", EMPTY_STRUCT, 3)
    assert nested[4].type == Array(EMPTY_STRUCT)
    assert nested[5].type == Map(Primitive.STRING, EMPTY_STRUCT)


def test_five_thousand_fields_are_five_thousand_columns() -> None:
    assert len(shape(wide(5000), "wide.Wide").fields) == 5000


def test_a_message_that_unfolds_without_end_is_refused_with_its_name() -> None:
    every = " ".join(f"M{other} f{other} = {other};" for other in range(1, 10))
    text = "\n".join(f"message M{one} {{ {every} }}" for one in range(1, 10))
    descriptor_set, message, _ = of_text(text)
    with pytest.raises(SchemaInvalid, match=r"'t\.M1' unfolds into more than 20000 columns"):
        shape_of(pool_of(FileDescriptorSet.FromString(descriptor_set)).FindMessageTypeByName(message))
