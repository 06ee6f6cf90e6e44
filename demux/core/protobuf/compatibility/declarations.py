"""The declaration of a message: its fields with all that their encoding depends on, and its reservations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto

from demux.core.protobuf.schema.column_mapping import Cardinality, FieldPresence, is_map
from demux.core.protobuf.schema.descriptor_pool import is_repeated, is_required

# first and last number of each
Ranges = frozenset[tuple[int, int]]

_NAMES = {
    getattr(FieldDescriptor, name): name.removeprefix("TYPE_").lower()
    for name in dir(FieldDescriptor)
    if name.startswith("TYPE_")
}


@dataclass(frozen=True, slots=True)
class Declared:
    """A field as it is declared.

    Attributes:
        name: its name; `[full.name]` for an extension.
        proto_type: one of `FieldDescriptor.TYPE_*`.
        oneof: the oneof it is a member of; never the one that `optional` makes.
        delimited: whether a message is in a group, not behind a length.
        default: the value where it is unset, as text; None for a message or a list.
        message: the type of a message field, a map's entry too.
    """

    number: int
    name: str
    json_name: str
    proto_type: int
    cardinality: Cardinality
    presence: FieldPresence
    oneof: str | None
    packed: bool
    delimited: bool
    default: str | None
    message: Descriptor | None
    enum: EnumDescriptor | None

    @property
    def type_name(self) -> str:
        """The type of one value, such as `int32` or `games.Device`."""
        named = self.message or self.enum
        name: str = _NAMES[self.proto_type] if named is None else named.full_name
        return f"group {name}" if self.delimited else name

    @property
    def text(self) -> str:
        """The type as in a `.proto` file, such as `repeated int32` or `map<string, int64>`."""
        match self.cardinality:
            case Cardinality.MAP:
                assert self.message is not None
                entry = declaration(self.message).fields
                return f"map<{entry[1].type_name}, {entry[2].type_name}>"
            case Cardinality.REPEATED:
                return f"repeated {self.type_name}"
            case Cardinality.SINGULAR:
                return self._singular()

    def _singular(self) -> str:
        if self.oneof is not None:
            return f"{self.type_name} in oneof {self.oneof}"
        match self.presence:
            case FieldPresence.REQUIRED:
                return f"required {self.type_name}"
            case FieldPresence.EXPLICIT if self.message is None:
                return f"optional {self.type_name}"
            case _:
                return self.type_name


@dataclass(frozen=True, slots=True)
class Declaration:
    """A message as it is declared.

    Attributes:
        fields: by number, in order of number, extensions included.
        reserved_numbers: first and last number of each reserved range; ranges that touch are one.
    """

    fields: Mapping[int, Declared]
    names: frozenset[str]
    is_map_entry: bool
    reserved_numbers: Ranges
    reserved_names: frozenset[str]

    def reserves(self, number: int) -> bool:
        """Return whether no field may have this number."""
        return any(first <= number <= last for first, last in self.reserved_numbers)


def declaration(message: Descriptor) -> Declaration:
    """Return how the message is declared; its pool must also hold its extensions."""
    proto = DescriptorProto()
    message.CopyToProto(proto)
    # `optional` in proto3 is written down as a oneof of its own
    alone = {field.number for field in proto.field if field.proto3_optional}
    declared = [*message.fields, *message.file.pool.FindAllExtensions(message)]
    fields = {field.number: _declared(field, field.number in alone) for field in declared}
    return Declaration(
        dict(sorted(fields.items())),
        frozenset(field.name for field in fields.values()),
        bool(proto.options.map_entry),
        merge_ranges((part.start, part.end - 1) for part in proto.reserved_range),
        frozenset(proto.reserved_name),
    )


def merge_ranges(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return the same numbers in as few ranges as can be."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return frozenset(found)


def _declared(field: FieldDescriptor, alone: bool) -> Declared:
    holder = field.containing_type
    in_set = holder is not None and bool(holder.GetOptions().message_set_wire_format)
    single = not is_repeated(field) and field.message_type is None
    return Declared(
        number=field.number,
        name=f"[{field.full_name}]" if field.is_extension else field.name,
        json_name=field.json_name,
        proto_type=field.type,
        cardinality=_cardinality(field),
        presence=_presence(field),
        oneof=None if alone or field.containing_oneof is None else field.containing_oneof.name,
        packed=bool(field.is_packed),
        delimited=field.type == FieldDescriptor.TYPE_GROUP or in_set,
        default=repr(field.default_value) if single else None,
        message=field.message_type,
        enum=field.enum_type,
    )


def _cardinality(field: FieldDescriptor) -> Cardinality:
    if is_map(field):
        return Cardinality.MAP
    return Cardinality.REPEATED if is_repeated(field) else Cardinality.SINGULAR


def _presence(field: FieldDescriptor) -> FieldPresence:
    if is_required(field):
        return FieldPresence.REQUIRED
    return FieldPresence.EXPLICIT if field.has_presence else FieldPresence.IMPLICIT
