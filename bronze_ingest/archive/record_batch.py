"""The columns in which archived records leave their file, and the batches that they leave in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from demux.core.columns.arrow import arrow_fields, arrow_type
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.tables import SOURCE_OPTIONAL

ORIGIN = "files"

# refused_sentence is NULL for a record; else the row is a malformed piece of a file, and `value` is the piece's bytes
ARCHIVED = Struct(
    (
        Column("value", Primitive.BINARY),
        *SOURCE_OPTIONAL,
        Column("origin", Primitive.STRING),
        Column("record_id", Primitive.STRING),
        Column("refused_sentence", Primitive.STRING),
    )
)
SCHEMA = pa.schema(arrow_fields(ARCHIVED))

MAX_BATCH_BYTES = 8 * 2**20
MAX_BATCH_ROWS = 10_000
# a larger record would be in memory several times, and every table refuses it in the end
MAX_RECORD_BYTES = 64 * 2**20
# what quarantine keeps of a malformed piece
MAX_PIECE_BYTES = 2**20
# how the sentence of a larger piece ends
CUT = f" Only the first {MAX_PIECE_BYTES} bytes are kept."

# the values of SOURCE_OPTIONAL, the timestamp in microseconds since 1970 (UTC)
Optional = tuple[
    str | None, int | None, int | None, int | None, bytes | None, list[dict[str, str | bytes | None]] | None
]
NOTHING: Optional = (None,) * 6


@dataclass(slots=True)
class RecordRows:
    """Rows of one batch, in the order of the file; lists as long as each other, but for `optional`.

    Attributes:
        starts: where each row begins: a byte, or the number of a row.
        values: each record's bytes, None where it has none; of a malformed piece at most `MAX_PIECE_BYTES`.
        optional: empty where the format has no such values.
        sentences: what is wrong with a malformed piece, by the row's position here.
        size: the rows' bytes in the file.
    """

    starts: list[int] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    optional: list[Optional] = field(default_factory=list)
    sentences: dict[int, str] = field(default_factory=dict)
    size: int = 0

    def is_full(self, more: int) -> bool:
        """Return whether a row of `more` bytes belongs in the next batch."""
        return bool(self.values) and (len(self.values) >= MAX_BATCH_ROWS or self.size + more > MAX_BATCH_BYTES)

    def add(self, start: int, value: bytes | None, optional: Optional, size: int) -> None:
        """Append a record that takes `size` bytes of the file."""
        self.starts.append(start)
        self.values.append(value)
        self.optional.append(optional)
        self.size += size

    def refuse(self, start: int, piece: bytes, sentence: str) -> None:
        """Append a malformed piece, given with its first bytes."""
        self.sentences[len(self.values)] = sentence
        self.add(start, piece[:MAX_PIECE_BYTES], NOTHING, min(len(piece), MAX_PIECE_BYTES))


def piece(start: int, kept: bytes, sentence: str) -> RecordRows:
    """Return a batch of one malformed piece."""
    rows = RecordRows()
    rows.refuse(start, kept, sentence)
    return rows


def batch_of(path: str, rows: RecordRows) -> pa.RecordBatch:
    """Return the rows in the columns of `ARCHIVED`."""
    optional = _optional(rows)
    sentences = [rows.sentences.get(at) for at in range(len(rows.values))] if rows.sentences else None
    return build_archive_batch(
        path, pa.array(rows.values, pa.binary()), optional, pa.array(rows.starts, pa.int64()), sentences
    )


def build_archive_batch(
    path: str, values: pa.Array, optional: list[pa.Array], starts: pa.Array, sentences: list[str | None] | None = None
) -> pa.RecordBatch:
    """Return a batch in the columns of `ARCHIVED`.

    Args:
        path: the file as Spark names it; with where the row begins, it identifies the record.
        values: BINARY.
        optional: the columns of `SOURCE_OPTIONAL`.
        starts: INT64, where each row begins.
        sentences: what is wrong with each malformed piece; None when none is.
    """
    count = len(values)
    record_ids = pc.binary_join_element_wise(f"{path}#", starts.cast(pa.string()), "")
    refused = pa.nulls(count, pa.string()) if sentences is None else pa.array(sentences, pa.string())
    columns = [values, *optional, pa.repeat(ORIGIN, count), record_ids, refused]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _optional(rows: RecordRows) -> list[pa.Array]:
    types = [arrow_type(column.type) for column in SOURCE_OPTIONAL]
    if not rows.optional:
        return [pa.nulls(len(rows.values), kind) for kind in types]
    return [_array(values, kind) for values, kind in zip(zip(*rows.optional, strict=True), types, strict=True)]


def _array(values: tuple[Any, ...], kind: pa.DataType) -> pa.Array:
    # python's times reach less far and are slower
    return pa.array(values, pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else pa.array(values, kind)
