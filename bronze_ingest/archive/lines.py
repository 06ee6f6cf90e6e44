"""The lines of an archived file, none of them larger in memory than a record may be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bronze_ingest.archive.content import CHUNK_BYTES, Content
from bronze_ingest.archive.rows import MAX_PIECE_BYTES


class Line(NamedTuple):
    """One line of a file, without what ends it.

    Attributes:
        start: its first byte's place in the file.
        text: its bytes; of a line that is too long only the first `MAX_PIECE_BYTES`.
        size: how many bytes it has, without the newline.
    """

    start: int
    text: bytes
    size: int


def lines(content: Content, max_bytes: int) -> Iterator[Line]:
    """Yield every line, the last one also when nothing ends it.

    Where the content is broken, the last line is what was left then, maybe nothing; the lines before it are whole.
    """
    start, parts, size = 0, [b""], 0
    while chunk := content.read(CHUNK_BYTES):
        *ended, rest = chunk.split(b"\n")
        for text in ended:
            if size:
                yield _line(start, [*parts, text], size + len(text), max_bytes)
                start += size
                parts, size = [b""], 0
            else:
                yield Line(start, text, len(text))
            start += len(text) + 1
        size += len(rest)
        parts = [*parts, rest] if size <= max_bytes else [b"".join(parts)[:MAX_PIECE_BYTES]]
    if size or content.broken is not None:
        yield _line(start, parts, size, max_bytes)


def _line(start: int, parts: list[bytes], size: int, max_bytes: int) -> Line:
    text = b"".join(parts)
    return Line(start, text if size <= max_bytes else text[:MAX_PIECE_BYTES], size)
