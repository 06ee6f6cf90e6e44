"""Marks in a registry without tags: what a producer is about to register, as versions of a subject of its own. Pure.

A mark is an Avro schema, the one type that every Confluent-compatible registry takes whatever its settings, with the
marked schema in its `doc`. It holds the whole schema, not an id: it is written first, when there is no id yet.
Some registries take schemas that differ in `doc` only for the same, so each mark has a field of its own; with its
default it is compatible with all other marks at every level.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

_PREFIX = "demux-marks."


class JsonShape(BaseModel):
    """JSON of the registry's API; fields that we do not read may be there."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class ReferenceTo(JsonShape):
    """A schema that another one imports as `name`."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class OwnershipMark:
    """What makes a schema the same schema in its subject."""

    subject: str
    text: str
    references: tuple[ReferenceTo, ...] = ()


_MARK = TypeAdapter(OwnershipMark)


def mark_subject(made_by: str) -> str:
    """Return the subject that the marks of this maker are kept under."""
    return f"{_PREFIX}{made_by}"


def is_mark_subject(subject: str) -> bool:
    """Return whether the subject holds marks, and no schemas of payloads."""
    return subject.startswith(_PREFIX)


def mark_text(mark: OwnershipMark) -> str:
    """Return the schema that says so; `read_mark` is its inverse."""
    doc = _MARK.dump_json(mark).decode()
    field = {"name": f"m_{hashlib.sha256(doc.encode()).hexdigest()}", "type": "null", "default": None}
    return json.dumps({"type": "record", "name": "DemuxMark", "fields": [field], "doc": doc})


def read_mark(text: str) -> OwnershipMark | None:
    """Return the mark of a schema's text; None for a text that is none."""
    try:
        return _MARK.validate_json(json.loads(text)["doc"])
    except (ValidationError, ValueError, KeyError, TypeError):
        return None
