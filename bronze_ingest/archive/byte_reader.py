"""The bytes of one archived file from beginning to end, its lines, and how places in it are named."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from bronze_ingest.archive.file_open import ArchiveFile
from bronze_ingest.archive.record_batch import CUT, MAX_PIECE_BYTES, RecordRows, piece
from demux.core.text import printable

CHUNK_BYTES = 2**20
_GZIP_MAGIC = b"\x1f\x8b"


class FileContent:
    """What is in an archived file, read once from beginning to end; decompressed when its name ends in `.gz`.

    Attributes:
        broken: why there are no more bytes although the file has not ended; None before.
    """

    def __init__(self, path: str, file: ArchiveFile) -> None:
        self.broken: str | None = None
        self._failure: str | None = None
        self._path = path
        self._compressed = False
        self._read: Callable[[int], bytes] = file.read
        if PurePosixPath(path).suffix.lower() == ".gz":
            self._decompress(file)

    def read(self, size: int) -> bytes:
        """Return exactly `size` bytes, fewer only at the end.

        Raises:
            StorageFailed: the file cannot be read.
        """
        parts: list[bytes] = []
        while size > 0 and (part := self._next(size)):
            parts.append(part)
            size -= len(part)
        if not parts:
            # only now: what came before the broken place is whole
            self.broken = self._failure
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def skim(self, begun: bytes, size: int | None) -> tuple[bytes, int]:
        """Return the first bytes of a piece, at most `MAX_PIECE_BYTES`, and its size; reads over the others.

        Args:
            begun: the piece's bytes that were read already.
            size: the piece's size in bytes; None for all that is left.
        """
        kept, seen = begun[:MAX_PIECE_BYTES], len(begun)
        while (size is None or seen < size) and (
            part := self.read(CHUNK_BYTES if size is None else min(CHUNK_BYTES, size - seen))
        ):
            kept += part[: MAX_PIECE_BYTES - len(kept)]
            seen += len(part)
        return kept, seen

    def rest(self, start: int, begun: bytes, reason: str) -> RecordRows:
        """Return all that is left as one malformed piece.

        Args:
            begun: the piece's bytes that were read already.
            reason: what is wrong with it; empty where nothing but `broken` is.
        """
        kept, size = self.skim(begun, None)
        return piece(start, kept, self.sentence(start, size, reason))

    def sentence(self, start: int, size: int, reason: str) -> str:
        """Return the sentence that names the file, the piece's bytes and what is wrong with them."""
        decompressed = "decompressed " if self._compressed else ""
        bytes_ = f"bytes {start} to {start + size - 1}" if size else f"byte {start}"
        if self.broken is not None:
            reason = f"{reason}; {self.broken}" if reason and size else self.broken
        cut = CUT if size > MAX_PIECE_BYTES else ""
        return f"Malformed {decompressed}{bytes_} of {printable(self._path)}: {reason}.{cut}"

    def _decompress(self, file: ArchiveFile) -> None:
        magic = file.read(len(_GZIP_MAGIC))
        file.seek(0)
        if magic in {b"", _GZIP_MAGIC}:
            self._compressed = True
            self._read = gzip.GzipFile(fileobj=file, mode="rb").read1
        else:
            self.broken = self._failure = "the name ends in .gz and this is no gzip data"

    def _next(self, size: int) -> bytes:
        try:
            return self._read(size)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            self._failure = f"the gzip data is broken: {printable(str(error)).rstrip('.')}"
            self._read = _nothing
            return b""


class FileLine(NamedTuple):
    """One line of a file, without what ends it.

    Attributes:
        start: its first byte's place in the file.
        text: its bytes; of a line that is too long only the first `MAX_PIECE_BYTES`.
        size: how many bytes it has, without the newline.
    """

    start: int
    text: bytes
    size: int


def lines(content: FileContent, max_bytes: int) -> Iterator[FileLine]:
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
                yield FileLine(start, text, len(text))
            start += len(text) + 1
        size += len(rest)
        parts = [*parts, rest] if size <= max_bytes else [b"".join(parts)[:MAX_PIECE_BYTES]]
    if size or content.broken is not None:
        yield _line(start, parts, size, max_bytes)


def _line(start: int, parts: list[bytes], size: int, max_bytes: int) -> FileLine:
    text = b"".join(parts)
    return FileLine(start, text if size <= max_bytes else text[:MAX_PIECE_BYTES], size)


def _nothing(_: int) -> bytes:
    return b""
