"""Archive files in every format, from records."""

from __future__ import annotations

import base64
import gzip
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from demux.arrow_types import arrow_fields
from demux.settings_source import ArchiveFormat
from demux.tables import SOURCE_OPTIONAL

SUFFIXES = {ArchiveFormat.DELIMITED: ".bin", ArchiveFormat.PARQUET: ".parquet", ArchiveFormat.NDJSON: ".ndjson"}
Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class Archived:
    """A record as an archive may hold it; a delimited file keeps the value alone."""

    value: bytes | None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp: datetime | None = None
    key: bytes | None = None
    headers: Headers | None = None

    def fields(self) -> dict[str, Any]:
        """The values of `value` and of `SOURCE_OPTIONAL` by name."""
        headers = None if self.headers is None else [{"key": key, "value": value} for key, value in self.headers]
        return {
            **{"value": self.value, "topic": self.topic, "partition": self.partition, "offset": self.offset},
            **{"timestamp": self.timestamp, "key": self.key, "headers": headers},
        }


def write_archive(path: Path, layout: ArchiveFormat, values: Iterable[bytes | None]) -> Path:
    """Write a file of records that have nothing but a value; compressed when the name ends in .gz."""
    return write_records(path, layout, [Archived(value) for value in values])


def write_records(path: Path, layout: ArchiveFormat, records: Sequence[Archived]) -> Path:
    """Write a file of records; compressed when the name ends in .gz. Folders that are missing are made."""
    content = archive_bytes(layout, records)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return path


def archive_bytes(layout: ArchiveFormat, records: Sequence[Archived], row_group_size: int | None = None) -> bytes:
    """The content of a file of records, not compressed."""
    match layout:
        case ArchiveFormat.DELIMITED:
            return b"".join(delimited(record.value or b"") for record in records)
        case ArchiveFormat.NDJSON:
            return b"".join(json_line(record) for record in records)
        case ArchiveFormat.PARQUET:
            schema = pa.schema([pa.field("value", pa.binary()), *arrow_fields(SOURCE_OPTIONAL)])
            table = pa.Table.from_pylist([record.fields() for record in records], schema=schema)
            sink = io.BytesIO()
            pq.write_table(table, sink, row_group_size=row_group_size, write_page_checksum=True)
            return sink.getvalue()


def delimited(value: bytes) -> bytes:
    """The bytes behind their length."""
    return varint(len(value)) + value


def varint(number: int) -> bytes:
    """The number as Protobuf writes it."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def json_line(record: Archived) -> bytes:
    """The record's line; what it has not is left out."""
    fields = {name: value for name, value in record.fields().items() if value is not None} | {"value": record.value}
    if record.headers is not None:
        fields["headers"] = [{"key": key, "value": _base64(value)} for key, value in record.headers]
    if record.timestamp is not None:
        fields["timestamp"] = record.timestamp.isoformat()
    fields |= {name: _base64(fields[name]) for name in ("value", "key") if name in fields}
    return json.dumps(fields).encode() + b"\n"


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()
