"""Single values of payloads that may be broken: never another value than the reference has."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from demux.columns import NO_FIELD, Primitive, Struct
from demux.protobuf.compile import compile_schema
from demux.protobuf.glimpse import Glimpse, Numbers, Unreadable, glimpse_of
from demux.protobuf.reference import MalformedRow, Reference
from demux.registry.protocol import RegisteredSchema
from tests.messages import payloads
from tests.protos import CASES, Schema, compiled, message_type
from tests.unit.demux.protobuf.test_partial import TEXT

# of each message, at so many places of each payload
SENT, CUTS = 6, 12


def ways(
    columns: Struct, above: Numbers = (), names: tuple[str, ...] = ()
) -> Iterator[tuple[Numbers, tuple[str, ...]]]:
    """Every column, and every one inside a message."""
    for column in columns:
        if column.number == NO_FIELD:
            continue
        numbers, path = (*above, column.number), (*names, column.name)
        yield numbers, path
        if isinstance(column.type, Struct):
            yield from ways(column.type, numbers, path)


def at(row: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        row = None if row is None else row[name]
    return row


def same(one: Any, other: Any) -> bool:
    # NaN is not equal to itself, and zeros are to each other
    return repr(one) == repr(other)
