"""The changes of an enum between two versions, and of what a message or an enum reserves."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.descriptor_pb2 import EnumDescriptorProto

from demux.core.protobuf.compatibility.changes import FINE, ChangeKind, ReadEffect, SchemaChange, WireCompatibility
from demux.core.protobuf.compatibility.declarations import Declaration, Ranges, merged
from demux.core.protobuf.compatibility.field_changes import change


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


def message_reserved(was: Declaration, now: Declaration, path: str) -> Iterator[SchemaChange]:
    """Yield the changes of the numbers and names that a message reserves."""
    yield from reserved_changes(
        was.reserved_numbers, was.reserved_names, now.reserved_numbers, now.reserved_names, path, 0
    )


def reserved_changes(
    old: Ranges, old_names: frozenset[str], new: Ranges, new_names: frozenset[str], path: str, number: int
) -> Iterator[SchemaChange]:
    """Yield what is reserved since, and what no longer is; the bytes are the same."""
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
    return merged((part.start, part.end) for part in proto.reserved_range), frozenset(proto.reserved_name)


def _without(ranges: Ranges, others: Ranges) -> Ranges:
    left = set(ranges)
    for low, high in others:
        left = {
            part
            for first, last in left
            for part in ((first, min(last, low - 1)), (max(first, high + 1), last))
            if part[0] <= part[1]
        }
    return merged(left)


def _text(numbers: Ranges, names: frozenset[str]) -> str:
    ranges = [str(first) if first == last else f"{first} to {last}" for first, last in sorted(numbers)]
    return ", ".join([*ranges, *(f'"{name}"' for name in sorted(names))])
