from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from demux.core.columns.arrow import arrow_type
from demux.core.errors import SchemaInvalid
from demux.core.protobuf.decode.decoder import DecodedBatch, PayloadDecoder, decoder_of
from tests.support.data.messages import payloads
from tests.support.data.mutations import VARINT, Element, delimited, elements, shuffled, varint, written
from tests.support.data.protos import (
    CASES,
    NAMES,
    PROTO2,
    PROTO3,
    WELL_KNOWN,
    Schema,
    compiled,
    message_type,
    of_text,
    wide,
)
from tests.support.oracle import Row, arrow_rows, difference, oracle_row

NOTHING: frozenset[str] = frozenset()


def decoder(schema: Schema, message: str, reserved: frozenset[str] = NOTHING) -> PayloadDecoder:
    return decoder_of(compiled(schema), message, reserved)


def inline(text: str, syntax: str = "proto3") -> PayloadDecoder:
    descriptor_set, message, _ = of_text(text, syntax=syntax)
    return PayloadDecoder(descriptor_set, message, NOTHING)


def rows_of(by: PayloadDecoder, decoded: DecodedBatch) -> dict[int, Row]:
    """The rows by position; the arrays are checked for their types and for sound insides."""
    for array, column in zip(decoded.columns, by.columns, strict=True):
        array.validate(full=True)
        assert array.type == arrow_type(column.type)
        assert len(array) == len(decoded.good)
    names = [column.name for column in by.columns]
    rows = arrow_rows(decoded.columns, names) if names else [{} for _ in decoded.good]
    return dict(zip(decoded.good, rows, strict=True))


def assert_rows_are_the_oracles(
    by: PayloadDecoder, cls: Any, made: Sequence[bytes], reserved: frozenset[str] = NOTHING
) -> None:
    decoded = by.decode(made)
    assert decoded.bad == ()
    rows = rows_of(by, decoded)
    assert sorted(rows) == list(range(len(made)))
    for position, row in rows.items():
        assert difference(oracle_row(cls.FromString(made[position]), cls.DESCRIPTOR, reserved), row) is None


@pytest.mark.parametrize(("schema", "message"), CASES)
def test_every_kind_of_field_becomes_what_the_column_rules_say(schema: Schema, message: str) -> None:
    cls = message_type(schema, message)
    assert_rows_are_the_oracles(decoder(schema, message), cls, payloads(cls, seed=11, count=40))


@pytest.mark.thorough
def test_five_thousand_columns_become_what_the_column_rules_say() -> None:
    schema = wide(5000)
    cls = message_type(schema, "wide.Wide")
    assert_rows_are_the_oracles(decoder(schema, "wide.Wide"), cls, payloads(cls, seed=1, count=4, density=0.1))


def test_reserved_names_are_kept_free() -> None:
    reserved = frozenset({"_schema_id", "_decoded_at"})
    cls = message_type(NAMES, "names.Reserved")
    by = decoder(NAMES, "names.Reserved", reserved)
    assert [column.name for column in by.columns] == ["_schema_id__1", "_Decoded_At__2", "_offset", "_empty"]
    assert_rows_are_the_oracles(by, cls, payloads(cls, seed=1, count=5), reserved)


@pytest.mark.parametrize(("schema", "message"), CASES)
def test_fields_in_another_order_give_the_same_rows(schema: Schema, message: str) -> None:
    cls: Any = message_type(schema, message)
    made = payloads(cls, seed=12, count=10)
    # the values of one list keep their order
    mixed = [written(sorted(elements(payload), key=lambda part: part.number % 7)) for payload in made]
    by = decoder(schema, message)
    rows = rows_of(by, by.decode(mixed))
    expected = [oracle_row(cls.FromString(payload), cls.DESCRIPTOR) for payload in made]
    assert [difference(expected[at], rows[at]) for at in range(10)] == [None] * 10


def test_a_message_without_fields_has_rows_without_columns() -> None:
    decoded = decoder(PROTO3, "kinds3.Empty").decode([b"", b"\xff", b"\x08\x01"])
    assert decoded.columns == []
    assert decoded.good == (0, 2)
    assert [position for position, _ in decoded.bad] == [1]


@pytest.mark.parametrize(("schema", "message"), CASES)
def test_no_payloads_give_empty_columns_of_the_right_types(schema: Schema, message: str) -> None:
    by = decoder(schema, message)
    decoded = by.decode([])
    assert (decoded.good, decoded.bad) == ((), ())
    assert [array.type for array in decoded.columns] == [arrow_type(column.type) for column in by.columns]
    assert rows_of(by, decoded) == {}


TEXT = """import "google/protobuf/timestamp.proto";
message M { int32 x = 1; google.protobuf.Timestamp at = 2; map<string, int32> m = 3;
  repeated google.protobuf.Timestamp l = 4; map<int32, N> n = 5; string s = 6; }
message N { google.protobuf.Timestamp at = 1; repeated N inside = 2; }"""
LATE = written([Element(1, VARINT, varint(253_402_300_800))])
BAD = {
    "truncated": b"\x08",
    "wrong wire type": delimited(1, b"x").written(),
    "bad text": delimited(6, b"\xff").written(),
    "late": delimited(2, LATE).written(),
    "late in a list": written([delimited(4, b""), delimited(4, LATE), delimited(4, b"")]),
    "late in a map": delimited(5, b"\x08\x01" + delimited(2, delimited(1, LATE).written()).written()).written(),
    "late in JSON": delimited(
        5, b"\x08\x01" + delimited(2, delimited(2, delimited(1, LATE).written()).written()).written()
    ).written(),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("place", [0, 1, 4])
def test_a_bad_row_costs_only_itself(bad: bytes, place: int) -> None:
    by = inline(TEXT)
    good = [Element(1, VARINT, bytes([number])).written() for number in range(1, 5)]
    decoded = by.decode([*good[:place], bad, *good[place:]])
    assert [position for position, _ in decoded.bad] == [place]
    rows = rows_of(by, decoded)
    assert [rows[position]["x"] for position in sorted(rows)] == [1, 2, 3, 4]
    assert place not in rows


def test_all_rows_bad_give_empty_columns_and_a_sentence_for_each() -> None:
    by = inline(TEXT)
    decoded = by.decode(list(BAD.values()))
    assert decoded.good == ()
    assert [position for position, _ in decoded.bad] == list(range(len(BAD)))
    assert all(sentence for _, sentence in decoded.bad)
    assert rows_of(by, decoded) == {}


def test_a_key_that_comes_twice_counts_once_with_its_last_value() -> None:
    by = inline(TEXT)
    entries = [delimited(3, b"\x0a\x01" + key + b"\x10" + value) for key, value in ((b"a", b"\x01"), (b"b", b"\x02"))]
    twice = written([*entries, delimited(3, b"\x0a\x01a\x10\x03")])
    rows = rows_of(by, by.decode([written(entries), twice, written(entries)]))
    assert [sorted(rows[position]["m"]) for position in range(3)] == [
        [("a", 1), ("b", 2)],
        [("a", 3), ("b", 2)],
        [("a", 1), ("b", 2)],
    ]


def test_keys_are_doubled_only_within_one_map() -> None:
    by = inline("message M { repeated N n = 1; } message N { map<int32, bool> m = 1; }")
    one = delimited(1, delimited(1, b"\x08\x05\x10\x01").written())
    twice = delimited(1, delimited(1, b"\x08\x05\x10\x01").written() * 2)
    rows = rows_of(by, by.decode([written([one, one]), written([one, twice])]))
    once = {"n": [{"m": [(5, True)]}, {"m": [(5, True)]}]}
    assert rows == {0: once, 1: once}


def test_an_entry_without_key_or_value_has_their_defaults() -> None:
    by = inline("message M { map<int32, N> n = 1; map<string, int32> m = 2; } message N { int32 x = 1; }")
    rows = rows_of(by, by.decode([written([delimited(1, b""), delimited(2, b"")])]))
    assert rows == {0: {"n": [(0, {"x": 0})], "m": [("", 0)]}}


def test_a_message_set_is_read() -> None:
    item = delimited(2000, b"")
    (number, content) = (varint(2000), b"\x0a\x01a")
    group = b"\x0b\x10" + number + b"\x1a" + varint(len(content)) + content + b"\x0c"
    rows = rows_of(by := decoder(PROTO2, "kinds2.HasBag"), by.decode([delimited(1, group).written(), item.written()]))
    assert rows[0] == {"bag": {"kinds2_Item_item": {"name": "a"}}, "x": None}


class Panic(BaseException):
    """What a Rust panic is in Python: no `Exception`."""


class Fragile:
    """A fast parser that panics at payloads that it has not the nerves for."""

    def __init__(self, parser: Any, fatal: bytes, complaint: BaseException) -> None:
        self._parser, self._fatal, self._complaint = parser, fatal, complaint

    def array_to_record_batch(self, batch: pa.Array) -> pa.RecordBatch:
        if self._fatal in batch.to_pylist():
            raise self._complaint
        return self._parser.array_to_record_batch(batch)


@pytest.mark.parametrize("count", [1, 2, 7, 64])
@pytest.mark.parametrize("complaint", [Panic("boom"), ValueError("no"), MemoryError()])
def test_a_panic_of_the_fast_parser_does_not_escape_and_loses_no_row(count: int, complaint: BaseException) -> None:
    made = [Element(1, VARINT, varint(number)).written() for number in range(1, count + 1)]
    for fatal in (made[0], made[-1], made[count // 2]):
        by = inline(TEXT)
        by._fast = Fragile(by._fast, fatal, complaint)
        decoded = by.decode(made)
        rows = rows_of(by, decoded)
        assert decoded.bad == ()
        assert [rows[position]["x"] for position in range(count)] == list(range(1, count + 1))


@pytest.mark.parametrize("complaint", [KeyboardInterrupt(), SystemExit(3)])
def test_an_interrupt_is_no_panic(complaint: BaseException) -> None:
    by = inline(TEXT)
    by._fast = Fragile(by._fast, b"\x08\x01", complaint)
    with pytest.raises(type(complaint)):
        by.decode([b"\x08\x01", b"\x08\x02"])


def test_a_set_without_the_message_is_refused_with_its_name() -> None:
    with pytest.raises(SchemaInvalid, match=r"no message 'kinds3\.Nothing'"):
        PayloadDecoder(compiled(PROTO3), "kinds3.Nothing", NOTHING)


def test_the_same_message_has_one_decoder() -> None:
    first = decoder_of(compiled(WELL_KNOWN), "known.Json", NOTHING)
    again = decoder_of(bytes(bytearray(compiled(WELL_KNOWN))), "known.Json", frozenset())
    other = decoder_of(compiled(WELL_KNOWN), "known.Json", frozenset({"any"}))
    assert (again is first, other is first) == (True, False)


def test_lists_keep_their_order_and_rows_theirs_when_the_two_ways_are_mixed() -> None:
    by, rng = inline("message M { repeated int32 l = 1; int32 x = 2; }"), random.Random(5)
    packed = [written([delimited(1, bytes([at, at + 1])), Element(2, VARINT, bytes([at + 1]))]) for at in range(40)]
    # unpacked values are for the reference, packed ones for the fast parser
    single = [
        written([*[Element(1, VARINT, bytes([at + more])) for more in (0, 1)], Element(2, VARINT, bytes([at + 1]))])
        for at in range(40)
    ]
    mixed = [rng.choice(pair) for pair in zip(packed, single, strict=True)]
    rows = rows_of(by, by.decode(mixed))
    assert [rows[at] for at in range(40)] == [{"l": [at, at + 1], "x": at + 1} for at in range(40)]


def test_shuffling_a_batch_shuffles_its_rows() -> None:
    cls = message_type(PROTO3, "kinds3.Nested")
    by, rng = decoder(PROTO3, "kinds3.Nested"), random.Random(6)
    made = payloads(cls, seed=6, count=30)
    made[3::7] = [written(shuffled(elements(payload), {}, rng)) + b"\xc0\x3e\x01" for payload in made[3::7]]
    order = rng.sample(range(30), 30)
    straight, other = rows_of(by, by.decode(made)), rows_of(by, by.decode([made[at] for at in order]))
    assert [repr(other[place]) for place in range(30)] == [repr(straight[at]) for at in order]


def test_a_slice_of_an_array_is_decoded_as_the_same_payloads_in_a_list() -> None:
    cls: Any = message_type(PROTO3, "kinds3.Nested")
    by, made = decoder(PROTO3, "kinds3.Nested"), payloads(cls, seed=9, count=12)
    decoded = by.decode(pa.array([b"\xff", *made, b"\xff"], pa.binary()).slice(1, 12))
    rows = rows_of(by, decoded)
    assert (sorted(rows), decoded.bad) == (list(range(12)), ())
    for position, row in rows.items():
        assert difference(oracle_row(cls.FromString(made[position]), cls.DESCRIPTOR, NOTHING), row) is None
