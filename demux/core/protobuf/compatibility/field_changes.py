"""The changes of one field between two versions of its message; the silver table is not asked here."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import EnumDescriptorProto

from demux.core.protobuf.compatibility.changes import (
    FINE,
    ChangeKind,
    Direction,
    Effect,
    ReadEffect,
    SchemaChange,
    WireCompatibility,
    worst,
)
from demux.core.protobuf.compatibility.declarations import Declaration, Declared, Ranges, merge_ranges
from demux.core.protobuf.compatibility.wire_compatibility import (
    cardinality_reading,
    field_reading,
    missing_reading,
    oneof_reading,
    presence_reading,
    type_reading,
    unknown_reading,
)
from demux.core.protobuf.schema.column_mapping import Cardinality

BOTH = frozenset(Direction)
NEITHER = frozenset[Direction]()

_TEXTS = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)


def change(
    path: str,
    number: int,
    kind: ChangeKind,
    old: str | None,
    new: str | None,
    backward: ReadEffect = FINE,
    forward: ReadEffect = FINE,
    refused: frozenset[Direction] | None = None,
) -> SchemaChange:
    """Return the change without its effect on the silver table; what no reader can read, a registry refuses."""
    if refused is None:
        refused = _where(backward, forward, WireCompatibility.INCOMPATIBLE)
    return SchemaChange(path, number, kind, old, new, backward, forward, refused, Effect.NONE, "")


def addition(field: Declared, was: Declaration, now: Declaration, path: str) -> SchemaChange:
    """Return the change of an added field."""
    backward, forward = missing_reading(field), unknown_reading(field, now.fields, was.fields)
    refused = (
        BOTH if backward.wire is WireCompatibility.INCOMPATIBLE else _where(backward, forward, WireCompatibility.LOSS)
    )
    if was.reserves(field.number):
        backward = worst(
            backward,
            ReadEffect(WireCompatibility.LOSS, f"number {field.number} was reserved, and may be another field"),
        )
    return change(path + field.name, field.number, ChangeKind.FIELD_ADDED, None, field.text, backward, forward, refused)


def removal(field: Declared, was: Declaration, now: Declaration, path: str) -> SchemaChange:
    """Return the change of a removed field."""
    backward, forward = unknown_reading(field, was.fields, now.fields), missing_reading(field)
    refused = (
        BOTH if forward.wire is WireCompatibility.INCOMPATIBLE else _where(backward, forward, WireCompatibility.LOSS)
    )
    return change(
        path + field.name, field.number, ChangeKind.FIELD_REMOVED, field.text, None, backward, forward, refused
    )


def renumbering(before: Declared, after: Declared, path: str) -> SchemaChange:
    """Return the change of a field that has its name and another number: one removed, another added."""
    gone = ReadEffect(WireCompatibility.LOSS, f"the value of number {before.number} is no longer {after.name}")
    unread = ReadEffect(WireCompatibility.LOSS, f"the value of number {after.number} is not yet {after.name}")
    return change(
        path + after.name,
        after.number,
        ChangeKind.NUMBER_CHANGED,
        f"{before.text} = {before.number}",
        f"{after.text} = {after.number}",
        worst(missing_reading(after), gone),
        worst(missing_reading(before), unread),
        NEITHER,
    )


def moved_fields(was: Declaration, now: Declaration) -> dict[str, int]:
    """Return the older number of each name whose number is gone and that has a new number now."""
    gone = {field.name: number for number, field in was.fields.items() if number not in now.fields}
    new = {field.name for number, field in now.fields.items() if number not in was.fields}
    return {name: number for name, number in gone.items() if name in new}


def is_reused(number: int, was: Declaration, now: Declaration) -> bool:
    """Return whether the number belongs to another field now: another name, and that was no mere renaming."""
    before, after = was.fields[number], now.fields[number]
    if before.name == after.name:
        return False
    if after.name in was.names or before.name in now.names:
        return True
    both = worst(type_reading(before, after), type_reading(after, before))
    return both.wire is WireCompatibility.INCOMPATIBLE


def reuse(number: int, was: Declaration, now: Declaration, path: str) -> SchemaChange:
    """Return the change of a number that belongs to another field now."""
    before, after = was.fields[number], now.fields[number]
    backward = ReadEffect(WireCompatibility.INCOMPATIBLE, f"{before.name} is read as {after.name}")
    forward = ReadEffect(WireCompatibility.INCOMPATIBLE, f"{after.name} is read as {before.name}")
    # a registry knows no names: to it this is a renaming, or another type
    refused = _where(
        field_reading(number, was.fields, now.fields),
        field_reading(number, now.fields, was.fields),
        WireCompatibility.INCOMPATIBLE,
    )
    old, new = f"{before.name}: {before.text}", f"{after.name}: {after.text}"
    return change(path, number, ChangeKind.NUMBER_REUSED, old, new, backward, forward, refused)


def of_field(number: int, was: Declaration, now: Declaration, path: str) -> Iterator[SchemaChange]:
    """Yield the changes of a field that both versions have; those inside its message or enum are not among them."""
    before, after = was.fields[number], now.fields[number]
    if before.name != after.name:
        yield change(path, number, ChangeKind.FIELD_RENAMED, before.name, after.name)
    retyped = _type_change(before, after, path)
    if retyped is not None:
        yield retyped
        if retyped.wire is WireCompatibility.INCOMPATIBLE:
            return
    if before.cardinality is not after.cardinality:
        yield _cardinality_change(before, after, path)
    elif not (was.is_map_entry or now.is_map_entry) and (before.message is None) == (after.message is None):
        yield from _placing(number, was, now, path)
    yield from _writing(before, after, path)


def local_name(message: Descriptor) -> str:
    """Return the message's name without its package."""
    package = message.file.package
    name: str = message.full_name
    return name.removeprefix(f"{package}.") if package else name


def _type_change(before: Declared, after: Declared, path: str) -> SchemaChange | None:
    is_map = Cardinality.MAP in (before.cardinality, after.cardinality)
    messages = before.message is not None and after.message is not None
    if before.type_name == after.type_name or (is_map and messages):
        return None
    backward, forward = type_reading(before, after), type_reading(after, before)
    kind, refused = ChangeKind.TYPE_CHANGED, None
    if before.message is not None and after.message is not None:
        kind = ChangeKind.MESSAGE_TYPE_CHANGED if before.delimited == after.delimited else ChangeKind.ENCODING_CHANGED
        refused = BOTH if local_name(before.message) != local_name(after.message) else None
    elif before.message is not None or after.message is not None:
        refused = BOTH
    return change(path, before.number, kind, before.text, after.text, backward, forward, refused)


def _cardinality_change(before: Declared, after: Declared, path: str) -> SchemaChange:
    backward = worst(cardinality_reading(before, after), presence_reading(before, after))
    forward = worst(cardinality_reading(after, before), presence_reading(after, before))
    kinds = {before.cardinality, after.cardinality}
    kind = (
        ChangeKind.MAP_CHANGED if kinds == {Cardinality.MAP, Cardinality.REPEATED} else ChangeKind.CARDINALITY_CHANGED
    )
    numeric = after.message is None and after.proto_type not in _TEXTS
    refused = BOTH if numeric or Cardinality.MAP in kinds else None
    return change(path, before.number, kind, before.text, after.text, backward, forward, refused)


def _placing(number: int, was: Declaration, now: Declaration, path: str) -> Iterator[SchemaChange]:
    before, after = was.fields[number], now.fields[number]
    if before.oneof != after.oneof:
        backward = worst(oneof_reading(number, was.fields, now.fields), presence_reading(before, after))
        forward = worst(oneof_reading(number, now.fields, was.fields), presence_reading(after, before))
        lost_in_oneof = _where(
            oneof_reading(number, was.fields, now.fields),
            oneof_reading(number, now.fields, was.fields),
            WireCompatibility.LOSS,
        )
        refused = lost_in_oneof | _where(backward, forward, WireCompatibility.INCOMPATIBLE)
        kind = _oneof_kind(before, after)
        yield change(path, number, kind, before.text, after.text, backward, forward, refused)
    elif before.presence is not after.presence:
        backward, forward = presence_reading(before, after), presence_reading(after, before)
        yield change(path, number, ChangeKind.PRESENCE_CHANGED, before.text, after.text, backward, forward)
    if before.proto_type == after.proto_type and before.default != after.default:
        lost = ReadEffect(WireCompatibility.LOSS, "where the field is unset, another default is read")
        yield change(path, number, ChangeKind.DEFAULT_CHANGED, before.default, after.default, lost, lost)


def _oneof_kind(before: Declared, after: Declared) -> ChangeKind:
    if before.oneof is None:
        return ChangeKind.MOVED_INTO_ONEOF
    return ChangeKind.MOVED_OUT_OF_ONEOF if after.oneof is None else ChangeKind.ONEOF_CHANGED


def _writing(before: Declared, after: Declared, path: str) -> Iterator[SchemaChange]:
    lists = before.cardinality is after.cardinality is Cardinality.REPEATED
    if lists and before.packed != after.packed:
        # https://protobuf.dev/programming-guides/encoding/#packed: a parser takes either form for the other
        yield change(path, before.number, ChangeKind.PACKED_CHANGED, _packing(before), _packing(after))
    if before.name == after.name and before.json_name != after.json_name:
        yield change(path, before.number, ChangeKind.JSON_NAME_CHANGED, before.json_name, after.json_name)


def _packing(field: Declared) -> str:
    return "packed" if field.packed else "expanded"


def _where(backward: ReadEffect, forward: ReadEffect, at_least: WireCompatibility) -> frozenset[Direction]:
    bad = list(WireCompatibility)[list(WireCompatibility).index(at_least) :]
    pairs = ((Direction.BACKWARD, backward), (Direction.FORWARD, forward))
    return frozenset(direction for direction, reading in pairs if reading.wire in bad)


def enum_changes(old: EnumDescriptor, new: EnumDescriptor, path: str, number: int) -> Iterator[SchemaChange]:
    """Yield the changes of the enum of this field, by number.

    A number has its first name: it is the one that rows show. Names are not on the wire; an open enum keeps
    a number that it does not know, a closed one puts it aside (https://protobuf.dev/programming-guides/enum/).
    """
    was, now = _numbers(old), _numbers(new)
    moved = [name for name in was if name in now and was[name] != now[name]]
    yield from _openness(old, new, path, number)
    for name in moved:
        other = ReadEffect(WireCompatibility.LOSS, f"{was[name]} and {now[name]} mean different values")
        kind = ChangeKind.ENUM_VALUE_NUMBER_CHANGED
        yield change(path, number, kind, f"{name} = {was[name]}", f"{name} = {now[name]}", other, other)
    gone = {name: value for name, value in was.items() if name not in now}
    fresh = {name: value for name, value in now.items() if name not in was}
    shown, showing = _shown(was), _shown(now)
    for value in sorted(shown.keys() & showing.keys()):
        before, after = shown[value], showing[value]
        if before != after and before not in moved and after not in moved:
            yield change(path, number, ChangeKind.ENUM_VALUE_RENAMED, before, after)
            gone.pop(before, None)
            fresh.pop(after, None)
    for name, value in gone.items():
        backward = _unknown(new) if value not in now.values() else FINE
        yield change(path, number, ChangeKind.ENUM_VALUE_REMOVED, f"{name} = {value}", None, backward)
    for name, value in fresh.items():
        forward = _unknown(old) if value not in was.values() else FINE
        yield change(path, number, ChangeKind.ENUM_VALUE_ADDED, None, f"{name} = {value}", forward=forward)
    yield from reserved_changes(*_reserved(old), *_reserved(new), path, number)


def message_reserved_changes(was: Declaration, now: Declaration, path: str) -> Iterator[SchemaChange]:
    """Yield the changes of the numbers and names that a message reserves."""
    yield from reserved_changes(
        was.reserved_numbers, was.reserved_names, now.reserved_numbers, now.reserved_names, path, 0
    )


def reserved_changes(
    old: Ranges, old_names: frozenset[str], new: Ranges, new_names: frozenset[str], path: str, number: int
) -> Iterator[SchemaChange]:
    """Yield added and removed reservations; they do not change the encoding."""
    if more := _text(_without(new, old), new_names - old_names):
        yield change(path, number, ChangeKind.RESERVED_ADDED, None, more)
    if less := _text(_without(old, new), old_names - new_names):
        yield change(path, number, ChangeKind.RESERVED_REMOVED, less, None)


def _openness(old: EnumDescriptor, new: EnumDescriptor, path: str, number: int) -> Iterator[SchemaChange]:
    if old.is_closed != new.is_closed:
        was, now = ("closed" if enum.is_closed else "open" for enum in (old, new))
        yield change(path, number, ChangeKind.ENUM_OPENNESS_CHANGED, was, now, _unknown(new), _unknown(old))


def _unknown(reader: EnumDescriptor) -> ReadEffect:
    if reader.is_closed:
        return ReadEffect(WireCompatibility.LOSS, "a closed enum puts a number that it does not know aside")
    return FINE


def _numbers(enum: EnumDescriptor) -> dict[str, int]:
    return {value.name: value.number for value in enum.values}


def _shown(numbers: dict[str, int]) -> dict[int, str]:
    return {value: name for name, value in reversed(numbers.items())}


def _reserved(enum: EnumDescriptor) -> tuple[Ranges, frozenset[str]]:
    proto = EnumDescriptorProto()
    enum.CopyToProto(proto)
    return merge_ranges((part.start, part.end) for part in proto.reserved_range), frozenset(proto.reserved_name)


def _without(ranges: Ranges, others: Ranges) -> Ranges:
    left = set(ranges)
    for low, high in others:
        left = {
            part
            for first, last in left
            for part in ((first, min(last, low - 1)), (max(first, high + 1), last))
            if part[0] <= part[1]
        }
    return merge_ranges(left)


def _text(numbers: Ranges, names: frozenset[str]) -> str:
    ranges = [str(first) if first == last else f"{first} to {last}" for first, last in sorted(numbers)]
    return ", ".join([*ranges, *(f'"{name}"' for name in sorted(names))])
