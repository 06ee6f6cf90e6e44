"""Length-delimited records: the length as a varint, then so many bytes, as Protobuf's `writeDelimitedTo` writes.

After a length that cannot be, no byte says where the next record begins: the rest of the file is one malformed piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bronze_ingest.archive.byte_reader import CHUNK_BYTES, FileContent
from bronze_ingest.archive.record_batch import MAX_BATCH_BYTES, MAX_BATCH_ROWS, MAX_RECORD_BYTES, RecordRows, piece

_MAX_VARINT_BYTES = 10
_MAX_LENGTH = 2**31 - 1


@dataclass(frozen=True, slots=True)
class _RecordLength:
    """A record's length.

    Attributes:
        varint: how many bytes it takes.
        body: how many bytes come after it.
    """

    varint: int
    body: int


def delimited(content: FileContent) -> Iterator[RecordRows]:
    """Yield the records in batches, and as malformed pieces a record that is too large, and the rest of a torn file."""
    buffer, base, at = b"", 0, 0
    while True:
        rows = RecordRows()
        at = _take(buffer, at, base, rows)
        if rows.values:
            yield rows
            continue
        found = _length(buffer, at)
        if isinstance(found, str):
            yield content.rest(base + at, buffer[at:], found)
            return
        whole = 0 if found is None else found.varint + found.body
        if whole > MAX_RECORD_BYTES:
            kept, size = content.skim(buffer[at : at + whole], whole)
            reason = _short(found, size) if size < whole else f"a record of more than {MAX_RECORD_BYTES} bytes"
            yield piece(base + at, kept, content.sentence(base + at, size, reason))
            if size < whole:
                return
            buffer, base, at = buffer[at + whole :], base + at + size, 0
            continue
        more = content.read(max(CHUNK_BYTES, whole - (len(buffer) - at)))
        buffer, base, at = buffer[at:] + more, base + at, 0
        if not more:
            if buffer or content.broken is not None:
                yield content.rest(base, buffer, _short(found, len(buffer)))
            return


def _take(buffer: bytes, at: int, base: int, rows: RecordRows) -> int:
    """Add the whole records from `at` on, as many as one batch may have; return where the first one left begins."""
    end = len(buffer)
    starts, values, limit = rows.starts, rows.values, at + MAX_BATCH_BYTES
    while at < end and len(values) < MAX_BATCH_ROWS:
        size, body = buffer[at], at + 1
        if size > 0x7F:
            # most records are shorter than two bytes can say, and a call for each would take half of the time
            if body < end and buffer[body] < 0x80:
                size, body = size & 0x7F | buffer[body] << 7, body + 1
            else:
                found = _length(buffer, at)
                if found is None or isinstance(found, str):
                    break
                size, body = found.body, at + found.varint
        after = body + size
        # a record that is larger than a batch may be has a batch of its own
        if after > end or (after > limit and values) or after - at > MAX_RECORD_BYTES:
            break
        starts.append(base + at)
        values.append(buffer[body:after])
        at = after
    return at


def _length(buffer: bytes, at: int) -> _RecordLength | str | None:
    """Return the length that begins at `at`; what is wrong with it; None when the buffer ends first."""
    value = 0
    for count, byte in enumerate(buffer[at : at + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return (
                _RecordLength(count + 1, value) if value <= _MAX_LENGTH else f"a length of {value}, over {_MAX_LENGTH}"
            )
    return None if at + _MAX_VARINT_BYTES > len(buffer) else f"a length of more than {_MAX_VARINT_BYTES} bytes"


def _short(found: _RecordLength | str | None, left: int) -> str:
    if not isinstance(found, _RecordLength):
        return "the file ends within a length"
    return f"the length says {found.body} bytes and the file has {left - found.varint} more"
