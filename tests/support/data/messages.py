"""Random valid messages of any descriptor, boundary values first. Seeded, so that a failure comes back. Free of Spark.

"Valid" means that the column rules have a place for every value: timestamps in range, no NaN inside a `Value`.
"""

from __future__ import annotations

import contextlib
import random
import struct
from collections.abc import Callable
from typing import Any, cast

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from demux.core.protobuf.schema.descriptor_pool import is_repeated, is_required

FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
_DURATION_S = 315_576_000_000

_TEXTS = ("", "a", "ß", "İstanbul", "日本語", "👩‍👩‍👧", "\x00", "\n\t\"'\\", " ", "NULL", "a" * 300, "\uffff\U0010ffff")
_DOUBLES = (0.0, -0.0, 1.0, -1.5, float("inf"), float("-inf"), float("nan"), 5e-324, 1.7976931348623157e308, 0.1)
_SIGNED = {32: (0, 1, -1, 127, 128, 2**31 - 1, -(2**31)), 64: (0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63))}
_UNSIGNED = {32: (0, 1, 127, 128, 2**31, 2**32 - 1), 64: (0, 1, 2**53 + 1, 2**63, 2**64 - 1)}
_BITS = {
    FieldDescriptor.TYPE_INT32: (32, True),
    FieldDescriptor.TYPE_SINT32: (32, True),
    FieldDescriptor.TYPE_SFIXED32: (32, True),
    FieldDescriptor.TYPE_INT64: (64, True),
    FieldDescriptor.TYPE_SINT64: (64, True),
    FieldDescriptor.TYPE_SFIXED64: (64, True),
    FieldDescriptor.TYPE_UINT32: (32, False),
    FieldDescriptor.TYPE_FIXED32: (32, False),
    FieldDescriptor.TYPE_UINT64: (64, False),
    FieldDescriptor.TYPE_FIXED64: (64, False),
}


def random_message(message: type[Message], rng: random.Random, density: float = 0.7, depth: int = 4) -> Message:
    """A valid message.

    Args:
        message: its class.
        rng: where all choices come from.
        density: the share of the fields that are set; required ones always are.
        depth: how many levels of messages are filled; below, only what is required.
    """
    return _Maker(rng, density).message(message, depth, inside_json=False)


def payloads(message: type[Message], seed: int, count: int, density: float = 0.7) -> list[bytes]:
    """Serialized valid messages; the first is as empty as can be, the second has every field."""
    rng = random.Random(seed)
    made = [random_message(message, rng, density=0.0), random_message(message, rng, density=1.0, depth=3)]
    made += [random_message(message, rng, density) for _ in range(count - len(made))]
    return [serialized(one) for one in made[:count]]


def serialized(message: Message) -> bytes:
    """The message's bytes, also where a field is called `SerializeToString`."""
    return type(message).SerializeToString(message)


class _Maker:
    def __init__(self, rng: random.Random, density: float) -> None:
        self._rng = rng
        self._density = density
        self._known: dict[str, Callable[[Message, int, bool], None]] = {
            "google.protobuf.Timestamp": self._timestamp,
            "google.protobuf.Duration": self._duration,
            "google.protobuf.Any": self._any,
            "google.protobuf.Value": self._value,
            "google.protobuf.FieldMask": self._mask,
        }

    def message(self, of: type[Message], depth: int, inside_json: bool) -> Message:
        made = of()
        self.fill(made, depth, inside_json)
        return made

    def fill(self, message: Message, depth: int, inside_json: bool) -> None:
        descriptor: Any = type(message).DESCRIPTOR
        special = self._known.get(descriptor.full_name)
        if special is not None:
            special(message, depth, inside_json)
            return
        recursive = inside_json or descriptor.full_name in ("google.protobuf.Struct", "google.protobuf.ListValue")
        for field in self._chosen(descriptor, depth):
            self._set(message, field, depth, recursive)

    def _chosen(self, descriptor: Descriptor, depth: int) -> list[FieldDescriptor]:
        plain = [f for f in descriptor.fields if f.containing_oneof is None or len(f.containing_oneof.fields) == 1]
        plain += descriptor.file.pool.FindAllExtensions(descriptor)
        density = self._density if depth > 0 else 0.0
        chosen = [f for f in plain if is_required(f) or self._rng.random() < density]
        for oneof in descriptor.oneofs:
            if len(oneof.fields) > 1 and self._rng.random() < density:
                chosen.append(self._rng.choice(list(oneof.fields)))
        return chosen

    def _set(self, message: Any, field: FieldDescriptor, depth: int, inside_json: bool) -> None:
        many = self._rng.choice((1, 1, 2, 3, 6)) if depth > 1 else 1
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            self._fill_map(_get(message, field), field.message_type, many, depth, inside_json)
        elif is_repeated(field) and field.message_type is not None:
            for _ in range(many):
                self.fill(_get(message, field).add(), depth - 1, inside_json)
        elif is_repeated(field):
            _get(message, field).extend(self.scalar(field) for _ in range(many))
        elif field.message_type is not None:
            inside = _get(message, field)
            inside.SetInParent()
            self.fill(inside, depth - 1, inside_json)
        elif field.is_extension:
            message.Extensions[field] = self.scalar(field)
        else:
            setattr(message, field.name, self.scalar(field))

    def _fill_map(self, target: Any, entry: Descriptor, many: int, depth: int, inside_json: bool) -> None:
        key, value = entry.fields_by_number[1], entry.fields_by_number[2]
        for _ in range(many):
            if value.message_type is None:
                target[self.scalar(key)] = self.scalar(value)
            else:
                self.fill(target[self.scalar(key)], depth - 1, inside_json)

    def scalar(self, field: FieldDescriptor) -> Any:
        rng = self._rng
        if field.enum_type is not None:
            return self._enum(field.enum_type)
        match field.type:
            case FieldDescriptor.TYPE_BOOL:
                return rng.random() < 0.5
            case FieldDescriptor.TYPE_STRING:
                return self._text()
            case FieldDescriptor.TYPE_BYTES:
                return rng.choice((b"", b"\x00", b"\xff\xfe", rng.randbytes(rng.randrange(200))))
            case FieldDescriptor.TYPE_DOUBLE:
                return self._double()
            case FieldDescriptor.TYPE_FLOAT:
                return _as_float(self._double())
        bits, signed = _BITS[field.type]
        if rng.random() < 0.4:
            return rng.choice((_SIGNED if signed else _UNSIGNED)[bits])
        return rng.getrandbits(rng.randrange(1, bits + 1)) - (1 << (bits - 1) if signed else 0)

    def _text(self) -> str:
        if self._rng.random() < 0.5:
            return self._rng.choice(_TEXTS)
        return "".join(self._rng.choice("abcäöü日é0 _") for _ in range(self._rng.randrange(20)))

    def _double(self) -> float:
        return self._rng.choice(_DOUBLES) if self._rng.random() < 0.5 else self._rng.uniform(-1e6, 1e6)

    def _enum(self, enum: EnumDescriptor) -> int:
        if not enum.is_closed and self._rng.random() < 0.2:
            return self._rng.choice((-(2**31), 2**31 - 1, -77, 77))
        number: int = self._rng.choice(list(enum.values)).number
        return number

    def _timestamp(self, message: Any, depth: int, inside_json: bool) -> None:
        ends = (FIRST_SECOND, FIRST_SECOND + 1, -1, 0, 1, LAST_SECOND - 1, LAST_SECOND)
        any_second = self._rng.randrange(FIRST_SECOND, LAST_SECOND)
        message.seconds = self._rng.choice(ends) if self._rng.random() < 0.4 else any_second
        message.nanos = self._rng.choice((0, 1, 999, 1_000, 999_999_999, self._rng.randrange(10**9)))

    def _duration(self, message: Any, depth: int, inside_json: bool) -> None:
        sign = self._rng.choice((1, -1))
        message.seconds = sign * self._rng.choice((0, 1, _DURATION_S - 1, self._rng.randrange(10**6)))
        message.nanos = sign * self._rng.choice((0, 1, 999_999_999))

    def _any(self, message: Any, depth: int, inside_json: bool) -> None:
        # inside other JSON text an unknown type has no form; alone it keeps its bytes
        kind = self._rng.choice(("known", "known", "empty", "unknown"))
        if kind == "unknown" and not inside_json:
            message.type_url = "type.example/nobody.Knows"
            message.value = self._rng.randbytes(self._rng.randrange(20))
        elif kind == "known":
            known = self._rng.choice(_packable(type(message).DESCRIPTOR.file.pool))
            message.Pack(self.message(GetMessageClass(known), 1, inside_json=True))

    def _value(self, message: Any, depth: int, inside_json: bool) -> None:
        kind = self._rng.randrange(7 if depth > 0 else 5)
        match kind:
            case 0:
                return
            case 1:
                message.null_value = 0
            case 2:
                message.number_value = self._rng.choice((0.0, -0.0, 1.5, 1e300, 2.0**53, -3.0))
            case 3:
                message.string_value = self._text()
            case 4:
                message.bool_value = self._rng.random() < 0.5
            case 5:
                message.struct_value.SetInParent()
                self.fill(message.struct_value, depth - 1, True)
            case _:
                message.list_value.SetInParent()
                self.fill(message.list_value, depth - 1, True)

    def _mask(self, message: Any, depth: int, inside_json: bool) -> None:
        message.paths.extend(self._rng.choice(("user_name", "a.b_c", "x")) for _ in range(self._rng.randrange(3)))


def _get(message: Any, field: FieldDescriptor) -> Any:
    return message.Extensions[field] if field.is_extension else getattr(message, field.name)


def _packable(pool: DescriptorPool) -> list[Descriptor]:
    found = []
    for name in ("google.protobuf.Any", "google.protobuf.Timestamp", "google.protobuf.Duration", "known.Payload"):
        with contextlib.suppress(KeyError):
            found.append(pool.FindMessageTypeByName(name))
    return found


def _as_float(value: float) -> float:
    try:
        (rounded,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        return 3.4028234663852886e38
    return float(rounded)


def filled(cls: type[Message], **fields: Any) -> Message:
    """A message of these fields; protobuf before 6.31 takes no dictionaries for the messages of a map."""
    maps = {name: value for name, value in fields.items() if _is_map_of_messages(cls, name)}
    made = cls(**{name: value for name, value in fields.items() if name not in maps})
    for name, entries in maps.items():
        entry = cast("Descriptor", cls.DESCRIPTOR.fields_by_name[name].message_type)
        inner = GetMessageClass(cast("Descriptor", entry.fields_by_name["value"].message_type))
        for key, parts in entries.items():
            getattr(made, name)[key].MergeFrom(filled(inner, **parts))
    return made


def _is_map_of_messages(cls: type[Message], name: str) -> bool:
    entry = cls.DESCRIPTOR.fields_by_name[name].message_type
    return bool(
        entry is not None and entry.GetOptions().map_entry and entry.fields_by_name["value"].message_type is not None
    )
