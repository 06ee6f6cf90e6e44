"""What a row must be, from the words of docs/columns.md and not from the code that makes it. Free of Spark.

`oracle_row` reads a message of the schema's own class, field by field, and gives plain Python values:

| column | value |
| --- | --- |
| INT, BIGINT | int |
| DECIMAL(20,0) | Decimal |
| TIMESTAMP | `Micros`: int, microseconds since 1970 in UTC |
| STRING of canonical JSON | `Json`: str, equal to any text that parses to the same |
| ARRAY, MAP, STRUCT | list, dict, dict by column name |

`difference` compares such a row with another one and says where they differ first; NaN equals NaN, -0.0 is not 0.0,
maps have no order, and 1 is not True. The other row may be one of `arrow_rows`, or a Spark `Row`: give `plain(row)`,
collected in a session whose time zone is UTC with TZ=UTC (collected times are local times without a zone), or select
`unix_micros(column)` for years that Python cannot hold in the local zone.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from demux.core.protobuf.schema.descriptor_pool import is_repeated

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_UNSIGNED_64 = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)
_DYNAMIC = ("Any", "Struct", "Value", "ListValue")
_WRAPPED = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")

Row = dict[str, Any]


class Micros(int):
    """Microseconds since 1970 in UTC."""


class Json(str):
    """Canonical Protobuf JSON text."""

    __slots__ = ()


def oracle_row(message: Message, descriptor: Descriptor, reserved: Iterable[str] = ()) -> Row:
    """The row of a message, by column name.

    Args:
        message: an instance of the schema's own class (closed enums closed).
        descriptor: the message's descriptor.
        reserved: lower-case names that a top-level column must not have.
    """
    return _row(message, descriptor, (), reserved)


def column_names(descriptor: Descriptor, reserved: Iterable[str] = ()) -> dict[int, str]:
    """Column name by field number: where names are equal in lower case, the lowest number keeps the plain one."""
    names: dict[int, str] = {}
    taken = set(reserved)
    for field in sorted(fields_of(descriptor), key=lambda field: field.number):
        name = field.full_name.replace(".", "_") if field.is_extension else field.name
        while name.lower() in taken:
            name += f"__{field.number}"
        names[field.number] = name
        taken.add(name.lower())
    return names


def fields_of(descriptor: Descriptor) -> list[FieldDescriptor]:
    """The declared fields, and by number the extensions that the descriptor's pool has."""
    extensions = descriptor.file.pool.FindAllExtensions(descriptor)
    return [*descriptor.fields, *sorted(extensions, key=lambda field: field.number)]


def _row(message: Message, descriptor: Descriptor, above: tuple[str, ...], reserved: Iterable[str] = ()) -> Row:
    names = column_names(descriptor, reserved)
    inside = (*above, descriptor.full_name)
    return {names[field.number]: _column(message, field, inside) for field in fields_of(descriptor)}


def _column(message: Any, field: FieldDescriptor, above: tuple[str, ...]) -> Any:
    holder = message.Extensions[field] if field.is_extension else getattr(message, field.name)
    if is_repeated(field) and field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
        return {_value(name, key, above): _value(holder[name], value, above) for name in holder}
    if is_repeated(field):
        return [_value(item, field, above) for item in holder]
    if field.has_presence:
        is_set = message.HasExtension(field) if field.is_extension else type(message).HasField(message, field.name)
        return _value(holder, field, above) if is_set else None
    return _value(holder, field, above)


def _value(value: Any, field: FieldDescriptor, above: tuple[str, ...]) -> Any:
    if field.enum_type is not None:
        named = [known.name for known in field.enum_type.values if known.number == value]
        return named[0] if named else f"{value:d}"
    if field.message_type is not None:
        return _message(value, field.message_type, above)
    return Decimal(value) if field.type in _UNSIGNED_64 else value


def _message(value: Any, descriptor: Descriptor, above: tuple[str, ...]) -> Any:
    package, _, short = descriptor.full_name.rpartition(".")
    if package == "google.protobuf":
        if short == "Timestamp":
            return Micros(value.ToMicroseconds())
        if short in _DYNAMIC:
            return Json(json.dumps(_dynamic(value)))
        if short.endswith("Value") and short[: -len("Value")] in _WRAPPED:
            return _value(value.value, descriptor.fields_by_name["value"], above)
    if descriptor.full_name in above:
        # an extension's list in which no number has a name is there until the message is written again
        again = type(value).FromString(value.SerializeToString())
        return Json(json_format.MessageToJson(again, descriptor_pool=descriptor.file.pool))
    if not fields_of(descriptor):
        return {"_empty": True}
    return _row(value, descriptor, above)


def _dynamic(value: Any) -> Any:
    """https://protobuf.dev/programming-guides/json: what these four types are in JSON."""
    descriptor: Descriptor = type(value).DESCRIPTOR
    match descriptor.name:
        case "Struct":
            return {name: _dynamic(value.fields[name]) for name in value.fields}
        case "ListValue":
            return [_dynamic(item) for item in value.values]
        case "Any":
            return _any(value, descriptor)
    kind = value.WhichOneof("kind")
    if kind in (None, "null_value"):
        return None
    inside = getattr(value, kind)
    return _dynamic(inside) if kind in ("struct_value", "list_value") else inside


def _any(value: Any, descriptor: Descriptor) -> Any:
    try:
        return json_format.MessageToDict(value, descriptor_pool=descriptor.file.pool)
    except TypeError:
        # an unknown type: the members of the message itself
        return {"@type": value.type_url, "value": base64.b64encode(value.value).decode()}


def difference(expected: Any, got: Any, path: str = "row") -> str | None:
    """Where and how the two differ first, or None; `expected` comes from the oracle."""
    match expected:
        case dict():
            return _dict_difference(expected, dict(got) if isinstance(got, list) else got, got, path)
        case list():
            if not isinstance(got, list) or len(got) != len(expected):
                return f"{path}: {expected!r} became {got!r}"
            pairs = enumerate(zip(expected, got, strict=True))
            return next((d for at, (a, b) in pairs if (d := difference(a, b, f"{path}[{at}]"))), None)
    return None if _same(expected, got) else f"{path}: {expected!r} became {got!r}"


def _dict_difference(expected: Row, got: Any, original: Any, path: str) -> str | None:
    if not isinstance(got, dict) or len(original) != len(expected) or got.keys() != expected.keys():
        return f"{path}: {expected!r} became {original!r}"
    return next((d for key, value in expected.items() if (d := difference(value, got[key], f"{path}.{key}"))), None)


def _same(expected: Any, got: Any) -> bool:
    if isinstance(expected, Json):
        return isinstance(got, str) and bool(json.loads(expected) == json.loads(got))
    if isinstance(expected, float):
        if not isinstance(got, float) or math.isnan(expected) != math.isnan(got):
            return False
        return math.isnan(expected) or (expected == got and math.copysign(1, expected) == math.copysign(1, got))
    kinds = (type(expected), type(got))
    if kinds in ((Micros, int), (Decimal, int)):
        return bool(expected == got)
    return kinds[0] is kinds[1] and bool(expected == got)


def arrow_rows(columns: Sequence[pa.Array], names: Sequence[str]) -> list[Row]:
    """The rows of Arrow columns, timestamps in microseconds, maps as lists of pairs (so that doubled keys show)."""
    values = [[plain(value) for value in column.to_pylist()] for column in columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def plain(value: Any) -> Any:
    """A value that Arrow or Spark gave, as the oracle says it; a time without a zone counts as UTC."""
    if hasattr(value, "asDict"):
        return {name: plain(inside) for name, inside in value.asDict(recursive=False).items()}
    match value:
        case datetime():
            aware = value if value.tzinfo is not None else value.replace(tzinfo=timezone.utc)
            return Micros((aware - _EPOCH) // timedelta(microseconds=1))
        case bytearray():
            return bytes(value)
        case dict():
            return {plain(key): plain(inside) for key, inside in value.items()}
        case list():
            return [plain(inside) for inside in value]
        case tuple():
            return tuple(plain(inside) for inside in value)
    return value
