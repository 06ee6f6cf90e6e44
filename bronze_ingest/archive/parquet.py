"""Parquet: a column `value`, and those of `SOURCE_OPTIONAL` that the file has, read row group by row group."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bronze_ingest.archive.byte_reader import CHUNK_BYTES
from bronze_ingest.archive.file_open import ArchiveFile
from bronze_ingest.archive.record_batch import (
    CUT,
    MAX_BATCH_BYTES,
    MAX_BATCH_ROWS,
    MAX_PIECE_BYTES,
    MAX_RECORD_BYTES,
    batch_of,
    build_archive_batch,
    piece,
)
from demux.core.columns.arrow import arrow_type
from demux.core.tables import SOURCE_OPTIONAL
from demux.core.text import printable

_MAX_REASON = 200
_FIRST_ROWS = 16


def parquet(path: str, file: ArchiveFile) -> Iterator[pa.RecordBatch]:
    """Yield the records in batches in the columns of `ARCHIVED`, and a malformed piece for what cannot be read.

    Raises:
        StorageFailed: the file cannot be read, whatever is in it.
    """
    size = file.seek(0, 2)
    if size == 0:
        return
    try:
        opened = pq.ParquetFile(file, buffer_size=CHUNK_BYTES, page_checksum_verification=True)
        names = names_of(opened.schema_arrow)
        _require_counts(opened.metadata)
    except (pa.ArrowException, OSError, ValueError) as error:
        yield _malformed(path, file, 0, f"bytes 0 to {size - 1}", (0, size), f"no Parquet file: {_reason(error)}")
        return
    if "value" not in names:
        yield _malformed(path, file, 0, f"bytes 0 to {size - 1}", (0, size), "no BINARY column `value`")
        return
    first = 0
    for group in range(opened.num_row_groups):
        yield from _row_group(path, file, opened, names, group, first)
        first += opened.metadata.row_group(group).num_rows


def _row_group(
    path: str, file: ArchiveFile, opened: pq.ParquetFile, names: dict[str, str], group: int, first: int
) -> Iterator[pa.RecordBatch]:
    metadata = opened.metadata.row_group(group)
    if metadata.num_rows == 0:
        return
    row, end = first, first + metadata.num_rows
    columns = list(names.values())
    file.forget_seen()
    try:
        size = _rows_at_once(opened, columns, group)
        for batch in opened.iter_batches(size, [group], columns, use_threads=False):
            for part in _bounded(batch):
                yield from _converted(path, part, names, row)
                row += len(part)
        if row < end:
            raise ValueError("the footer says that there are more rows")
    except (pa.ArrowException, OSError, ValueError) as error:
        # the footer says where each row group is: those behind this one are read. Where this one is, is
        # not asked there: pyarrow's `column` of a broken footer ends the process
        within = file.seen or (0, file.seek(0, 2))
        where = f"rows {row} to {end - 1} in row group {group}, read from bytes {within[0]} to {within[1] - 1}"
        yield _malformed(path, file, row, where, within, _reason(error))


def _rows_at_once(opened: pq.ParquetFile, columns: list[str], group: int) -> int:
    """Return how many rows of the group fit into memory together, by the footer and by its first rows."""
    metadata = opened.metadata.row_group(group)
    first = next(opened.iter_batches(_FIRST_ROWS, [group], columns, use_threads=False), None)
    # the footer counts a value that comes again and again only once
    seen = size_of(first) // len(first) if first is not None and len(first) else 0
    average: int = max(1, metadata.total_byte_size // metadata.num_rows, seen)
    return max(1, min(MAX_BATCH_ROWS, MAX_BATCH_BYTES // average))


def _require_counts(metadata: pq.FileMetaData) -> None:
    """Check that no two rows of the file get the same number, which identifies them.

    Raises:
        ValueError: a footer that contradicts itself.
    """
    counts = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    if min(counts, default=0) < 0 or sum(counts) != metadata.num_rows:
        raise ValueError(f"the footer says {metadata.num_rows} rows, and {sum(counts)} by row group")


def _bounded(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the batch in parts of at most `MAX_BATCH_BYTES`; a larger row has a part of its own."""
    if len(batch) <= 1 or size_of(batch) <= MAX_BATCH_BYTES:
        yield batch
        return
    half = len(batch) // 2
    yield from _bounded(batch.slice(0, half))
    yield from _bounded(batch.slice(half))


def _converted(path: str, batch: pa.RecordBatch, names: dict[str, str], first: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows in our types; where one does not fit, each by itself, and that one as a malformed piece."""
    try:
        values = converted_to(column_of(batch, names["value"]), pa.binary())
        if len(values) == 1 and (pc.binary_length(values)[0].as_py() or 0) > MAX_RECORD_BYTES:
            raise ValueError(f"a record of more than {MAX_RECORD_BYTES} bytes")
        optional = [
            converted_to(column_of(batch, names[column.name]), arrow_type(column.type))
            if column.name in names
            else pa.nulls(len(batch), arrow_type(column.type))
            for column in SOURCE_OPTIONAL
        ]
    except (pa.ArrowException, ValueError) as error:
        if len(batch) == 1:
            kept = column_of(batch, names["value"]).cast(pa.binary())[0].as_py() or b""
            sentence = f"Malformed row {first} of {printable(path)}: {_reason(error)}.{_cut(len(kept))}"
            yield batch_of(path, piece(first, kept, sentence))
            return
        half = len(batch) // 2
        yield from _converted(path, batch.slice(0, half), names, first)
        yield from _converted(path, batch.slice(half), names, first + half)
    else:
        yield build_archive_batch(path, values, optional, pa.array(range(first, first + len(batch)), pa.int64()))


def _malformed(
    path: str, file: ArchiveFile, row: int, where: str, within: tuple[int, int], reason: str
) -> pa.RecordBatch:
    start, stop = within
    file.seek(max(0, start))
    kept = file.read(max(0, min(stop - start, MAX_PIECE_BYTES)))
    sentence = f"Malformed {where} of {printable(path)}: {reason}.{_cut(stop - start)}"
    return batch_of(path, piece(row, kept, sentence))


def _cut(size: int) -> str:
    return CUT if size > MAX_PIECE_BYTES else ""


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return printable(lines[0][:_MAX_REASON]).rstrip(".") if lines else type(error).__name__


_BYTES = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_string,
    pa.types.is_large_string,
)


def names_of(schema: pa.Schema) -> dict[str, str]:
    """Return the file's names of our columns; an exact one comes before one in another case."""
    ours = {"value", *(column.name for column in SOURCE_OPTIONAL)}
    names = {name.lower(): name for name in sorted(schema.names) if name.lower() in ours}
    if "value" in names and not _holds_bytes(schema.types[schema.names.index(names["value"])]):
        del names["value"]
    return names


def column_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return the first column of this name."""
    # a file may have two columns of one name
    return batch.column(batch.schema.names.index(name))


def converted_to(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the column in another type.

    Raises:
        pa.ArrowException: a value is lost that way.
    """
    if pa.types.is_timestamp(kind):
        if pa.types.is_integer(column.type):
            column = column.cast(pa.int64()).cast(pa.timestamp("ms", "UTC"))
        return pc.cast(column, options=pc.CastOptions(kind, allow_time_truncate=True))
    cast = column.cast(kind)
    # a file may call anything UTF-8
    cast.validate(full=True)
    return cast


def size_of(batch: pa.RecordBatch) -> int:
    """Return the bytes that the batch has once its dictionaries are resolved."""
    return sum(_size(column) for column in batch.columns)


def _size(column: pa.Array) -> int:
    if not pa.types.is_dictionary(column.type) or not _holds_bytes(column.type):
        return int(column.nbytes)
    return int(pc.sum(pc.binary_length(column.dictionary).take(column.indices)).as_py() or 0)


def _holds_bytes(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(is_a(kind) for is_a in _BYTES)
