"""JSON of the Jobs API against databricks-sdk's types, field by field: names, kinds of values, members of enums."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Iterator
from enum import Enum
from typing import Any

# what a bundle puts in place of a text or a number
_VARIABLE = re.compile(r"\$\{(var|resources)\.[\w.]+\}")


def wrong_fields(kind: Any, value: Any, path: str = "") -> Iterator[str]:
    """What of a value is not as the SDK's type has it, each with its path.

    Args:
        kind: a type of `databricks.sdk.service`, or an annotation in one.
        value: JSON data.
        path: of the value.
    """
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        (kind,) = (each for each in inner if each is not type(None))
        yield from wrong_fields(kind, value, path)
    elif isinstance(value, str) and _VARIABLE.fullmatch(value):
        return
    elif origin in (list, dict):
        if not isinstance(value, origin):
            yield f"{path}: expected {origin.__name__}, not {value!r}"
            return
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in entries:
            yield from wrong_fields(inner[-1], each, f"{path}.{key}")
    elif dataclasses.is_dataclass(kind):
        yield from _wrong_in_object(kind, value, path)
    elif isinstance(kind, type) and issubclass(kind, Enum):
        if value not in {member.value for member in kind}:
            yield f"{path}: {value!r} is none of {kind.__name__}"
    elif kind is float:
        if not isinstance(value, int | float):
            yield f"{path}: expected a number, not {value!r}"
    elif type(value) is not kind:
        yield f"{path}: expected {kind.__name__}, not {value!r}"


def _wrong_in_object(kind: Any, value: Any, path: str) -> Iterator[str]:
    hints = typing.get_type_hints(kind)
    if not isinstance(value, dict):
        yield f"{path}: expected {kind.__name__}, not {value!r}"
        return
    for name, each in value.items():
        if name in hints:
            yield from wrong_fields(hints[name], each, f"{path}.{name}")
        else:
            yield f"{path}: {kind.__name__} has no field {name}"
    needed = (field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING)
    yield from (f"{path}: {kind.__name__} needs {name}" for name in needed if name not in value)
