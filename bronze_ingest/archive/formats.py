"""What is in one opened archive file: its records in batches, and every piece that is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from bronze_ingest.archive.byte_reader import FileContent
from bronze_ingest.archive.delimited import delimited
from bronze_ingest.archive.file_open import ArchiveFile
from bronze_ingest.archive.ndjson import ndjson
from bronze_ingest.archive.parquet import parquet
from bronze_ingest.archive.record_batch import RecordRows, batch_of
from demux.core.settings.source import ArchiveFormat


def records(path: str, file: ArchiveFile, layout: ArchiveFormat) -> Iterator[pa.RecordBatch]:
    """Return the file's rows in order, in the columns of `ARCHIVED`; nothing for an empty file.

    A batch has at most `MAX_BATCH_ROWS` rows and `MAX_BATCH_BYTES`; a larger record has a batch of its own. A row
    whose `refused_sentence` is not NULL is a malformed piece. The same file gives the same rows each time.

    Args:
        path: the file as Spark names it, such as `file:/archive/a.bin`.
        file: opened, at its beginning.

    Raises:
        StorageFailed: the file cannot be read.
    """
    match layout:
        case ArchiveFormat.DELIMITED:
            return _batches(path, file, delimited)
        case ArchiveFormat.NDJSON:
            return _batches(path, file, ndjson)
        case ArchiveFormat.PARQUET:
            return parquet(path, file)


def _batches(
    path: str, file: ArchiveFile, read: Callable[[FileContent], Iterator[RecordRows]]
) -> Iterator[pa.RecordBatch]:
    content = FileContent(path, file)
    for rows in read(content) if content.broken is None else [content.rest(0, b"", "")]:
        yield batch_of(path, rows)
