"""Whether a reader reads a writer's bytes, field by field: the rules of "Updating A Message Type".

The source is https://protobuf.dev/programming-guides/proto3/#updating (and the same section of the proto2 and editions
guides). Every rule here looks in one direction; the other one is the same rule with reader and writer exchanged.
`LOSS`: it parses, but some values arrive changed, cut, or without a part of their meaning.
"""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.descriptor import FieldDescriptor as F

from demux.core.protobuf.compatibility.changes import FINE, ReadEffect, WireCompatibility, worst
from demux.core.protobuf.compatibility.declarations import Declared
from demux.core.protobuf.schema.column_mapping import Cardinality, FieldPresence

Fields = Mapping[int, Declared]

# written as they are in a varint: lowest and highest value
_PLAIN = {
    F.TYPE_BOOL: (0, 1),
    F.TYPE_INT32: (-(2**31), 2**31 - 1),
    F.TYPE_ENUM: (-(2**31), 2**31 - 1),
    F.TYPE_UINT32: (0, 2**32 - 1),
    F.TYPE_INT64: (-(2**63), 2**63 - 1),
    F.TYPE_UINT64: (0, 2**64 - 1),
}
_SAME_BYTES = ({F.TYPE_FIXED32, F.TYPE_SFIXED32}, {F.TYPE_FIXED64, F.TYPE_SFIXED64})


def type_reading(writer: Declared, reader: Declared) -> ReadEffect:
    """Return the effect on a single value; the fields of a message are compared by themselves."""
    wrote, reads = writer.proto_type, reader.proto_type
    if writer.delimited != reader.delimited:
        return _never(writer, reader)
    if writer.message is not None and reader.message is not None:
        return FINE
    if wrote == reads:
        return FINE
    if wrote in _PLAIN and reads in _PLAIN:
        return _varint(writer, reader)
    match wrote, reads:
        case (F.TYPE_SINT32, F.TYPE_SINT64) | (F.TYPE_STRING, F.TYPE_BYTES):
            return FINE
        case (F.TYPE_SINT64, F.TYPE_SINT32):
            return _loss("a number that needs more than 32 bits is cut")
        case (F.TYPE_BYTES, F.TYPE_STRING):
            return _loss("bytes that are not UTF-8 cannot be read")
        case (F.TYPE_MESSAGE, F.TYPE_BYTES):
            return _loss("the message arrives as its bytes")
        case (F.TYPE_BYTES, F.TYPE_MESSAGE):
            return _loss(f"bytes that are not a {reader.type_name} cannot be read")
    if any({wrote, reads} == same for same in _SAME_BYTES):
        return _loss("a number beyond the highest signed one changes its sign")
    return _never(writer, reader)


def cardinality_reading(writer: Declared, reader: Declared) -> ReadEffect:
    """Return the effect on the number of values."""
    match writer.cardinality, reader.cardinality:
        case (Cardinality.REPEATED, Cardinality.MAP):
            return _loss("a map keeps no order, and of entries with one key only the last")
        case (Cardinality.SINGULAR, Cardinality.MAP):
            return _loss("a message with other fields than key and value may be lost")
        case (Cardinality.REPEATED | Cardinality.MAP, Cardinality.SINGULAR):
            return _last_of_many(writer)
    return FINE


def presence_reading(writer: Declared, reader: Declared) -> ReadEffect:
    """Return the effect on an unset field."""
    if reader.presence is FieldPresence.REQUIRED and writer.presence is not FieldPresence.REQUIRED:
        return ReadEffect(WireCompatibility.INCOMPATIBLE, f"{reader.name} may be unset, and the reader requires it")
    both_single = writer.cardinality is reader.cardinality is Cardinality.SINGULAR
    if both_single and writer.presence is FieldPresence.EXPLICIT and reader.presence is FieldPresence.IMPLICIT:
        return _loss("unset and zero look the same")
    return FINE


def missing_reading(reader: Declared) -> ReadEffect:
    """Return the effect on a message whose writer does not know the reader's field."""
    if reader.presence is FieldPresence.REQUIRED:
        return ReadEffect(WireCompatibility.INCOMPATIBLE, f"{reader.name} is missing, and the reader requires it")
    return FINE


def unknown_reading(writer: Declared, written: Fields, read: Fields) -> ReadEffect:
    """Return the effect on a field that the reader does not know."""
    if writer.oneof is None:
        return FINE
    members = (number for number, field in written.items() if field.oneof == writer.oneof)
    if any(number in read for number in members):
        return _loss(f"whether oneof {writer.oneof} is unset is no longer known")
    return FINE


def oneof_reading(number: int, written: Fields, read: Fields) -> ReadEffect:
    """Return the effect on several fields that the writer may set at once, and the reader may not."""
    oneof = read[number].oneof
    if oneof is None:
        return FINE
    members = [number for number, field in read.items() if field.oneof == oneof and number in written]
    homes = {written[number].oneof or number for number in members}
    if len(homes) <= 1:
        return FINE
    return _loss(f"of several fields of oneof {oneof} only the last one set is kept")


def field_reading(number: int, written: Fields, read: Fields) -> ReadEffect:
    """Return the worst that becomes of a field that both know."""
    writer, reader = written[number], read[number]
    return worst(
        type_reading(writer, reader),
        cardinality_reading(writer, reader),
        presence_reading(writer, reader),
        oneof_reading(number, written, read),
    )


def _varint(writer: Declared, reader: Declared) -> ReadEffect:
    if reader.proto_type == F.TYPE_ENUM:
        return _loss(f"a number that {reader.type_name} has not stays a number or is put aside")
    lowest, highest = _PLAIN[reader.proto_type]
    smallest, largest = _PLAIN[writer.proto_type]
    if lowest <= smallest and largest <= highest:
        return FINE
    return _loss(f"a number that {reader.type_name} cannot hold is cut")


def _last_of_many(writer: Declared) -> ReadEffect:
    if writer.message is not None:
        return _loss("of several messages one is made, field by field")
    if writer.packed:
        return ReadEffect(WireCompatibility.INCOMPATIBLE, "a packed list is not read as a single value")
    return _loss("of several values only the last is kept")


def _loss(why: str) -> ReadEffect:
    return ReadEffect(WireCompatibility.LOSS, why)


def _never(writer: Declared, reader: Declared) -> ReadEffect:
    return ReadEffect(WireCompatibility.INCOMPATIBLE, f"{writer.type_name} is not read as {reader.type_name}")
