"""The column rules: what each field of a Protobuf message becomes in a table (docs/columns.md).

`shape_of` reads a descriptor once and says, field by field, what is on the wire and which column it fills. Every
decoder and the reference follow the same shape, so the rules are here only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from demux.core.columns.types import EMPTY_STRUCT, Array, Column, ColumnType, Map, Primitive, Struct, unique_name
from demux.core.errors import SchemaInvalid
from demux.core.protobuf.schema.descriptor_pool import is_repeated, is_required

# a message of mutually recursive types unfolds into more columns than any table can hold
MAX_COLUMNS = 20_000

_WRAPPERS = {
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
_JSON = {f"google.protobuf.{name}" for name in ("Any", "Struct", "Value", "ListValue")}

_PRIMITIVES = {
    FieldDescriptor.TYPE_DOUBLE: Primitive.DOUBLE,
    FieldDescriptor.TYPE_FLOAT: Primitive.FLOAT,
    FieldDescriptor.TYPE_INT64: Primitive.BIGINT,
    FieldDescriptor.TYPE_SINT64: Primitive.BIGINT,
    FieldDescriptor.TYPE_SFIXED64: Primitive.BIGINT,
    FieldDescriptor.TYPE_UINT64: Primitive.DECIMAL_20_0,
    FieldDescriptor.TYPE_FIXED64: Primitive.DECIMAL_20_0,
    FieldDescriptor.TYPE_INT32: Primitive.INT,
    FieldDescriptor.TYPE_SINT32: Primitive.INT,
    FieldDescriptor.TYPE_SFIXED32: Primitive.INT,
    FieldDescriptor.TYPE_UINT32: Primitive.BIGINT,
    FieldDescriptor.TYPE_FIXED32: Primitive.BIGINT,
    FieldDescriptor.TYPE_BOOL: Primitive.BOOLEAN,
    FieldDescriptor.TYPE_STRING: Primitive.STRING,
    FieldDescriptor.TYPE_BYTES: Primitive.BINARY,
}


class FieldPresence(Enum):
    """The meaning of an unset field: its default (implicit), NULL (explicit) or a bad row (required)."""

    IMPLICIT = "implicit"
    EXPLICIT = "explicit"
    REQUIRED = "required"


class Cardinality(Enum):
    """How many values a field holds."""

    SINGULAR = "singular"
    REPEATED = "repeated"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number, boolean, string or bytes; `proto_type` is one of `FieldDescriptor.TYPE_*`."""

    proto_type: int


@dataclass(frozen=True, slots=True)
class Enumeration:
    """An enum.

    Attributes:
        names: the first name of each number; a number of an open enum that has none becomes its digits.
        is_closed: whether a number without a name is an unknown field (proto2, `features.enum_type = CLOSED`).
    """

    names: tuple[tuple[int, str], ...]
    is_closed: bool


@dataclass(frozen=True, slots=True)
class NullableScalar:
    """A `google.protobuf.*Value` message: a nullable scalar."""

    scalar: Scalar


@dataclass(frozen=True, slots=True)
class TimestampValue:
    """A `google.protobuf.Timestamp`: microseconds since 1970 in UTC, truncated towards the past."""


@dataclass(frozen=True, slots=True)
class JsonText:
    """A message without a fixed shape (Any, Struct, recursion): canonical Protobuf JSON text."""

    message: str


@dataclass(frozen=True, slots=True)
class Message:
    """A message: one field per column, in order of declaration."""

    full_name: str
    fields: tuple[FieldMapping, ...]


Value = Scalar | Enumeration | NullableScalar | TimestampValue | JsonText | Message


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """One field on the wire and the column that it fills; `delimited`: it is in a group, not behind a length."""

    number: int
    name: str
    value: Value
    cardinality: Cardinality
    presence: FieldPresence
    key: Scalar | None
    packed: bool
    delimited: bool


def shape_of(descriptor: Descriptor, reserved: frozenset[str] = frozenset()) -> Message:
    """Return the columns of the message's fields.

    Args:
        descriptor: the message, from a pool that also holds its extensions.
        reserved: lower-case names that top-level columns must not take.

    Raises:
        SchemaInvalid: the message unfolds into more than `MAX_COLUMNS` columns.
    """
    return _Unfolding(descriptor.full_name).message(descriptor, (), reserved)


class _Unfolding:
    """Walks the message types from the root; a type met inside itself ends the walk as JSON text."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._columns = 0

    def message(self, descriptor: Descriptor, above: tuple[str, ...], reserved: frozenset[str]) -> Message:
        taken = set(reserved)
        # a pool gives extensions in no order of its own
        declared = [*descriptor.fields, *_by_number(descriptor.file.pool.FindAllExtensions(descriptor))]
        # the lowest number keeps the plain name, so that a later field cannot take it away
        names = {field.number: unique_name(_column_name(field), field.number, taken) for field in _by_number(declared)}
        inside = (*above, descriptor.full_name)
        fields = tuple(self._field(field, names[field.number], inside) for field in declared)
        return Message(descriptor.full_name, fields)

    def _field(self, field: FieldDescriptor, name: str, above: tuple[str, ...]) -> FieldMapping:
        self._columns += 1
        if self._columns > MAX_COLUMNS:
            raise SchemaInvalid(
                f"Message {self._root!r} unfolds into more than {MAX_COLUMNS} columns.",
                "Wrap its recursive parts in google.protobuf.Any, or split the message.",
                message=self._root,
            )
        key: Scalar | None = None
        value_field, cardinality = field, Cardinality.SINGULAR
        if is_map(field):
            assert field.message_type is not None
            entry = field.message_type.fields_by_number
            key, value_field, cardinality = Scalar(entry[1].type), entry[2], Cardinality.MAP
        elif is_repeated(field):
            cardinality = Cardinality.REPEATED
        return FieldMapping(
            number=field.number,
            name=name,
            value=self._value(value_field, above),
            cardinality=cardinality,
            presence=_presence(field),
            key=key,
            packed=field.is_packed,
            delimited=field.type == FieldDescriptor.TYPE_GROUP or _is_in_set(field),
        )

    def _value(self, field: FieldDescriptor, above: tuple[str, ...]) -> Value:
        if field.enum_type is not None:
            return _enumeration(field.enum_type)
        message = field.message_type
        if message is None:
            return Scalar(field.type)
        if message.full_name in _WRAPPERS:
            return NullableScalar(Scalar(message.fields_by_number[1].type))
        if message.full_name == "google.protobuf.Timestamp":
            return TimestampValue()
        if message.full_name in _JSON or message.full_name in above:
            return JsonText(message.full_name)
        return self.message(message, above, frozenset())


def is_map(field: FieldDescriptor) -> bool:
    """Return whether the field is declared as `map<key, value>`."""
    message = field.message_type
    return bool(is_repeated(field) and message is not None and message.GetOptions().map_entry)


def column_type(value: Value) -> ColumnType:
    """Return the type of the column that a single value fills."""
    match value:
        case Scalar(proto_type):
            return _PRIMITIVES[proto_type]
        case NullableScalar(scalar):
            return column_type(scalar)
        case Enumeration() | JsonText():
            return Primitive.STRING
        case TimestampValue():
            return Primitive.TIMESTAMP
        case Message(_, fields):
            return Struct(tuple(column_of(field) for field in fields)) if fields else EMPTY_STRUCT


def column_of(field: FieldMapping) -> Column:
    """Return the column that a field fills."""
    single = column_type(field.value)
    match field.cardinality:
        case Cardinality.SINGULAR:
            return Column(field.name, single, field.number)
        case Cardinality.REPEATED:
            return Column(field.name, Array(single), field.number)
        case Cardinality.MAP:
            assert field.key is not None
            return Column(field.name, Map(_PRIMITIVES[field.key.proto_type], single), field.number)


def columns_of(message: Message) -> Struct:
    """Return the columns of a table whose rows are this message; none for a message without fields."""
    return Struct(tuple(column_of(field) for field in message.fields))


def _is_in_set(field: FieldDescriptor) -> bool:
    # a "message set" wraps each extension in a group of its own
    holder = field.containing_type
    return holder is not None and bool(holder.GetOptions().message_set_wire_format)


def _by_number(fields: Iterable[FieldDescriptor]) -> list[FieldDescriptor]:
    return sorted(fields, key=lambda field: field.number)


def _column_name(field: FieldDescriptor) -> str:
    # an extension's short name may be another message's too: its full name is its own
    name: str = field.full_name.replace(".", "_") if field.is_extension else field.name
    # a group's field is named like its type in lower case by protoc already
    return name


def _presence(field: FieldDescriptor) -> FieldPresence:
    if is_required(field):
        return FieldPresence.REQUIRED
    return FieldPresence.EXPLICIT if field.has_presence else FieldPresence.IMPLICIT


def _enumeration(enum: EnumDescriptor) -> Enumeration:
    names: dict[int, str] = {}
    for value in enum.values:
        names.setdefault(value.number, value.name)
    return Enumeration(tuple(names.items()), enum.is_closed)
