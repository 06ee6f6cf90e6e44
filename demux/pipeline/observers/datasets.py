"""Datasets by the names that OpenLineage gives them, so that events of other programs mean the same ones.

https://openlineage.io/docs/spec/naming
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from demux.core.settings.settings import Settings
from demux.core.settings.source import SourceKind
from demux.core.storage.location import Scheme, locate


@dataclass(frozen=True, slots=True)
class DatasetName:
    """A dataset: the store or server that has it, and its name there."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class DatasetField:
    """A column, or a part of one.

    Attributes:
        name: its name; `_element` in an array, `key` and `value` in a map.
        type: Delta's name of the type; `struct`, `array` or `map` where it has parts.
    """

    name: str
    type: str
    description: str | None = None
    fields: tuple[DatasetField, ...] = ()


def dataset_at(path: str) -> DatasetName:
    """Return the dataset of a path or a URI."""
    place = locate(path)
    match place.scheme:
        case Scheme.FILE:
            return DatasetName("file", place.key)
        case Scheme.S3 | Scheme.AZURE | Scheme.GCS:
            return DatasetName(f"{place.scheme.value}://{place.container}", place.key)
        case Scheme.MOUNT | Scheme.OTHER:
            parts = urlsplit(path)
            return DatasetName(f"{parts.scheme}://{parts.netloc}", parts.path)


def sources(settings: Settings) -> Iterator[DatasetName]:
    """Yield what bronze reads: topics or a table, and the archive; a pattern of topics is named as it is."""
    match settings.source.kind:
        case SourceKind.KAFKA:
            broker = settings.kafka.bootstrap_servers.split(",")[0].strip()
            pattern = settings.kafka.topic_pattern
            for topic in settings.kafka.topics if pattern is None else (pattern,):
                yield DatasetName(f"kafka://{broker}", topic)
        case SourceKind.DELTA:
            yield dataset_at(settings.source_path)
        case SourceKind.FILES:
            pass
    if settings.archive.path is not None:
        yield dataset_at(settings.archive.path)


def fields_of(schema: str) -> tuple[DatasetField, ...]:
    """Return the columns of a table by the schema in its Delta log, which is JSON."""
    return tuple(
        _field(each["name"], each["type"], each.get("metadata") or {}) for each in json.loads(schema)["fields"]
    )


def _field(name: str, its_type: Any, metadata: Any) -> DatasetField:
    comment = metadata.get("comment") or None
    if isinstance(its_type, str):
        return DatasetField(name, its_type, comment)
    match its_type["type"]:
        case "struct":
            parts = fields_of(json.dumps(its_type))
        case "array":
            parts = (_field("_element", its_type["elementType"], {}),)
        case _:
            parts = (_field("key", its_type["keyType"], {}), _field("value", its_type["valueType"], {}))
    return DatasetField(name, its_type["type"], comment, parts)
