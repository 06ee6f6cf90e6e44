"""A message cut into its fields as they are on the wire, up to where that is broken. Pure.

https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from dataclasses import dataclass

from demux.core.protobuf.wire.wire_dump import WireType

_MOST_DEPTH = 100
_MAX_NUMBER = 2**29 - 1


@dataclass(frozen=True, slots=True)
class WireField:
    """A field on the wire.

    Attributes:
        number: its number.
        wire: its wire type.
        raw: all of its bytes.
        body: of these, what is behind the length, or between the tags of a group; of one that is cut off, what is left.
        is_whole: whether it is not cut off.
    """

    number: int
    wire: WireType
    raw: bytes
    body: bytes
    is_whole: bool = True


def chunks_of(message: bytes) -> tuple[tuple[WireField, ...], bool]:
    """Return the fields of a message up to where it is broken, and whether it is not.

    A field that has more bytes than are left is the last one.
    """
    found: list[WireField] = []
    at = 0
    while at < len(message):
        chunk = _chunk(message, at)
        if chunk is not None:
            found.append(chunk)
        if chunk is None or not chunk.is_whole:
            return tuple(found), False
        at += len(chunk.raw)
    return tuple(found), True


def wrapped_again(number: int, wire: WireType, body: bytes) -> bytes:
    """Return a field that holds this message, behind its length or between the tags of a group."""
    if wire is WireType.GROUP:
        return varint(number << 3 | WireType.GROUP) + body + varint(number << 3 | WireType.END_GROUP)
    return varint(number << 3 | WireType.LENGTH) + varint(len(body)) + body


def _chunk(message: bytes, at: int) -> WireField | None:
    """Return the field that begins here; None where none does."""
    tag = _tag(message, at)
    if tag is None:
        return None
    number, wire, begin = tag
    if wire is WireType.LENGTH:
        return _with_length(message, at, begin, number)
    if wire is WireType.END_GROUP:
        return None
    end = _end(message, begin, number, wire, 0)
    if end is None:
        # of a group, what is there may be of use
        return WireField(number, wire, message[at:], message[begin:], False) if wire is WireType.GROUP else None
    body_end = end - len(varint(number << 3 | WireType.END_GROUP)) if wire is WireType.GROUP else end
    return WireField(number, wire, message[at:end], message[begin:body_end])


def _with_length(message: bytes, at: int, begin: int, number: int) -> WireField | None:
    length = _varint(message, begin)
    if length is None:
        return None
    size, begin = length
    end = begin + size
    return WireField(number, WireType.LENGTH, message[at:end], message[begin:end], end <= len(message))


def _end(message: bytes, at: int, number: int, wire: WireType, depth: int) -> int | None:
    """Return where a field ends whose tag is before this place; None where it does not."""
    match wire:
        case WireType.VARINT:
            found = _varint(message, at)
            return None if found is None else found[1]
        case WireType.FIXED64 | WireType.FIXED32:
            end = at + (8 if wire is WireType.FIXED64 else 4)
            return end if end <= len(message) else None
        case WireType.LENGTH:
            found = _varint(message, at)
            return None if found is None or sum(found) > len(message) else sum(found)
        case WireType.GROUP:
            return _group_end(message, at, number, depth)
        case WireType.END_GROUP:
            return None


def _group_end(message: bytes, at: int, number: int, depth: int) -> int | None:
    while depth < _MOST_DEPTH and (tag := _tag(message, at)) is not None:
        inner, wire, begin = tag
        if wire is WireType.END_GROUP:
            return begin if inner == number else None
        end = _end(message, begin, inner, wire, depth + 1)
        if end is None:
            return None
        at = end
    return None


def _tag(message: bytes, at: int) -> tuple[int, WireType, int] | None:
    found = _varint(message, at)
    if found is None or not 0 < found[0] >> 3 <= _MAX_NUMBER or found[0] & 7 > WireType.FIXED32:
        return None
    return found[0] >> 3, WireType(found[0] & 7), found[1]


def _varint(message: bytes, at: int) -> tuple[int, int] | None:
    """Return the number that begins here, and where it ends; None where it does not."""
    value = 0
    for place in range(10):
        if at + place >= len(message):
            return None
        byte = message[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value & (2**64 - 1), at + place + 1
    return None


def varint(number: int) -> bytes:
    """Return the bytes of a number; a negative one is written as its 64-bit two's complement, in ten bytes."""
    rest = number & 0xFFFF_FFFF_FFFF_FFFF
    result = bytearray()
    while rest > 0x7F:
        result.append(rest & 0x7F | 0x80)
        rest >>= 7
    result.append(rest)
    return bytes(result)
