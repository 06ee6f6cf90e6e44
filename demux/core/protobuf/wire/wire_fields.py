"""The wire format: numbers, tags, and a message cut into its fields, up to where that is broken. Pure.

https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

_MOST_DEPTH = 100
_MAX_NUMBER = 2**29 - 1


class WireType(IntEnum):
    """Wire types, as a field's tag has them."""

    VARINT = 0
    FIXED64 = 1
    LENGTH = 2
    GROUP = 3
    END_GROUP = 4
    FIXED32 = 5


class BrokenWire(Exception):
    """The wire format ends here, in bytes from the beginning, and why."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset
        self.reason = reason


@dataclass(frozen=True, slots=True)
class WireField:
    """A field on the wire.

    Attributes:
        body: of these, what is behind the length, or between the tags of a group; of one that is cut off, what is left.
    """

    number: int
    wire: WireType
    raw: bytes
    body: bytes
    is_whole: bool = True


def read_varint(content: bytes, at: int, end: int, what: str = "a number", most: int = 10) -> tuple[int, int]:
    """Return the number that begins at a place, and where it ends.

    Raises:
        BrokenWire: it does not end, or has more than `most` bytes; `what` begins the reason.
    """
    value = 0
    for place in range(most):
        if at + place >= end:
            raise BrokenWire(at, f"{what} does not end")
        byte = content[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value & (2**64 - 1), at + place + 1
    raise BrokenWire(at, f"{what} has more than {most} bytes")


def read_tag(content: bytes, at: int, end: int, *, is_skipped: bool = False) -> tuple[int, WireType, int]:
    """Return number and wire type of the tag that begins at a place, and where it ends.

    The reference lets the number 0 pass where it skips (`is_skipped`) a group that it does not know.

    Raises:
        BrokenWire: there is no tag.
    """
    tag, behind = read_varint(content, at, end, "a field's tag", 5)
    number = tag >> 3
    if number > _MAX_NUMBER or (not number and not is_skipped):
        raise BrokenWire(at, f"no field has the number {number:,}")
    if tag & 7 > WireType.FIXED32:
        raise BrokenWire(at, f"the field {number:,} has the wire type {tag & 7}, which there is not")
    return number, WireType(tag & 7), behind


def read_number(content: bytes, wire: WireType, at: int, end: int) -> tuple[int, int]:
    """Return the unsigned number of a field of VARINT, FIXED64 or FIXED32 behind its tag, and where it ends.

    Raises:
        BrokenWire: there is none.
    """
    if wire is WireType.VARINT:
        return read_varint(content, at, end)
    size = 8 if wire is WireType.FIXED64 else 4
    if end - at < size:
        raise BrokenWire(at, f"a number of {size} bytes, and {end - at} are left")
    return int.from_bytes(content[at : at + size], "little"), at + size


def chunks_of(message: bytes) -> tuple[tuple[WireField, ...], bool]:
    """Return the fields of a message up to where it is broken, and whether it is not.

    A field that has more bytes than are left is the last one.
    """
    found: list[WireField] = []
    at = 0
    while at < len(message):
        try:
            found.append(_chunk(message, at))
        except BrokenWire:
            return tuple(found), False
        if not found[-1].is_whole:
            return tuple(found), False
        at += len(found[-1].raw)
    return tuple(found), True


def wrap_field(number: int, wire: WireType, body: bytes) -> bytes:
    """Return a field that holds this message, behind its length or between the tags of a group."""
    if wire is WireType.GROUP:
        return varint(number << 3 | WireType.GROUP) + body + varint(number << 3 | WireType.END_GROUP)
    return varint(number << 3 | WireType.LENGTH) + varint(len(body)) + body


def _chunk(message: bytes, at: int) -> WireField:
    """Return the field that begins here.

    Raises:
        BrokenWire: none does.
    """
    number, wire, begin = read_tag(message, at, len(message))
    if wire is WireType.LENGTH:
        size, begin = read_varint(message, begin, len(message))
        end = begin + size
        return WireField(number, wire, message[at:end], message[begin:end], end <= len(message))
    try:
        end = _end(message, begin, number, wire, 0)
    except BrokenWire:
        if wire is not WireType.GROUP:
            raise
        # of a group, what is there may be of use
        return WireField(number, wire, message[at:], message[begin:], False)
    body_end = end - len(varint(number << 3 | WireType.END_GROUP)) if wire is WireType.GROUP else end
    return WireField(number, wire, message[at:end], message[begin:body_end])


def _end(message: bytes, at: int, number: int, wire: WireType, depth: int) -> int:
    """Return where a field ends whose tag is before this place."""
    match wire:
        case WireType.LENGTH:
            size, at = read_varint(message, at, len(message))
            if at + size > len(message):
                raise BrokenWire(at, "the field does not end")
            return at + size
        case WireType.GROUP:
            return _group_end(message, at, number, depth)
        case WireType.END_GROUP:
            raise BrokenWire(at, "no group has begun")
        case _:
            return read_number(message, wire, at, len(message))[1]


def _group_end(message: bytes, at: int, number: int, depth: int) -> int:
    while depth < _MOST_DEPTH:
        inner, wire, begin = read_tag(message, at, len(message))
        if wire is WireType.END_GROUP and inner == number:
            return begin
        at = _end(message, begin, inner, wire, depth + 1)
    raise BrokenWire(at, "groups are nested too deeply")


def varint(number: int) -> bytes:
    """Return the bytes of a number; a negative one is written as its 64-bit two's complement, in ten bytes."""
    rest = number & 0xFFFF_FFFF_FFFF_FFFF
    result = bytearray()
    while rest > 0x7F:
        result.append(rest & 0x7F | 0x80)
        rest >>= 7
    result.append(rest)
    return bytes(result)
