"""Confluent frames: which schema, and which of its messages, the bytes after them were written with. Pure.

A frame is a magic byte, an id, and message indexes. Magic 0: the id is four bytes, big-endian. Magic 1: it is a GUID of
sixteen bytes. The indexes lead from the top of the schema's file to the message, and are zigzag varints behind
their number; the one byte 0 means `[0]`, the first message. Source:
https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format, and
`SchemaId` of confluent-kafka.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from demux.core.protobuf.wire.wire_fields import varint

# where Confluent's serializers put the frame of a record's value, if not before it
HEADER = "__value_schema_id"

ID_BYTES, GUID_BYTES = 4, 16
MAX_ID = 2**31 - 1
# protoc nests messages at most 32 deep
_MAX_INDEXES = 100
_MAX_VARINT_BYTES = 5


class NotFramed(Exception):
    """The bytes have no frame; the text is the end of a sentence that says why."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame, and how many bytes it takes; one of `schema_id` and `guid` is None."""

    schema_id: int | None
    guid: str | None
    indexes: str | None
    length: int


def frame_bytes(schema_id: int, indexes: tuple[int, ...]) -> bytes:
    """Return the frame of an id and the way to a message from the top of its file."""
    head = b"\0" + schema_id.to_bytes(ID_BYTES, "big")
    if indexes == (0,):
        return head + b"\0"
    # zigzag: twice a number that is not negative
    return head + b"".join(varint(2 * number) for number in (len(indexes), *indexes))


def frame_before(data: bytes) -> Frame:
    """Return the frame that the bytes begin with.

    Raises:
        NotFramed: they do not begin with one.
    """
    frame, end = _id_of(data)
    indexes, end = indexes_of(data, end)
    return Frame(frame.schema_id, frame.guid, indexes, end)


def frame_in_header(data: bytes) -> Frame:
    """Return the frame that the bytes are; message indexes may be missing from it.

    Raises:
        NotFramed: they are no frame, or more than one.
    """
    frame, end = _id_of(data)
    if end == len(data):
        return frame
    indexes, end = indexes_of(data, end)
    if end < len(data):
        raise NotFramed(f"it has {len(data)} bytes, and its frame only {end}")
    return Frame(frame.schema_id, frame.guid, indexes, end)


def indexes_of(data: bytes, start: int) -> tuple[str, int]:
    """Return the message indexes at this place, such as `1,0`, and where they end.

    Raises:
        NotFramed: there are none.
    """
    count, end = _varint(data, start)
    if not 0 <= count <= _MAX_INDEXES:
        raise NotFramed(f"it has {count} message indexes, and may have 0 to {_MAX_INDEXES}")
    indexes = []
    for _ in range(count):
        index, end = _varint(data, end)
        if index < 0:
            raise NotFramed(f"it has the message index {index}")
        indexes.append(str(index))
    return ",".join(indexes) or "0", end


def _id_of(data: bytes) -> tuple[Frame, int]:
    if not data:
        raise NotFramed("it is empty")
    match data[0]:
        case 0:
            end = 1 + ID_BYTES
            schema_id = int.from_bytes(_slice(data, 1, end, "schema id"), "big")
            if schema_id > MAX_ID:
                raise NotFramed(f"its schema id {schema_id} is above {MAX_ID}")
            return Frame(schema_id, None, None, end), end
        case 1:
            end = 1 + GUID_BYTES
            return Frame(None, _guid(_slice(data, 1, end, "GUID")), None, end), end
        case magic:
            raise NotFramed(f"it begins with 0x{magic:02x}, not with 0x00 or 0x01")


@lru_cache(maxsize=1024)
def _guid(data: bytes) -> str:
    return str(UUID(bytes=data))


def _slice(data: bytes, start: int, end: int, part: str) -> bytes:
    if len(data) < end:
        raise NotFramed(f"it ends after {len(data)} bytes, within its {part}")
    return data[start:end]


def _varint(data: bytes, start: int) -> tuple[int, int]:
    """Return the zigzag varint (32 bits) that starts there, and where it ends."""
    number = 0
    for length, byte in enumerate(data[start : start + _MAX_VARINT_BYTES]):
        number |= (byte & 0x7F) << 7 * length
        if byte < 0x80:
            if number >= 2**32:
                break
            return number >> 1 ^ -(number & 1), start + length + 1
    else:
        if len(data) < start + _MAX_VARINT_BYTES:
            raise NotFramed(f"it ends after {len(data)} bytes, within its message indexes")
    raise NotFramed("it has a message index of more than 32 bits")
