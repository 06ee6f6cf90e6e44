"""The bytes of one archived file, and how places in it are named."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import IO, TypeVar

from bronze_ingest.archive.rows import MAX_PIECE_BYTES, Rows, piece
from demux.errors import StorageFailed
from demux.text import printable

CHUNK_BYTES = 2**20
_GZIP_MAGIC = b"\x1f\x8b"
_REMEDY = "Put the file back and let the workers read it, then run the same command again; nothing is lost."

T = TypeVar("T")


def unreadable(path: str, error: Exception) -> StorageFailed:
    """Return the failure to open or read an archived file, in our words."""
    reason = getattr(error, "strerror", None) or str(error)
    return StorageFailed(
        f"The archived file {printable(path)} cannot be read: {printable(reason)}.", _REMEDY, path=path
    )


class ArchiveFile(io.RawIOBase):
    """An opened file whose failures to read come as `StorageFailed`, so that nobody takes them for broken bytes.

    Attributes:
        seen: the first byte read and the one behind the last, since `forget_seen`; None for none.
    """

    def __init__(self, path: str, file: IO[bytes]) -> None:
        super().__init__()
        self.seen: tuple[int, int] | None = None
        self._path = path
        self._file = file

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes; none at the end."""
        start = self.tell()
        found = self._told(lambda: bytes(self._file.read(size)))
        first, behind = self.seen or (start, start)
        self.seen = min(first, start), max(behind, start + len(found))
        return found

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move, and return the new place."""
        if offset < 0 and whence == io.SEEK_SET:
            # what broken bytes ask for is no failure of the storage
            raise ValueError("a place before the beginning of the file")
        self._told(lambda: self._file.seek(offset, whence))
        return self.tell()

    def tell(self) -> int:
        """Return the place of the next byte."""
        return self._told(self._file.tell)

    def forget_seen(self) -> None:
        """Begin `seen` anew."""
        self.seen = None

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if not self.closed:
            self._file.close()
        super().close()

    def _told(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except OSError as error:
            raise unreadable(self._path, error) from error


class Content:
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

    def rest(self, start: int, begun: bytes, reason: str) -> Rows:
        """Return all that is left as one malformed piece.

        Args:
            start: where the piece begins.
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
        cut = f" Only the first {MAX_PIECE_BYTES} bytes are kept." if size > MAX_PIECE_BYTES else ""
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


def _nothing(_: int) -> bytes:
    return b""
