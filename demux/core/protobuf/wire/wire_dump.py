"""Dumps a payload for people, as far as it can be read, with or without its schema. Pure.

Walks the wire format (https://protobuf.dev/programming-guides/encoding/) and ends where that is broken, with the place
and the reason. Whatever the bytes are: no exception, no deep recursion, work and output within bounds.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from demux.core.protobuf.schema.descriptor_pool import is_repeated
from demux.core.protobuf.wire.wire_fields import BrokenWire, WireType, read_number, read_tag, read_varint
from demux.core.text import printable

_MOST_DEPTH = 16
_MOST_LOOKED_AT = 20_000
_MOST_CHARACTERS = 200
_MOST_HEX = 32
_MOST_TEXT = 800
_MOST_NUMBERS = 20
_MAX_LENGTH = 2**31 - 1


@dataclass(frozen=True, slots=True)
class DumpedField:
    """A field of a message.

    Attributes:
        name: its name in the schema; None where there is none, or the schema has the field in another wire type.
        value: its value for people to read, control characters escaped; None where it has parts.
    """

    number: int
    name: str | None
    value: str | None
    parts: tuple[DumpedField, ...] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """Where the wire format is broken, in bytes from the beginning of the payload, and why."""

    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class Dump:
    """The fields of a payload, as far as they can be read.

    Attributes:
        parts: its first fields; nested ones count too.
        more: how many further fields it has, as far as it was looked at.
        stop: where it ends before its end; None where all of it is in the wire format.
    """

    parts: tuple[DumpedField, ...]
    more: int
    stop: Stop | None


def dump(payload: bytes, message: Descriptor | None = None, most: int = 100) -> Dump:
    """Return the fields of a payload.

    Without a schema, bytes inside a field are shown as a message where they could be one, else as text or hexadecimal
    digits: that is a guess.

    Args:
        message: what they should be; None where unknown.
    """
    walk = _WireWalk(payload, most)
    try:
        parts, _ = walk.message(0, len(payload), message, 0, None)
        return Dump(tuple(parts), walk.more, None)
    except BrokenWire as broken:
        return Dump(walk.parts, walk.more, Stop(broken.offset, broken.reason))


@dataclass(slots=True)
class _WireWalk:
    """Goes through one payload; where that is broken, `parts` has the fields before, those around them too."""

    payload: bytes
    most: int
    more: int = 0
    shown: int = 0
    looked_at: int = 0
    parts: tuple[DumpedField, ...] = ()

    def message(
        self, at: int, end: int, kind: Descriptor | None, depth: int, group: int | None
    ) -> tuple[list[DumpedField], int]:
        """Return the fields between two places, and where they end; of a group: behind the tag that ends it."""
        parts: list[DumpedField] = []
        try:
            while at < end:
                begin = at
                number, wire, at = self._tag(at, end, kind is None and group is not None)
                if wire is WireType.END_GROUP:
                    if number != group:
                        raise BrokenWire(begin, f"a group {number} ends here, and none has begun")
                    return parts, at
                part, at = self._field(number, wire, at, end, kind, depth)
                if part is not None:
                    parts.append(part)
            if group is not None:
                raise BrokenWire(end, f"the group {group} does not end")
        except BrokenWire:
            self.parts = (*parts, *self.parts)
            raise
        return parts, at

    def _field(
        self, number: int, wire: WireType, at: int, end: int, kind: Descriptor | None, depth: int
    ) -> tuple[DumpedField | None, int]:
        """Return the field behind a tag, None where enough are shown, and where it ends."""
        is_shown = self._take()
        known = None if kind is None else kind.fields_by_number.get(number)
        if known is not None and not _suits(known, wire):
            known = None
        name = None if known is None else known.name
        if wire is WireType.GROUP:
            inside = None if known is None else known.message_type
            part, at = self._nested(number, name, at, end, inside, depth, group=number)
            return (part if is_shown else None), at
        if wire is not WireType.LENGTH:
            value, at = read_number(self.payload, wire, at, end)
            return (DumpedField(number, name, _shown_number(value, wire, known)) if is_shown else None), at
        length, begin = read_varint(self.payload, at, end, "the field's length", 5)
        if length > min(_MAX_LENGTH, end - begin):
            raise BrokenWire(at, f"the field {number} has {length:,} bytes, and {end - begin:,} are left")
        end = begin + length
        if known is not None and known.message_type is not None and depth < _MOST_DEPTH:
            part, end = self._nested(number, name, begin, end, known.message_type, depth)
            return (part if is_shown else None), end
        if not is_shown:
            return None, end
        inside_parts = self._guessed(begin, end, depth) if known is None else None
        if inside_parts is not None:
            return DumpedField(number, None, None, inside_parts), end
        return DumpedField(number, name, _shown_bytes(self.payload[begin:end], known)), end

    def _nested(
        self,
        number: int,
        name: str | None,
        at: int,
        end: int,
        kind: Descriptor | None,
        depth: int,
        group: int | None = None,
    ) -> tuple[DumpedField, int]:
        if depth >= _MOST_DEPTH:
            raise BrokenWire(at, f"messages are nested deeper than {_MOST_DEPTH}: not looked at any further")
        try:
            parts, at = self.message(at, end, kind, depth + 1, group)
        except BrokenWire:
            self.parts = (DumpedField(number, name, None, self.parts),)
            raise
        return DumpedField(number, name, None, tuple(parts)), at

    def _guessed(self, begin: int, end: int, depth: int) -> tuple[DumpedField, ...] | None:
        """Return the fields of bytes that could be a message; None where they could not."""
        content = self.payload[begin:end]
        if not content or depth >= _MOST_DEPTH or _is_plain_text(content):
            return None
        before = self.shown, self.more
        try:
            return tuple(self.message(begin, end, None, depth + 1, None)[0])
        except BrokenWire:
            # a wrong guess leaves no trace
            self.shown, self.more = before
            self.parts = ()
            return None

    def _take(self) -> bool:
        """Count a field, and return whether it is shown."""
        self.looked_at += 1
        if self.shown < self.most:
            self.shown += 1
            return True
        self.more += 1
        return False

    def _tag(self, at: int, end: int, is_skipped: bool) -> tuple[int, WireType, int]:
        if self.looked_at >= _MOST_LOOKED_AT:
            raise BrokenWire(at, f"more than {_MOST_LOOKED_AT:,} fields: not looked at any further")
        return read_tag(self.payload, at, end, is_skipped=is_skipped)


_FIXED64 = frozenset({FieldDescriptor.TYPE_FIXED64, FieldDescriptor.TYPE_SFIXED64, FieldDescriptor.TYPE_DOUBLE})
_FIXED32 = frozenset({FieldDescriptor.TYPE_FIXED32, FieldDescriptor.TYPE_SFIXED32, FieldDescriptor.TYPE_FLOAT})
_OF_BYTES = frozenset({FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_MESSAGE})
_SIGNED = frozenset({FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_ENUM})
_ZIGZAG = frozenset({FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SINT64})
_OF_32_BITS = frozenset({FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_ENUM})


def _wire_of(kind: int) -> WireType:
    if kind in _FIXED64:
        return WireType.FIXED64
    if kind in _FIXED32:
        return WireType.FIXED32
    if kind == FieldDescriptor.TYPE_GROUP:
        return WireType.GROUP
    return WireType.LENGTH if kind in _OF_BYTES else WireType.VARINT


def _suits(known: FieldDescriptor, wire: WireType) -> bool:
    """Return whether a field of the schema is read from this wire type; numbers of a list may be packed."""
    wanted = _wire_of(known.type)
    return wire is wanted or (wire is WireType.LENGTH and is_repeated(known) and wanted is not WireType.GROUP)


def _shown_number(value: int, wire: WireType, known: FieldDescriptor | None) -> str:
    """Return a number as the schema reads it; without one unsigned, and as what else it may be."""
    if known is None:
        return str(value)
    if known.type == FieldDescriptor.TYPE_BOOL:
        return "true" if value else "false"
    if known.type in _ZIGZAG:
        value = value & 0xFFFFFFFF if known.type == FieldDescriptor.TYPE_SINT32 else value
        return str((value >> 1) ^ -(value & 1))
    if known.type == FieldDescriptor.TYPE_DOUBLE:
        return repr(struct.unpack("<d", value.to_bytes(8, "little"))[0])
    if known.type == FieldDescriptor.TYPE_FLOAT:
        return f"{struct.unpack('<f', value.to_bytes(4, 'little'))[0]:.9g}"
    bits = 32 if known.type in _OF_32_BITS or wire is WireType.FIXED32 else 64
    value &= 2**bits - 1
    is_signed = known.type in _SIGNED or known.type in (FieldDescriptor.TYPE_SFIXED32, FieldDescriptor.TYPE_SFIXED64)
    if is_signed and value >= 2 ** (bits - 1):
        value -= 2**bits
    if known.enum_type is not None and (named := known.enum_type.values_by_number.get(value)) is not None:
        return str(named.name)
    return str(value)


def _shown_bytes(content: bytes, known: FieldDescriptor | None) -> str:
    if known is not None and known.type == FieldDescriptor.TYPE_BYTES:
        return _hex(content)
    if known is not None and known.type not in _OF_BYTES:
        return _packed(content, known)
    if known is not None and known.type == FieldDescriptor.TYPE_MESSAGE:
        return f"{_hex(content)} (nested too deep)"
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"{_hex(content)} (no UTF-8 text from its byte {error.start} on)" if known is not None else _hex(content)
    if known is None and not _is_plain_text(content):
        return _hex(content)
    more = f" … ({len(content):,} bytes)" if len(text) > _MOST_CHARACTERS else ""
    return f'"{printable(text[:_MOST_CHARACTERS])}"{more}'


def _packed(content: bytes, known: FieldDescriptor) -> str:
    """Return the first numbers of a packed list."""
    wire, at, found = _wire_of(known.type), 0, list[str]()
    try:
        while at < len(content) and len(found) < _MOST_NUMBERS:
            value, at = read_number(content, wire, at, len(content))
            found.append(_shown_number(value, wire, known))
    except BrokenWire as broken:
        return f"[{', '.join(found)}] and then, at its byte {broken.offset}: {broken.reason}"
    more = f", … ({len(content):,} bytes)" if at < len(content) else ""
    return f"[{', '.join(found)}{more}]"


def _is_plain_text(content: bytes) -> bool:
    """Return whether the bytes are text that people write; of long ones only the beginning is looked at."""
    begin = content[:_MOST_TEXT]
    try:
        # a character that is cut in two says nothing
        text = begin.decode("utf-8", "strict" if len(content) <= _MOST_TEXT else "ignore")
    except UnicodeDecodeError:
        return False
    return bool(text) and all(character.isprintable() or character in "\t\n\r" for character in text)


def _hex(content: bytes) -> str:
    if not content:
        return '""'
    more = f" … ({len(content):,} bytes)" if len(content) > _MOST_HEX else ""
    return f"0x{content[:_MOST_HEX].hex()}{more}"
