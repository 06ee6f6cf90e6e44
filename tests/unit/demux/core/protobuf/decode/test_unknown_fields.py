"""What a payload holds beyond a row, by its definition, and put back once the columns are there."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import Message
from hypothesis import assume, given
from hypothesis import strategies as st

from demux.core.columns.arrow import project
from demux.core.columns.schema_merge import align
from demux.core.columns.types import Struct
from demux.core.protobuf.decode.decoder import PayloadDecoder
from demux.core.protobuf.decode.rescue_fill import RescueFill
from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of
from demux.core.protobuf.schema.protoc import CompiledSchema
from tests.support.data.messages import filled, payloads
from tests.support.data.versions import growing, version_of

NOTHING: frozenset[str] = frozenset()

OLD = version_of(
    """message Old { string a = 1; Inner one = 2; repeated Inner many = 3; map<string, Inner> by_name = 4; Old same = 6;
      repeated int32 laps = 7; Empty empty = 9; message Inner { int32 x = 1; } message Empty {} }"""
)
NEW = version_of(
    """message Old { string a = 1; Inner one = 2; repeated Inner many = 3; map<string, Inner> by_name = 4; Old same = 6;
      repeated int64 laps = 7; int64 more = 8; Empty empty = 9; map<int32, bool> flags = 10;
      message Inner { int32 x = 1; Inner in = 2; repeated string tags = 3; } message Empty { int32 y = 1; } }"""
)


@lru_cache
def class_of(schema: CompiledSchema) -> type[Message]:
    return message_class(pool_of(FileDescriptorSet.FromString(schema.descriptor_set)), schema.message)


def decoder(schema: CompiledSchema) -> PayloadDecoder:
    return PayloadDecoder(schema.descriptor_set, schema.message, NOTHING)


def rescued(by: PayloadDecoder, made: list[bytes], table: Struct) -> list[bytes | None]:
    """What is left over of payloads that are all good, in their order."""
    decoded = by.decode(made)
    assert decoded.bad == ()
    found: pa.Array = by.rescued(made, decoded, table)
    assert found.type == pa.binary()
    return [left for _, left in sorted(zip(decoded.good, found.to_pylist(), strict=True))]


def rows(by: PayloadDecoder, made: list[bytes], table: Struct) -> list[dict[str, Any]]:
    """The rows in a table's columns, in order of the payloads."""
    decoded = by.decode(made)
    columns = project(decoded.columns, by.columns, table, len(decoded.good))
    found = pa.RecordBatch.from_arrays(columns, names=[column.name for column in table]).to_pylist()
    return [row for _, row in sorted(zip(decoded.good, found, strict=True), key=lambda pair: pair[0])]


def new(**fields: Any) -> bytes:
    return filled(class_of(NEW), **fields).SerializeToString()


@pytest.mark.parametrize(
    ("sent", "left"),
    [
        ({"a": "x", "one": {"x": 1}, "many": [{"x": 1}, {}], "by_name": {"k": {"x": 2}}, "laps": [1]}, {}),
        ({"a": "x", "more": 5, "flags": {1: True}}, {"more": 5, "flags": {1: True}}),
        ({"one": {"x": 1, "in": {"x": 3}}}, {"one": {"in": {"x": 3}}}),
        ({"many": [{"x": 1}, {"x": 2, "tags": ["t"]}, {}]}, {"many": [{}, {"tags": ["t"]}, {}]}),
        (
            {"by_name": {"k": {"x": 1}, "l": {"x": 1, "tags": ["t"]}}},
            {"by_name": {"l": {"tags": ["t"]}}},
        ),
        ({"same": {"a": "in text", "more": 1}}, {"same": {"more": 1}}),
        ({"empty": {"y": 1}}, {"empty": {"y": 1}}),
    ],
)
def test_fields_that_the_schema_does_not_know_are_left_over_where_they_were(
    sent: dict[str, Any], left: dict[str, Any]
) -> None:
    by = decoder(OLD)
    (found,) = rescued(by, [new(**sent)], by.columns)
    assert class_of(NEW).FromString(found or b"") == filled(class_of(NEW), **left)
    assert (found is None) is (not left)


def test_fields_that_the_schema_knows_and_the_table_has_no_column_for_are_left_over_too() -> None:
    table = decoder(OLD).columns
    sent = {"a": "x", "more": 5, "one": {"x": 1, "tags": ["t"]}, "by_name": {"k": {"tags": ["u"]}}}
    plain, full = rescued(decoder(NEW), [new(a="x", laps=[1, 2]), new(**sent)], table)
    del sent["a"]
    sent["one"] = {"tags": ["t"]}
    assert plain is None
    assert class_of(NEW).FromString(full or b"") == filled(class_of(NEW), **sent)


def test_a_required_field_that_has_a_column_is_not_left_over() -> None:
    old = version_of("message M { required In in = 1; message In { required int32 a = 1; } }", syntax="proto2")
    more = version_of(
        "message M { required In in = 1; message In { required int32 a = 1; optional int32 b = 2; } }", syntax="proto2"
    )
    sent = class_of(more)(**{"in": {"a": 1, "b": 2}}).SerializeToString()
    by = decoder(old)
    assert rescued(by, [sent], by.columns) == [b"\x0a\x02\x10\x02"]


def test_what_the_newer_schema_cannot_read_stays_left_over() -> None:
    text = version_of("message Old { string more = 8; }")
    table = align(decoder(OLD).columns, decoder(text).columns).columns
    row = {column.name: None for column in table}
    for leftover in (b"\x40\x05", b"\x42\x01\xff"):
        filling = RescueFill(text.descriptor_set, text.message, NOTHING)
        assert filling.filled(row, leftover, table) == (row, leftover)


def test_a_column_that_is_taken_keeps_its_value_and_the_leftover_its_field() -> None:
    table = decoder(NEW).columns
    row: dict[str, Any] = {column.name: None for column in table} | {"more": 7, "same": '{"a":"in text"}'}
    leftover = new(more=5, flags={1: True}, same={"more": 1})
    filled, rest = RescueFill(NEW.descriptor_set, NEW.message, NOTHING).filled(row, leftover, table)
    assert filled == {**row, "flags": [(1, True)]}
    assert rest == new(more=5, same={"more": 1})


def test_where_nothing_is_placed_the_leftover_stays_as_it_is() -> None:
    table = decoder(OLD).columns
    row: dict[str, Any] = {column.name: None for column in table} | {"one": {"x": 1}}
    # the older schema would write what it knows first
    leftover = new(flags={1: True}) + new(one={"tags": ["t"]})
    for schema in (OLD, NEW):
        assert RescueFill(schema.descriptor_set, schema.message, NOTHING).filled(row, leftover, table) == (
            row,
            leftover,
        )


def as_sent(filled: Any, decoded: Any) -> bool:
    """Whether the values are equal but for NULLs where the newer schema has the default of what was not sent."""
    if filled is None and (not decoded or (isinstance(decoded, str) and decoded.endswith("_ZERO"))):
        return True
    if isinstance(decoded, dict):
        # the stand-in of a message without fields says which version wrote
        own = [(name, value) for name, value in decoded.items() if name != "_empty"]
        return isinstance(filled, dict) and all(as_sent(filled[name], value) for name, value in own)
    if isinstance(decoded, (list, tuple)):
        if not isinstance(filled, type(decoded)) or len(filled) != len(decoded):
            return False
        if isinstance(decoded, list) and all(isinstance(item, tuple) for item in decoded):
            # the pairs of a map have no order
            filled, decoded = (sorted(pairs, key=lambda pair: repr(pair[0])) for pairs in (filled, decoded))
        return all(map(as_sent, filled, decoded))
    return bool(filled == decoded or (filled != filled and decoded != decoded))


@given(growing(), st.integers(0, 2**32))
def test_a_row_and_what_was_left_over_make_the_row_of_the_newer_schema(
    pair: tuple[CompiledSchema, CompiledSchema], seed: int
) -> None:
    old, later = (decoder(schema) for schema in pair)
    table = align(old.columns, later.columns).columns
    assume(table.columns)
    made = payloads(class_of(pair[1]), seed, 4)
    made = [
        payload for at, payload in enumerate(made) if not old.decode([payload]).bad and not later.decode([payload]).bad
    ]
    left = rescued(old, made, table)
    filling = RescueFill(pair[1].descriptor_set, pair[1].message, NOTHING)
    for before, after, leftover in zip(rows(old, made, table), rows(later, made, table), left, strict=True):
        filled, rest = (before, None) if leftover is None else filling.filled(before, leftover, table)
        assert as_sent(filled, after)
        assert rest is None
