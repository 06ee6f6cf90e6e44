"""Whether columns can be fields: by name and Spark type, all mistakes at once."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import StructType

from demux.core.columns.spark import spark_struct
from demux.core.protobuf.decode.decoder import decoder_of
from demux.core.protobuf.encode.message_column import column_mistakes
from tests.support.data.protos import CASES, Schema, compiled, of_text

TEXT = """import "google/protobuf/timestamp.proto";
message M { int32 number = 1; uint64 large = 2; string text = 3; N one = 4; repeated N all = 5;
  map<string, int32> m = 6;
   google.protobuf.Timestamp at = 7; float rate = 8; bool Flag = 9; }
message N { repeated bytes parts = 1; Empty nothing = 2; }
message Empty {}"""


def mistakes(columns: Any, text: str = TEXT, syntax: str = "proto3") -> list[str]:
    schema, message, _ = of_text(text, syntax=syntax)
    return list(column_mistakes(decoder_of(schema, message).shape, StructType.fromJson(of_type(columns))))


def of_type(kind: Any) -> Any:
    """A type in Spark's JSON: a dict or pairs are a struct, a list an array, a tuple of two a map."""
    match kind:
        case [(_, _), *_]:
            fields = [{"name": name, "type": of_type(one), "nullable": True, "metadata": {}} for name, one in kind]
            return {"type": "struct", "fields": fields}
        case dict():
            return of_type(list(kind.items())) if kind else {"type": "struct", "fields": []}
        case (key, value):
            return {"type": "map", "keyType": key, "valueType": of_type(value), "valueContainsNull": True}
        case [element]:
            return {"type": "array", "elementType": of_type(element), "containsNull": True}
        case _:
            return kind


@pytest.mark.parametrize(("schema", "message"), CASES)
def test_the_columns_of_a_message_are_its_fields(schema: Schema, message: str) -> None:
    by = decoder_of(compiled(schema), message)
    assert list(column_mistakes(by.shape, spark_struct(by.columns))) == []


@pytest.mark.parametrize(
    "columns",
    [
        {"number": "byte"},
        {"number": "long"},
        {"number": "decimal(9,0)"},
        {"large": "short", "NUMBER": "short"},
        {"flag": "boolean", "text": "string"},
        {"one": {"parts": ["binary"], "nothing": {"_empty": "boolean"}}},
        {"one": {}},
        {"all": [{"PARTS": ["binary"]}], "m": ("string", "long")},
        {"text": "void", "all": ["void"]},
    ],
    ids=str,
)
def test_narrower_wider_and_absent_columns_are_fine(columns: Any) -> None:
    assert mistakes(columns) == []


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"nmber": "integer"}, "t.M has no field for the column nmber. The nearest is number."),
        ({"zzz": "integer"}, "t.M has no field for the column zzz."),
        ({"number": "string"}, "Column number is STRING, and its field takes INT."),
        ({"number": "decimal(9,2)"}, "Column number is DECIMAL(9,2), and its field takes INT."),
        ({"large": "double"}, "Column large is DOUBLE, and its field takes DECIMAL(20,0)."),
        ({"rate": "double"}, "Column rate is DOUBLE, and its field takes FLOAT."),
        ({"at": "timestamp_ntz"}, "Column at is TIMESTAMP_NTZ, and its field takes TIMESTAMP."),
        ({"at": "string"}, "Column at is STRING, and its field takes TIMESTAMP."),
        ({"one": ["integer"]}, "Column one is ARRAY<INT>, and its field takes STRUCT<"),
        ({"all": {"parts": ["binary"]}}, "Column all is STRUCT<PARTS:ARRAY<BINARY>>, and its field takes ARRAY<"),
        ({"all": [{"part": "integer"}]}, "t.N has no field for the column all.element.part. The nearest is parts."),
        ({"m": ("integer", "integer")}, "Column m.key is INT, and its field takes STRING."),
        ({"m": ("string", "boolean")}, "Column m.value is BOOLEAN, and its field takes INT."),
        ({"one": {"parts": ["string"]}}, "Column one.parts.element is STRING, and its field takes BINARY."),
        ({"text": "string", "TEXT": "string"}, "There are two columns TEXT."),
    ],
    ids=str,
)
def test_a_column_that_is_no_field_says_why(columns: Any, sentence: str) -> None:
    (found,) = mistakes(columns)
    assert found.startswith(sentence)


def test_a_column_of_an_older_version_says_what_its_field_is_called_now() -> None:
    older, message, _ = of_text("message M { int32 old = 1; N n = 2; } message N { string was = 7; }")
    newer, _, _ = of_text("message M { int32 new = 1; N n = 2; } message N { string is = 7; }")
    columns = spark_struct(decoder_of(older, message).columns)
    assert list(column_mistakes(decoder_of(newer, message).shape, columns)) == [
        "t.M has no field for the column old. Field 1 is called new.",
        "t.N has no field for the column n.was. Field 7 is called is.",
    ]


def test_a_required_field_needs_a_column() -> None:
    text = "message M { required int32 a = 1; optional N n = 2; } message N { required int32 b = 1; }"
    assert mistakes({"n": {}}, text, "proto2") == [
        "The field n.b is required, and has no column.",
        "The field a is required, and has no column.",
    ]
