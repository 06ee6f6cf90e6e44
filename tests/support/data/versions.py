"""Pairs of versions of one message, as Hypothesis draws them, and values in a form that both versions share.

The versions are built as descriptors, without protoc, so that hundreds of pairs take seconds.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from google.protobuf.message import Message
from hypothesis import strategies as st

from demux.core.protobuf.schema.descriptor_pool import is_repeated
from demux.core.protobuf.schema.protoc import CompiledSchema, compile_schema
from demux.core.registry.protocol import RegisteredSchema
from tests.support.data.protos import SCALARS

NUMBERS = range(1, 7)
_LABELS = ("plain", "plain", "optional", "required", "repeated", "map", "oneof_a", "oneof_b")
_TYPES = (*SCALARS, "Mood", "Other", "Inner", "Third", "Root")
_ENUMS, _MESSAGES = ("Mood", "Other"), ("Inner", "Third", "Root")


@dataclass(frozen=True)
class FieldSpec:
    name: str
    type: str
    label: str
    packed: bool


@dataclass(frozen=True)
class VersionSpec:
    """A version: the fields of `Root`, of `Inner` and `Third`, and the values of its two enums."""

    syntax: str
    root: tuple[tuple[int, FieldSpec], ...]
    inner: tuple[tuple[int, FieldSpec], ...]
    third: tuple[tuple[int, FieldSpec], ...]
    mood: tuple[str, ...]


def _field(number: int, types: Sequence[str]) -> st.SearchStrategy[tuple[int, FieldSpec]]:
    names = st.sampled_from([f"f{number}", f"f{number}", f"f{number}", f"g{number}", "f1" if number > 3 else "f6"])
    spec = st.builds(FieldSpec, names, st.sampled_from(types), st.sampled_from(_LABELS), st.booleans())
    return st.tuples(st.just(number), spec)


def _fields(types: Sequence[str]) -> st.SearchStrategy[tuple[tuple[int, FieldSpec], ...]]:
    return st.tuples(*(st.none() | _field(number, types) for number in NUMBERS)).map(
        lambda fields: _distinct(tuple(field for field in fields if field is not None))
    )


def _distinct(fields: tuple[tuple[int, FieldSpec], ...]) -> tuple[tuple[int, FieldSpec], ...]:
    by_name = {spec.name: (number, spec) for number, spec in fields}
    return tuple(sorted(by_name.values()))


def _some(old: tuple[Any, ...], new: tuple[Any, ...], kept: tuple[bool, ...]) -> tuple[tuple[int, FieldSpec], ...]:
    """The older fields where `kept` says so, the newer ones elsewhere."""
    was, now = dict(old), dict(new)
    mixed = [(n, (was if keep else now).get(n)) for n, keep in zip(NUMBERS, kept, strict=True)]
    return _distinct(tuple((number, spec) for number, spec in mixed if spec is not None))


_KEPT = st.tuples(*(st.sampled_from([True, True, False]) for _ in NUMBERS))
_MOOD = st.lists(st.sampled_from(["A=1", "B=2", "C=3", "A2=1", "C=2"]), max_size=3, unique_by=lambda text: text[0])
_SYNTAX = st.sampled_from(["proto3", "proto3", "proto2"])
_FLAT = (*SCALARS, "Mood")
_VERSIONS = st.builds(
    VersionSpec, _SYNTAX, _fields(_TYPES), _fields(_FLAT), _fields((*_FLAT, "Root")), _MOOD.map(tuple)
)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[CompiledSchema, CompiledSchema]:
    """Two versions of `v.Root` that share about two thirds of their fields."""
    old, new = draw(_VERSIONS), draw(_VERSIONS)
    root, inner, third = draw(_KEPT), draw(_KEPT), draw(_KEPT)
    later = VersionSpec(
        new.syntax if draw(st.booleans()) else old.syntax,
        _some(old.root, new.root, root),
        _some(old.inner, new.inner, inner),
        _some(old.third, new.third, third),
        new.mood if draw(st.booleans()) else old.mood,
    )
    return schema_of(old, 1), schema_of(later, 2)


@st.composite
def growing(draw: st.DrawFn) -> tuple[CompiledSchema, CompiledSchema]:
    """Two versions of `v.Root`, of which the later one has all fields of the earlier one and more; no recursion."""
    drawn = draw(_VERSIONS)
    root, inner, third = (
        tuple(field for field in fields if field[1].type != "Root") for fields in (drawn.root, drawn.inner, drawn.third)
    )
    fewer = [
        tuple(field for field, keep in zip(fields, draw(_KEPT), strict=False) if keep)
        for fields in (root, inner, third)
    ]
    old = VersionSpec(drawn.syntax, fewer[0], fewer[1], fewer[2], drawn.mood)
    return schema_of(old, 1), schema_of(VersionSpec(drawn.syntax, root, inner, third, drawn.mood), 2)


def version_of(text: str, number: int = 1, message: str | None = None, syntax: str = "proto3") -> CompiledSchema:
    """The version that a short text of package `t` compiles to; its message is the first one if none is named."""
    head = f'edition = "{syntax}";' if syntax.isdigit() else f'syntax = "{syntax}";'
    return compile_schema(RegisteredSchema(number, "t", number, f"{head} package t;\n{text}", "t.proto", (), message))


def schema_of(spec: VersionSpec, version: int) -> CompiledSchema:
    """The version as a schema of subject `v`."""
    file = FileDescriptorProto(name="v.proto", package="v", syntax=spec.syntax)
    for name, values in (("Mood", spec.mood), ("Other", ("X=1",))):
        file.enum_type.append(_enum(name, values))
    for name, fields in (("Root", spec.root), ("Inner", spec.inner), ("Third", spec.third)):
        file.message_type.append(_message(name, fields, spec.syntax))
    descriptors = FileDescriptorSet(file=[file]).SerializeToString()
    return CompiledSchema(version, "v", version, "v.Root", descriptors)


def _enum(name: str, values: Sequence[str]) -> EnumDescriptorProto:
    made = EnumDescriptorProto(name=name)
    made.value.add(name=f"{name}_ZERO", number=0)
    for value in values:
        word, _, number = value.partition("=")
        made.value.add(name=f"{name}_{word}", number=int(number))
    made.options.allow_alias = len({value.number for value in made.value}) < len(made.value)
    if not made.options.allow_alias:
        made.ClearField("options")
    return made


def _message(name: str, fields: Sequence[tuple[int, FieldSpec]], syntax: str) -> DescriptorProto:
    made = DescriptorProto(name=name)
    real = sorted({spec.label for _, spec in fields if spec.label.startswith("oneof")})
    for oneof in real:
        made.oneof_decl.add(name=oneof)
    for number, spec in fields:
        field = made.field.add(name=spec.name, number=number)
        _typed(field, spec.type)
        field.label = FieldDescriptorProto.LABEL_OPTIONAL
        match spec.label:
            case "required" if syntax == "proto2" and spec.type != "Root":
                field.label = FieldDescriptorProto.LABEL_REQUIRED
            case "repeated":
                field.label = FieldDescriptorProto.LABEL_REPEATED
                if spec.type not in ("string", "bytes", *_MESSAGES):
                    field.options.packed = spec.packed
            case "map":
                _map(made, field, f"v.{name}", spec, syntax)
            case "oneof_a" | "oneof_b":
                field.oneof_index = real.index(spec.label)
            case "optional" if syntax == "proto3":
                field.proto3_optional = True
    for field in made.field:
        if field.proto3_optional:
            field.oneof_index = len(made.oneof_decl)
            made.oneof_decl.add(name=f"_{field.name}")
    return made


def _map(message: DescriptorProto, field: FieldDescriptorProto, full_name: str, spec: FieldSpec, syntax: str) -> None:
    entry = message.nested_type.add(name=f"{spec.name.capitalize()}Entry")
    entry.options.map_entry = True
    key = entry.field.add(name="key", number=1, label=FieldDescriptorProto.LABEL_OPTIONAL)
    _typed(key, "string" if spec.packed else "int32")
    value = entry.field.add(name="value", number=2, label=FieldDescriptorProto.LABEL_OPTIONAL)
    _typed(value, spec.type)
    field.label = FieldDescriptorProto.LABEL_REPEATED
    field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{full_name}.{entry.name}"


def _typed(field: FieldDescriptorProto, name: str) -> None:
    if name in _ENUMS:
        field.type, field.type_name = FieldDescriptorProto.TYPE_ENUM, f".v.{name}"
    elif name in _MESSAGES:
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".v.{name}"
    else:
        field.type = FieldDescriptorProto.Type.Value(f"TYPE_{name.upper()}")


def equal(old: Message, new: Message) -> bool:
    """Whether the fields that both descriptors have hold equal values, at every level; the number decides.

    What a reader of the other version cannot tell apart is equal: numbers, booleans and enums; a text and its bytes; a
    map and the list of its entries.
    """
    was: Any = old.DESCRIPTOR
    now: Any = new.DESCRIPTOR
    both = set(was.fields_by_number) & set(now.fields_by_number)
    return all(_equal_field(old, was.fields_by_number[n], new, now.fields_by_number[n]) for n in both)


def _equal_field(old: Message, before: FieldDescriptor, new: Message, after: FieldDescriptor) -> bool:
    mine, theirs = _values(old, before), _values(new, after)
    if mine and not theirs and not after.has_presence and not is_repeated(after):
        # a zero is not kept apart from nothing
        theirs = [after.default_value]
    if _is_map(before) or _is_map(after):
        mine, theirs = sorted(map(_pair, mine), key=repr), sorted(map(_pair, theirs), key=repr)
    return len(mine) == len(theirs) and all(map(_equal_value, mine, theirs))


def _equal_value(mine: Any, theirs: Any) -> bool:
    match mine, theirs:
        case Message(), Message():
            return equal(mine, theirs)
        case _Pair(), _Pair():
            if None in (mine.key, theirs.key):
                return True
            return mine.key == theirs.key and (
                None in (mine.value, theirs.value) or _equal_value(mine.value, theirs.value)
            )
    return bool(_scalar(mine) == _scalar(theirs))


@dataclass(frozen=True)
class _Pair:
    """An entry of a map; None for a part that a message in its place does not have."""

    key: Any
    value: Any

    def __repr__(self) -> str:
        return repr(self.key)


def _values(message: Message, field: FieldDescriptor) -> list[Any]:
    """None, one or many; of a map its pairs."""
    value = {field.number: value for field, value in message.ListFields()}.get(field.number)
    if value is None:
        return []
    if _is_map(field):
        return [_Pair(_scalar(key), value[key]) for key in value]
    return list(value) if is_repeated(field) else [value]


def _pair(entry: Any) -> _Pair:
    if isinstance(entry, _Pair):
        return entry
    parts = {number: getattr(entry, field.name) for number, field in entry.DESCRIPTOR.fields_by_number.items()}
    return _Pair(_scalar(parts.get(1)), parts.get(2))


def _scalar(value: Any) -> Any:
    match value:
        case str():
            return value.encode()
        case float():
            return struct.pack("<d", value)
        case bool():
            return int(value)
    return value


def _is_map(field: FieldDescriptor) -> bool:
    message = field.message_type
    return message is not None and bool(message.GetOptions().map_entry)
