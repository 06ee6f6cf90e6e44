"""Payload bytes bent in every way that a wire can bend them: some stay valid, some do not. Seeded. Free of Spark.

`mutated` picks ways and places by chance, inside nested messages too. What a mutation must lead to is not said here:
that is what the reference is for.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from demux.core.protobuf.schema.descriptor_pool import is_repeated

VARINT, FIXED64, LENGTH, START, END, FIXED32 = range(6)

_VARINTS = frozenset(
    getattr(FieldDescriptor, f"TYPE_{name}")
    for name in ("INT32", "INT64", "UINT32", "UINT64", "SINT32", "SINT64", "BOOL", "ENUM")
)
_WIDTHS = {
    FieldDescriptor.TYPE_FIXED64: 8,
    FieldDescriptor.TYPE_SFIXED64: 8,
    FieldDescriptor.TYPE_DOUBLE: 8,
    FieldDescriptor.TYPE_FIXED32: 4,
    FieldDescriptor.TYPE_SFIXED32: 4,
    FieldDescriptor.TYPE_FLOAT: 4,
}
_BAD_UTF8 = (b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"ok\xc0\xaf", b"\xe2\x82")


@dataclass(frozen=True, slots=True)
class Element:
    """One tag and its value; `body` is all that follows the tag, a length included."""

    number: int
    wire_type: int
    body: bytes

    def content(self) -> bytes:
        """What a length-delimited element holds."""
        _, at = read_varint(self.body, 0)
        return self.body[at:]

    def written(self) -> bytes:
        return varint(self.number << 3 | self.wire_type) + self.body


def varint(value: int, padding: int = 0) -> bytes:
    """The bytes of a number from 0 to 2**64-1, with that many bytes more than it needs."""
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    for _ in range(padding):
        data[-1] |= 0x80
        data.append(0)
    return bytes(data)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at a position, and the position after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def elements(payload: bytes) -> list[Element]:
    """The elements of a valid message, in order; a group is one element."""
    found, at = [], 0
    while at < len(payload):
        key, start = read_varint(payload, at)
        at = _after(payload, start, key >> 3, key & 7)
        found.append(Element(key >> 3, key & 7, payload[start:at]))
    return found


def _after(data: bytes, at: int, number: int, wire_type: int) -> int:
    match wire_type:
        case 0:
            return read_varint(data, at)[1]
        case 1:
            return at + 8
        case 5:
            return at + 4
        case 2:
            length, at = read_varint(data, at)
            return at + length
    while True:
        key, at = read_varint(data, at)
        if key == number << 3 | END:
            return at
        at = _after(data, at, key >> 3, key & 7)


def written(parts: Sequence[Element]) -> bytes:
    """The bytes of the elements."""
    return b"".join(part.written() for part in parts)


def delimited(number: int, content: bytes) -> Element:
    """A length-delimited element."""
    return Element(number, LENGTH, varint(len(content)) + content)


Fields = dict[int, FieldDescriptor]
Mutation = Callable[[list[Element], Fields, random.Random], list[Element]]


def mutated(payload: bytes, descriptor: Descriptor, rng: random.Random) -> bytes:
    """The payload after one to four mutations, some of them inside its messages."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        try:
            payload = _mutated(payload, descriptor, rng)
        except IndexError:
            # an earlier mutation has left bytes that do not read as elements
            break
    return payload


def _mutated(payload: bytes, descriptor: Descriptor, rng: random.Random) -> bytes:
    if rng.random() < 0.15:
        return rng.choice((truncated, bit_flipped, with_garbage))(payload, rng)
    parts = elements(payload)
    fields = {field.number: field for field in descriptor.fields}
    fields |= {field.number: field for field in descriptor.file.pool.FindAllExtensions(descriptor)}
    inside = [at for at, part in enumerate(parts) if _is_message(part, fields)]
    if inside and rng.random() < 0.6:
        at = rng.choice(inside)
        message: Any = fields[parts[at].number].message_type
        parts[at] = delimited(parts[at].number, _mutated(parts[at].content(), message, rng))
        return written(parts)
    return written(rng.choice(MUTATIONS)(parts, fields, rng))


def _is_message(part: Element, fields: Fields) -> bool:
    field = fields.get(part.number)
    return field is not None and field.message_type is not None and part.wire_type == LENGTH


def truncated(payload: bytes, rng: random.Random) -> bytes:
    return payload[: rng.randrange(len(payload) + 1)]


def bit_flipped(payload: bytes, rng: random.Random) -> bytes:
    data = bytearray(payload)
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def with_garbage(payload: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(payload) + 1)
    return payload[:at] + rng.randbytes(rng.randrange(1, 6)) + payload[at:]


def wrong_wire_type(parts: list[Element], fields: Fields, rng: random.Random) -> list[Element]:
    """A declared field comes, alone or besides its own value, in another wire type."""
    if not fields:
        return parts
    number = rng.choice(list(fields))
    kept = parts if rng.random() < 0.5 else [part for part in parts if part.number != number]
    return _inserted(kept, _any_element(number, rng), rng)


def doubled(parts: list[Element], fields: Fields, rng: random.Random) -> list[Element]:
    """An element comes twice, or with the value of another one."""
    if not parts:
        return parts
    part, other = rng.choice(parts), rng.choice(parts)
    if part.wire_type == other.wire_type and rng.random() < 0.5:
        part = replace(part, body=other.body)
    return _inserted(parts, part, rng)


def other_member(parts: list[Element], fields: Fields, rng: random.Random) -> list[Element]:
    """A second member of a oneof is set."""
    members = [f for f in fields.values() if f.containing_oneof is not None and f.type in _VARINTS]
    return _inserted(parts, Element(rng.choice(members).number, VARINT, b"\x01"), rng) if members else parts


def dropped(parts: list[Element], fields: Fields, rng: random.Random) -> list[Element]:
    """An element is missing: a required field, the key or value of a map entry."""
    return [part for at, part in enumerate(parts) if at != rng.randrange(len(parts))]


def shuffled(parts: list[Element], fields: Fields, rng: random.Random) -> list[Element]:
    return rng.sample(parts, len(parts))


def padded(parts: list[Element], fields: Fields, rng: random.Random) -> list[Element]:
    """A varint, or a length, takes more bytes than it needs."""
    result = list(parts)
    for at in [at for at, part in enumerate(parts) if part.wire_type in (VARINT, LENGTH)][:3]:
        value, after = read_varint(parts[at].body, 0)
        padding = min(rng.randrange(1, 4), 10 - len(varint(value)))
        result[at] = replace(parts[at], body=varint(value, padding) + parts[at].body[after:])
    return result


def unknown(parts: list[Element], fields: Fields, rng: random.Random) -> list[Element]:
    """A field that the schema does not have."""
    number = next(n for n in iter(lambda: rng.randrange(1, 3000), 0) if n not in fields)
    return _inserted(parts, _any_element(number, rng), rng)


def explicit_zero(parts: list[Element], fields: Fields, rng: random.Random) -> list[Element]:
    """A value that a writer leaves out when presence is implicit."""
    numbers = [field.number for field in fields.values() if field.type in _VARINTS and not is_repeated(field)]
    return _inserted(parts, Element(rng.choice(numbers), VARINT, b"\x00"), rng) if numbers else parts


def odd_number(parts: list[Element], fields: Fields, rng: random.Random) -> list[Element]:
    """A varint too large for its field, a negative one in five bytes, or an enum number that nobody knows."""
    numbers = [field.number for field in fields.values() if field.type in _VARINTS]
    if not numbers:
        return parts
    value = rng.choice((2, 99, 2**32 - 1, 2**32 - 5, 2**32, 2**33 + 1, 2**63, 2**64 - 1, 2**64 - 99))
    return _inserted(parts, Element(rng.choice(numbers), VARINT, varint(value)), rng)


def nameless(parts: list[Element], fields: Fields, rng: random.Random) -> list[Element]:
    """Numbers of an enum, some without a name: one, a packed list, or the value of a map entry."""
    enums = [(field, enum) for field in fields.values() if (enum := _enum_of(field)) is not None]
    if not enums:
        return parts
    field, enum = rng.choice(enums)
    names = [value.number for value in enum.values]
    numbers = [varint(rng.choice((*names, 99, -99, 2**32 + 99)) % 2**64) for _ in range(rng.randrange(1, 4))]
    if field.message_type is not None:
        entry = [delimited(1, b"k"), *(Element(2, VARINT, number) for number in numbers[:2])]
        return _inserted(parts, delimited(field.number, written(rng.sample(entry, len(entry)))), rng)
    if is_repeated(field) and rng.random() < 0.5:
        return _inserted(parts, delimited(field.number, b"".join(numbers)), rng)
    for number in numbers:
        parts = _inserted(parts, Element(field.number, VARINT, number), rng)
    return parts


def _enum_of(field: FieldDescriptor) -> EnumDescriptor | None:
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        return message.fields_by_number[2].enum_type
    return field.enum_type


def bad_text(parts: list[Element], fields: Fields, rng: random.Random) -> list[Element]:
    """A string that is not UTF-8."""
    numbers = [field.number for field in fields.values() if field.type == FieldDescriptor.TYPE_STRING]
    return _inserted(parts, delimited(rng.choice(numbers), rng.choice(_BAD_UTF8)), rng) if numbers else parts


def odd_time(parts: list[Element], fields: Fields, rng: random.Random) -> list[Element]:
    """A timestamp at or beyond the ends of its range."""
    times = [f for f in fields.values() if f.message_type is not None and f.message_type.name == "Timestamp"]
    if not times:
        return parts
    seconds = rng.choice((-62_135_596_801, -62_135_596_800, 253_402_300_799, 253_402_300_800, 2**63 - 1, -(2**63)))
    nanos = rng.choice((0, -1, 999_999_999, 1_000_000_000, 2**31 - 1))
    pair = (Element(1, VARINT, varint(seconds % 2**64)), Element(2, VARINT, varint(nanos % 2**64)))
    return _inserted(parts, delimited(rng.choice(times).number, written(pair)), rng)


def repacked(parts: list[Element], fields: Fields, rng: random.Random) -> list[Element]:
    """A packed list comes as single values, a list of single values packed, or both."""
    lists = [
        field for field in fields.values() if is_repeated(field) and (field.type in _VARINTS or field.type in _WIDTHS)
    ]
    if not lists:
        return parts
    field = rng.choice(lists)
    width = _WIDTHS.get(field.type)
    values = [varint(rng.randrange(300)) if width is None else rng.randbytes(width) for _ in range(rng.randrange(1, 5))]
    wire_type = VARINT if width is None else FIXED64 if width == 8 else FIXED32
    single = [Element(field.number, wire_type, value) for value in values]
    packed = [delimited(field.number, b"".join(values) + (b"\x01" if rng.random() < 0.1 else b""))]
    return [*parts, *rng.choice((single, packed, single + packed))]


def _any_element(number: int, rng: random.Random) -> Element:
    match rng.choice((VARINT, FIXED64, LENGTH, START, FIXED32)):
        case 0:
            return Element(number, VARINT, varint(rng.getrandbits(rng.randrange(1, 64))))
        case 1:
            return Element(number, FIXED64, rng.randbytes(8))
        case 5:
            return Element(number, FIXED32, rng.randbytes(4))
        case 2:
            return delimited(number, rng.choice((b"", b"abc", b"\x08\x01")))
    return Element(number, START, b"\x08\x01" + varint(number << 3 | END))


def _inserted(parts: Sequence[Element], part: Element, rng: random.Random) -> list[Element]:
    at = rng.randrange(len(parts) + 1)
    return [*parts[:at], part, *parts[at:]]


MUTATIONS: tuple[Mutation, ...] = (
    wrong_wire_type,
    doubled,
    other_member,
    dropped,
    shuffled,
    padded,
    unknown,
    explicit_zero,
    odd_number,
    nameless,
    bad_text,
    odd_time,
    repacked,
)
