"""The options of a message and its fields as tags of a table and its columns in Unity Catalog. Pure.

Options are `deprecated`, and everything that a schema adds itself by extending `MessageOptions` or `FieldOptions`.
Limits: https://docs.databricks.com/aws/en/database-objects/tags
"""

from __future__ import annotations

import base64
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message

from demux.core.protobuf.schema.descriptor_pool import is_repeated, message_class, pool_of
from demux.core.text import printable

MAX_TAGS = 50
MAX_KEY = 255
MAX_VALUE = 1_000

_FORBIDDEN = frozenset(".,-=/:")


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags of a table.

    Attributes:
        columns: by the number of the top-level field, then by key; only fields that have tags. Columns inside others
            cannot have tags.
        left_out: a sentence for each option that no tag can hold.
    """

    table: Mapping[str, str]
    columns: Mapping[int, Mapping[str, str]]
    left_out: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.table or self.columns)


@lru_cache(maxsize=256)
def tags_of(descriptor_set: bytes, message: str) -> Tags:
    """Return the tags that the options of a message and its fields mean, within the limits.

    Args:
        descriptor_set: a serialized `FileDescriptorSet`, with the files that declare the options.
    """
    pool = pool_of(FileDescriptorSet.FromString(descriptor_set))
    descriptor = pool.FindMessageTypeByName(message)
    left_out: list[str] = []
    table = _tags(pool, descriptor, message, left_out)
    extensions: Iterable[FieldDescriptor] = pool.FindAllExtensions(descriptor)
    fields = sorted((*descriptor.fields, *extensions), key=lambda field: field.number)
    columns = {field.number: _tags(pool, field, field.full_name, left_out) for field in fields}
    return Tags(table, {number: tags for number, tags in columns.items() if tags}, tuple(left_out))


def _tags(pool: DescriptorPool, of: Descriptor | FieldDescriptor, name: str, left_out: list[str]) -> dict[str, str]:
    found = [(field, value) for field, value in _options(pool, of) if field.is_extension or field.name == "deprecated"]
    names = Counter(field.name for field, _ in found)
    tags: dict[str, str] = {}
    for field, value in sorted(found, key=lambda option: str(option[0].full_name)):
        # a key has no dots
        key = field.name if names[field.name] == 1 else field.full_name.replace(".", "_")
        text = _text(field, value)
        if reason := _reason(key, text, tags):
            left_out.append(f"Option {field.full_name} of {name} makes no tag: {reason}.")
        else:
            assert text is not None
            tags[key] = text
    return tags


def _options(pool: DescriptorPool, of: Descriptor | FieldDescriptor) -> Sequence[tuple[Any, Any]]:
    """Return the options that are set, with the fields that declare them, as the schema's own files know them."""
    given: Message = of.GetOptions()
    try:
        # the same options, by the schema's own copy of the file that declares them, know its extensions
        known = message_class(pool, given.DESCRIPTOR.full_name).FromString(given.SerializeToString())
    except (KeyError, DecodeError):
        known = given
    return list(known.ListFields())


def _reason(key: str, text: str | None, tags: Mapping[str, str]) -> str | None:
    """Return why there is no such tag, without a full stop; None where there may be one."""
    if key in tags:
        return f"another option is called {key} too"
    if len(key) > MAX_KEY or _FORBIDDEN & set(key):
        return f"{printable(key[:MAX_KEY])} is no key of a tag"
    if text is None:
        return "its value cannot be written as text"
    if len(text) > MAX_VALUE:
        return f"its value has {len(text)} characters, more than {MAX_VALUE}"
    if text != text.strip() or printable(text) != text:
        return "its value has characters that a tag cannot have"
    return f"there are {MAX_TAGS} already" if len(tags) >= MAX_TAGS else None


def _text(field: FieldDescriptor, value: Any) -> str | None:
    """Return the value as text: a list or a message as JSON on one line with sorted keys; None where it has none."""
    try:
        plain = [_plain(field, one) for one in value] if is_repeated(field) else _plain(field, value)
    except (ValueError, TypeError, json_format.Error):
        return None
    if isinstance(plain, str):
        return plain
    return json.dumps(plain, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _plain(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return json_format.MessageToDict(value, descriptor_pool=field.message_type.file.pool)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case _:
            return value
