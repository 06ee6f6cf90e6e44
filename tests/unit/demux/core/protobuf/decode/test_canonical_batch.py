"""What is proven canonical for a whole batch is canonical for the slow test too, and ordinary payloads are proven."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from hypothesis import given
from hypothesis import strategies as st

from demux.core.protobuf.decode.arrow_columns import ArrowRules
from demux.core.protobuf.decode.canonical_batch import (
    Parser,
    Payloads,
    QuickCheck,
    can_parse,
    parser,
    quick_check,
    read_all,
)
from demux.core.protobuf.decode.canonical_form import Canonical
from demux.core.protobuf.decode.decoder import decoder_of
from demux.core.protobuf.decode.lowered_descriptor import lower_message
from demux.core.protobuf.schema.column_mapping import Message, shape_of
from demux.core.protobuf.schema.descriptor_pool import Readable, has_required, message_class, pool_of
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.protocol import RegisteredSchema
from producer.events import EventWriter, random_words
from producer.events import payloads as event_payloads
from producer.schemas import games, proto_path, proto_text
from tests.support.data.messages import filled, payloads
from tests.support.data.mutations import (
    FIXED32,
    FIXED64,
    LENGTH,
    START,
    VARINT,
    Element,
    delimited,
    elements,
    mutated,
    varint,
    written,
)
from tests.support.data.protos import CASES, Schema, compiled, message_type, of_text, wide

TEXT = """
import "google/protobuf/timestamp.proto"; import "google/protobuf/any.proto";
enum Side { LEFT = 0; RIGHT = 1; BACK = -1; }
message Empty {}
message Inner { int32 x = 1; oneof o { int32 a = 2; string b = 3; Empty none = 4; } Inner again = 5; }
message M { string name = 1; int32 id = 2; bytes body = 3; optional int32 maybe = 4; bool yes = 5; uint64 big = 6;
  sint64 zigzag = 7; double score = 8; fixed32 code = 9; Inner inner = 10; repeated int32 list = 11;
  oneof o { int32 a = 12; string b = 13; Inner c = 14; } repeated string names = 15; repeated Inner inners = 16;
  map<string, int64> counts = 17; map<int32, Inner> by_id = 18; repeated Side sides = 19; Side side = 20;
  repeated double loose = 21 [packed = false]; google.protobuf.Timestamp at = 22; google.protobuf.Any any = 23;
  Empty empty = 24; uint32 far = 2000; optional float share = 2001; }
"""
DESCRIPTOR_SET, _, MESSAGE = of_text(TEXT, message="t.M")


@dataclass(frozen=True)
class Quick:
    """The quick look as a decoder has it."""

    reader: Parser
    check: QuickCheck
    rules: ArrowRules
    shape: Message

    def proven(self, payloads: Payloads) -> list[bool]:
        read = read_all(self.reader, payloads)
        flags: list[bool] = [False] * len(payloads) if read is None else self.check.proven(payloads, read).tolist()
        return flags

    def left_to_the_rules(self, payload: bytes) -> bool:
        """Whether the reference decides about the payload though it is proven."""
        read = read_all(self.reader, Payloads.of([payload]))
        return read is not None and bool(len(self.rules.columns(read, self.shape)[1]))


def both_of(descriptor_set: bytes, message: str) -> tuple[Canonical, Quick]:
    """The slow test and the quick look at the same message."""
    files = FileDescriptorSet.FromString(descriptor_set)
    pool = pool_of(files)
    readable = Readable(files, pool, message)
    shape = shape_of(readable.declared)
    check = QuickCheck(readable.declared, shape)
    return Canonical(readable), Quick(parser(lower_message(shape, "proto3")), check, ArrowRules(pool), shape)


def has_quick_look(schema: Schema, message: str) -> bool:
    """Whether there is one for the message, if it is small."""
    descriptor: Any = message_type(schema, message).DESCRIPTOR
    shape = shape_of(descriptor)
    return can_parse(shape) and not has_required(descriptor)


SLOW, QUICK = both_of(DESCRIPTOR_SET, "t.M")
KINDS = [(schema, message) for schema, message in CASES if has_quick_look(schema, message)]
ELEMENTS = st.builds(
    Element,
    st.sampled_from([*range(1, 25), 99, 2000, 2001]),
    st.sampled_from([VARINT, LENGTH, LENGTH, FIXED32, FIXED64, START]),
    st.one_of(
        st.binary(max_size=12),
        st.sampled_from([b"\x00", b"\x01", b"\x03abc", b"\x00" * 8, b"\x00" * 7 + b"\x80", b"\x01\x00\x00\x00"]),
        # messages, entries of a map, and a member of a oneof beside another one
        st.sampled_from([b"\x02\x08\x01", b"\x02\x08\x00", b"\x04\x10\x01\x1a\x00", b"\x05\x0a\x01k\x10\x00", b"\x7f"]),
        st.sampled_from([b"\x02\x22\x00", b"\x04\x22\x02\x08\x01", b"\x04\x08\x01\x12\x00", b"\x02\x2a\x00"]),
        st.integers(0, 2**64 - 1).map(varint),
        st.binary(max_size=9).map(lambda content: varint(len(content)) + content),
    ),
)


def assert_all_proven_are_canonical(slow: Canonical, quick: Quick, made: list[bytes]) -> None:
    canonical = set(slow.split(made)[0])
    # alone too: beside one that cannot be read, none is proven
    alone = {at for at, payload in enumerate(made) if proven(quick, payload) == [True]}
    together = {at for at, flag in enumerate(proven(quick, *made)) if flag}
    assert together <= alone <= canonical | {at for at in alone if quick.left_to_the_rules(made[at])}


def proven(quick: Quick, *made: bytes) -> list[bool]:
    return quick.proven(Payloads.of(list(made)))


@given(st.lists(st.lists(ELEMENTS, max_size=6).map(written), max_size=8))
def test_what_is_proven_is_canonical(made: list[bytes]) -> None:
    assert_all_proven_are_canonical(SLOW, QUICK, made)


@given(
    st.lists(
        st.lists(ELEMENTS, max_size=6).map(lambda parts: written(sorted(parts, key=lambda e: e.number))), max_size=8
    )
)
def test_what_is_proven_is_canonical_also_where_fields_are_in_order(made: list[bytes]) -> None:
    assert_all_proven_are_canonical(SLOW, QUICK, made)


@given(st.lists(st.binary(max_size=24), max_size=8))
def test_what_is_proven_of_any_bytes_is_canonical(made: list[bytes]) -> None:
    assert_all_proven_are_canonical(SLOW, QUICK, made)


@given(st.integers(0, 2**32))
def test_what_is_proven_of_any_message_is_canonical(seed: int) -> None:
    rng = random.Random(seed)
    files = any_schema(rng)
    slow, quick = both_of(files.SerializeToString(), "any.M0")
    cls: Any = message_class(pool_of(files), "any.M0")
    straight = payloads(cls, seed, 6)
    assert_all_proven_are_canonical(slow, quick, straight + [bent(one, cls.DESCRIPTOR, rng) for one in straight * 3])


@pytest.mark.thorough
@pytest.mark.parametrize(("schema", "message"), KINDS)
def test_what_is_proven_of_every_kind_of_message_is_canonical(schema: Schema, message: str) -> None:
    slow, quick = both_of(compiled(schema), message)
    cls: Any = message_type(schema, message)
    rng = random.Random(7)
    straight = payloads(cls, seed=7, count=60)
    assert_all_proven_are_canonical(slow, quick, straight + [bent(one, cls.DESCRIPTOR, rng) for one in straight])


def any_schema(rng: random.Random) -> FileDescriptorSet:
    """Three messages with fields of all kinds, each of which may hold the others and itself."""
    file = FileDescriptorProto(name="any.proto", package="any", syntax="proto3")
    enum = file.enum_type.add(name="Side")
    enum.value.add(name="LEFT", number=0)
    enum.value.add(name="RIGHT", number=1)
    for name in ("M0", "M1", "M2"):
        message = file.message_type.add(name=name)
        message.oneof_decl.add(name="choice")
        message.field.add(name="one", number=50, type=FieldDescriptorProto.TYPE_BOOL, label=1, oneof_index=0)
        for number in rng.sample([*range(1, 20), 100, 2**21, 2**29 - 1], rng.randrange(1, 7)):
            _add_field(message, number, rng)
    return FileDescriptorSet(file=[file])


def _add_field(message: DescriptorProto, number: int, rng: random.Random) -> None:
    field = message.field.add(name=f"f{number}", number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
    _give_type(field, rng)
    packable = field.type not in (9, 11, 12)
    match rng.choice(("plain", "plain", "optional", "repeated", "repeated", "map", "member", "member")):
        case "optional" if field.type != FieldDescriptorProto.TYPE_MESSAGE:
            field.proto3_optional = True
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")
        case "repeated":
            field.label = FieldDescriptorProto.LABEL_REPEATED
            if packable and rng.random() < 0.3:
                field.options.packed = False
        case "map":
            entry = message.nested_type.add(name=f"F{number}Entry")
            entry.options.map_entry = True
            entry.field.add(name="key", number=1, label=1, type=rng.choice((3, 5, 8, 9, 13, 17, 16)))
            entry.field.add(name="value", number=2, label=1, type=field.type, type_name=field.type_name or None)
            field.label, field.type = FieldDescriptorProto.LABEL_REPEATED, FieldDescriptorProto.TYPE_MESSAGE
            field.type_name = f".any.{message.name}.{entry.name}"
        case "member":
            field.oneof_index = 0


def _give_type(field: FieldDescriptorProto, rng: random.Random) -> None:
    # all but groups; messages more often
    number: Any = rng.choice((*range(1, 10), *range(12, 19), 11, 11, 11, 11))
    field.type = number
    if number == FieldDescriptorProto.TYPE_MESSAGE:
        field.type_name = rng.choice((".any.M0", ".any.M1", ".any.M2"))
    elif number == FieldDescriptorProto.TYPE_ENUM:
        field.type_name = ".any.Side"


def bent(payload: bytes, descriptor: Any, rng: random.Random) -> bytes:
    """The payload said otherwise; nearly always another payload, and mostly not a canonical one."""
    return rng.choice((mutated, mutated, too_long, with_empty_list))(payload, descriptor, rng)


def too_long(payload: bytes, descriptor: Any, rng: random.Random) -> bytes:
    """A length, at any depth, reaches a little further than what it is the length of."""
    parts = elements(payload)
    long = [at for at, part in enumerate(parts) if part.wire_type == LENGTH and part.body[0] < 0x7D]
    if not long:
        return payload
    at = rng.choice(long)
    part = parts[at]
    # an extension is not among them
    field = descriptor.fields_by_number.get(part.number)
    if field is not None and field.message_type is not None and rng.random() < 0.6:
        parts[at] = delimited(part.number, too_long(part.content(), field.message_type, rng))
    else:
        parts[at] = Element(part.number, LENGTH, bytes([part.body[0] + rng.randrange(1, 4)]) + part.body[1:])
    return written(parts)


def with_empty_list(payload: bytes, descriptor: Any, rng: random.Random) -> bytes:
    """A packed list, at any depth, comes without elements."""
    parts = elements(payload)
    numbers = [number for number, field in descriptor.fields_by_number.items() if field.message_type is None]
    inside = [
        at for at, part in enumerate(parts) if part.number not in numbers and part.number in descriptor.fields_by_number
    ]
    if inside and rng.random() < 0.6:
        at = rng.choice(inside)
        message = descriptor.fields_by_number[parts[at].number].message_type
        parts[at] = delimited(parts[at].number, with_empty_list(parts[at].content(), message, rng))
    elif numbers:
        parts.append(delimited(rng.choice(numbers), b""))
    return written(parts)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("game", games(6), ids=lambda game: game.key)
def test_every_event_of_the_producer_is_proven(game: Any, version: int) -> None:
    schema = compile_schema(RegisteredSchema(1, "event", version, proto_text(game, version), proto_path(game)))
    cls = message_class(pool_of(FileDescriptorSet.FromString(schema.descriptor_set)), schema.message)
    made = event_payloads(EventWriter(game, version, 1, cls), random_words(7, 0, 500), now_us=1_800_000_000_000_000)
    _, quick = both_of(schema.descriptor_set, schema.message)
    assert proven(quick, *made) == [True] * 500


def message(**fields: Any) -> bytes:
    return filled(MESSAGE, **fields).SerializeToString(deterministic=True)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        message(name="chess", id=7, body=b"\xff\x00"),
        message(name="x" * 300, id=2**31 - 1, body=bytes(3_000)),
        message(maybe=0, yes=True, big=2**64 - 1, zigzag=-5, score=-1.5, code=1, far=2**32 - 1, share=0.0),
        message(id=-1, maybe=-(2**31), side=-1, sides=[0, 1, -1], list=[0, -5, 2**31 - 1]),
        message(name="将棋", b="ß", names=["", "a", "日本語"]),
        message(inner={"x": 1, "a": 0}, inners=[{}, {"b": ""}, {"none": {}}], c={"x": 5}, empty={}),
        message(counts={"": 0, "a": 1, "b": -1}, by_id={0: {}, 7: {"x": 1}}),
        message(at={"seconds": 5, "nanos": 6}, any={}),
        message(list=range(200), names=["x"] * 200, inners=[{"x": at} for at in range(200)]),
    ],
    ids=["empty", "wrapper", "long", "every kind", "negative", "text", "messages", "maps", "known", "200 elements"],
)
def test_an_ordinary_payload_is_proven_wherever_it_stands_in_the_batch(payload: bytes) -> None:
    assert proven(QUICK, payload, b"\x48", payload) == [False, False, False], "beside one that cannot be read"
    assert proven(QUICK, payload, b"\x10\x00", payload) == [True, False, True]


@pytest.mark.parametrize(
    "payload",
    [
        message(loose=[1.5]),
        message(any={"type_url": "x"}),
        message(inner={"again": {"x": 1}}),
        message(inners=[{"x": 1}, {"again": {"x": 1}}]),
        message(by_id={1: {"again": {"x": 1}}}),
        written([Element(2, VARINT, b"\x01"), delimited(1, b"a")]),
        written([Element(8, FIXED64, struct.pack("<d", -0.0))]),
    ],
    ids=["not packed", "json", "recursive", "in a list", "in a map", "other order", "minus zero"],
)
def test_what_needs_a_closer_look_is_left_to_the_slow_test(payload: bytes) -> None:
    assert proven(QUICK, payload, b"") == [False, True]
    assert SLOW.split([payload]) == (range(1), [])


@pytest.mark.parametrize(
    "parts",
    [
        [Element(2, VARINT, varint(1, padding=1))],
        [Element(2, VARINT, b"\x00")],
        [Element(2, VARINT, b"\xff\xff\xff\xff\x0f")],
        [Element(2, VARINT, varint(2**32 + 5))],
        [Element(5, VARINT, b"\x02")],
        [Element(2, VARINT, b"\x01"), Element(2, VARINT, b"\x02")],
        [delimited(1, b"")],
        [Element(9, FIXED32, b"\x00\x00\x00\x00")],
        [Element(99, VARINT, b"\x01")],
        [Element(2**29 + 2, VARINT, b"\x01")],
        [Element(99, START, b"\x08\x01" + varint(99 << 3 | 4))],
        [delimited(10, b"\x08\x00")],
        [delimited(10, b"\x78\x01")],
        [delimited(10, b"\x10\x01\x1a\x00")],
        [delimited(16, b""), delimited(16, b"\x10\x01\x1a\x00")],
        [delimited(18, b"\x08\x01\x12\x04\x10\x01\x1a\x00")],
        [Element(12, VARINT, b"\x01"), delimited(13, b"")],
        [Element(12, VARINT, b"\x01"), delimited(14, b"")],
        [delimited(14, b"\x10\x01\x22\x00")],
        [delimited(11, b"")],
        [Element(11, VARINT, b"\x01")],
        [delimited(21, bytes(8))],
        [delimited(11, b"\x01"), delimited(11, b"\x02")],
        [delimited(10, b""), delimited(10, b"")],
        [delimited(24, b"\x08\x01")],
        [delimited(17, b"\x0a\x01a\x0a\x01a\x10\x01")],
        [delimited(17, b"\x10\x01\x0a\x01a")],
        [delimited(17, b"\x0a\x01a\x10\x01\x18\x01")],
    ],
    ids=lambda parts: written(parts).hex(),
)
def test_a_payload_that_says_it_otherwise_is_not_proven_and_its_neighbour_is(parts: list[Element]) -> None:
    neighbour = message(name="abcdef", id=5, a=1, inner={"a": 1})
    assert proven(QUICK, neighbour, written(parts), neighbour) == [True, False, True]


@pytest.mark.parametrize(
    "payload",
    [
        written([delimited(1, b"\xff")]),
        written([delimited(15, b"\xed\xa0\x80")]),
        written([Element(1, LENGTH, b"\x05abc")]),
        written([Element(1, LENGTH, varint(2**64 - 1))]),
        written([Element(9, FIXED32, b"\x01\x00")]),
        written([delimited(10, b"\x1a\x05a")]) + message(far=2),
        written([Element(2, VARINT, b"\xff" * 11)]),
    ],
    ids=lambda payload: payload.hex(),
)
def test_a_payload_that_cannot_be_read_leaves_its_neighbours_to_the_slow_test(payload: bytes) -> None:
    neighbour = message(name="abcdef", id=5)
    assert proven(QUICK, neighbour, payload, neighbour) == [False] * 3


@pytest.mark.thorough
@pytest.mark.parametrize("tag", [b"\x7b", b"\xfb\x07"], ids=["one byte", "two bytes"])
def test_groups_inside_groups_do_not_end_the_process(tag: bytes) -> None:
    decoder = f"PayloadDecoder({DESCRIPTOR_SET!r}, 't.M', frozenset())"
    script = (
        "import sys; from demux.core.protobuf.decode.decoder import PayloadDecoder\n"
        f"found = {decoder}.decode([b''] * 60 + [{tag!r} * 500_000, {tag!r} * 20_000, {tag!r} * 2_000])\n"
        "assert len(found.good) == 60 and [row for row, _ in found.bad] == [60, 61, 62], found.bad\n"
    )
    # where it does, pytest goes on
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-500:]


def test_a_key_that_comes_twice_is_left_to_the_rules_as_the_slow_test_leaves_it() -> None:
    doubled = written([delimited(17, b"\x0a\x01a\x10\x01"), delimited(17, b"\x0a\x01a\x10\x02")])
    assert proven(QUICK, doubled) == [True]
    assert SLOW.split([doubled]) == (range(1), [])
    decoded = decoder_of(DESCRIPTOR_SET, "t.M").decode([doubled] * 100)
    assert decoded.columns[16].to_pylist() == [[("a", 2)]] * 100


@pytest.mark.parametrize(("fields", "quick"), [(20, True), (500, False)])
def test_only_a_message_with_few_columns_is_looked_at_quickly(fields: int, quick: bool) -> None:
    descriptor: Any = message_type(wide(fields), "wide.Wide").DESCRIPTOR
    assert (quick_check(descriptor, shape_of(descriptor)) is not None) is quick


def test_columns_are_counted_at_every_depth() -> None:
    inner = " ".join(f"int32 f{number} = {number};" for number in range(1, 48))
    text = f"message I {{ {inner} }} message M {{ I a = 1; repeated I b = 2; %s }}"
    for more, quick in (("", True), ("map<string, int32> c = 3;", True), ("map<string, I> c = 3;", False)):
        _, _, cls = of_text(text % more, message="t.M")
        descriptor: Any = cls.DESCRIPTOR
        assert (quick_check(descriptor, shape_of(descriptor)) is not None) is quick


def test_entries_with_a_zero_are_proven_and_what_comes_twice_is_not() -> None:
    made = [message(counts={"a": 0, "b": at}, names=["x"] * at, inner={"x": at}) for at in range(200)]
    made[7] = made[7] * 2
    assert proven(QUICK, *made) == [at != 7 for at in range(200)]


def test_no_payload_is_no_row() -> None:
    assert proven(QUICK) == []


def test_a_slice_of_an_array_and_one_that_was_filled_are_read_as_they_are() -> None:
    whole = pa.array([b"\xff" * 20, message(name="abcdef", id=5), None, b"\x08\x01", message(id=3)], pa.binary())
    assert QUICK.proven(Payloads(whole.slice(1, 4).fill_null(b""))) == [True, True, False, True]
    assert QUICK.proven(Payloads(whole.slice(4))) == [True]
