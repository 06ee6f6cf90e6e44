from __future__ import annotations

import pytest

from demux.columns import Struct
from demux.errors import SchemaInvalid
from demux.protobuf.changes import Change, Comparison, Direction, Effect, Kind, Mode, Wire
from demux.protobuf.compatibility import compare, silver_columns, table_of
from demux.protobuf.compile import CompiledSchema
from tests.protos import CASES, SCHEMAS, Schema, compiled
from tests.versions import version_of

FINE, LOSS, NEVER = Wire.COMPATIBLE, Wire.LOSS, Wire.INCOMPATIBLE
NONE, BACK, FORTH, BOTH = "", "B", "F", "BF"


def compared(old: str, new: str, syntax: str = "proto3", later: str | None = None) -> Comparison:
    """Two bodies of a message M, or whole texts that begin with another message."""
    texts = [body if body.startswith("message") else f"message M {{ {body} }}" for body in (old, new)]
    return compare(version_of(texts[0], 1, syntax=syntax), version_of(texts[1], 2, syntax=later or syntax))


def the_change(comparison: Comparison) -> Change:
    (change,) = comparison.changes
    return change


def refused(change: Change) -> str:
    return "".join(direction.value[0] for direction in Direction if direction in change.refused)


# older body, newer body, kind, path, old and new text, backward, forward, refused, effect, sentence about silver
ONE_CHANGE = [
    ("", "int32 a = 1;", Kind.FIELD_ADDED, "a", None, "int32", FINE, FINE, NONE, Effect.ADDS_COLUMN, "adds column a INT"),
    (
        "map<string, bool> a = 1;",
        "",
        Kind.FIELD_REMOVED,
        "a",
        "map<string, bool>",
        None,
        FINE,
        FINE,
        NONE,
        Effect.STOPS_FILLING,
        "column a stays, NULL in new rows",
    ),
    (
        "int32 a = 1;",
        "int32 b = 1;",
        Kind.FIELD_RENAMED,
        "b",
        "a",
        "b",
        FINE,
        FINE,
        NONE,
        Effect.KEEPS_OLD_NAME,
        "column a keeps its name and gets the values of b",
    ),
]
