"""Archive files in every format, from records; and the records that are read from one."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from bronze_ingest.archive.file_open import ArchiveFile
from bronze_ingest.archive.record_batch import MAX_BATCH_ROWS, SCHEMA
from bronze_ingest.archive.stream import records
from demux.core.columns.arrow import arrow_fields
from demux.core.settings.source import ArchiveFormat
from demux.core.tables import SOURCE_OPTIONAL

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


def write_records(path: Path, layout: ArchiveFormat, some: Sequence[Archived]) -> Path:
    """Write a file of records; compressed when the name ends in .gz. Folders that are missing are made."""
    content = archive_bytes(layout, some)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return path


def archive_bytes(layout: ArchiveFormat, some: Sequence[Archived], row_group_size: int | None = None) -> bytes:
    """The content of a file of records, not compressed."""
    match layout:
        case ArchiveFormat.DELIMITED:
            return b"".join(delimited(record.value or b"") for record in some)
        case ArchiveFormat.NDJSON:
            return b"".join(json_line(record) for record in some)
        case ArchiveFormat.PARQUET:
            schema = pa.schema([pa.field("value", pa.binary()), *arrow_fields(SOURCE_OPTIONAL)])
            table = pa.Table.from_pylist([record.fields() for record in some], schema=schema)
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


def of(*some: bytes | None) -> list[Archived]:
    return [Archived(value) for value in some]


class Piece(NamedTuple):
    """A malformed piece: where it begins by its id and by its sentence, its size, its bytes and the sentence."""

    start: int
    first: int
    size: int
    kept: bytes
    sentence: str


def batches(content: bytes, layout: ArchiveFormat, path: str = "file:/a/b.bin") -> list[pa.RecordBatch]:
    found = list(records(path, ArchiveFile(path, io.BytesIO(content)), layout))
    assert all(batch.schema == SCHEMA and 0 < len(batch) <= MAX_BATCH_ROWS for batch in found)
    return found


def rows(content: bytes, layout: ArchiveFormat, path: str = "file:/a/b.bin") -> list[dict[str, Any]]:
    found = [row for batch in batches(content, layout, path) for row in batch.to_pylist()]
    ids = [row["record_id"] for row in found]
    assert len(set(ids)) == len(ids)
    assert {row["origin"] for row in found} <= {"files"}
    return found


def values(content: bytes, layout: ArchiveFormat, path: str = "file:/a/b.bin") -> list[bytes | None]:
    """The values of the good records."""
    return [row["value"] for row in rows(content, layout, path) if row["refused_sentence"] is None]


def pieces(content: bytes, layout: ArchiveFormat, path: str = "file:/a/b.bin") -> list[Piece]:
    return [piece(row) for row in rows(content, layout, path) if row["refused_sentence"] is not None]


def piece(row: dict[str, Any]) -> Piece:
    sentence = row["refused_sentence"]
    found = re.search(r"bytes? (\d+)(?: to (\d+))?", sentence)
    assert found is not None
    first, last = int(found[1]), int(found[2]) if found[2] else int(found[1]) - 1
    return Piece(int(row["record_id"].rpartition("#")[2]), first, last - first + 1, row["value"], sentence)


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()
