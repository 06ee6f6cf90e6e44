"""Opens an archived file in a worker, by the name that Spark has for it."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeVar, cast
from urllib.parse import quote

import pyarrow as pa
import pyarrow.fs

from demux.core.errors import StorageFailed
from demux.core.text import printable

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(/.*)", re.DOTALL)
# hadoop's names of what pyarrow calls by another
_SCHEMES = {"s3a": "s3", "s3n": "s3", "wasbs": "abfss"}
_REMEDY = "Put the file back and let the workers read it, then run the same command again; nothing is lost."

T = TypeVar("T")


class ArchiveFile(io.RawIOBase):
    """An opened file whose failures to read come as `StorageFailed`, so that they are not taken for broken bytes.

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
        found = self._read_errors(lambda: bytes(self._file.read(size)))
        first, behind = self.seen or (start, start)
        self.seen = min(first, start), max(behind, start + len(found))
        return found

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move, and return the new place."""
        if offset < 0 and whence == io.SEEK_SET:
            # what broken bytes ask for is no failure of the storage
            raise ValueError("a place before the beginning of the file")
        self._read_errors(lambda: self._file.seek(offset, whence))
        return self.tell()

    def tell(self) -> int:
        """Return the place of the next byte."""
        return self._read_errors(self._file.tell)

    def forget_seen(self) -> None:
        """Reset `seen`."""
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

    def _read_errors(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except OSError as error:
            raise _unreadable(self._path, error) from error


def open_archive(path: str) -> ArchiveFile:
    """Return the file, opened for reading.

    Args:
        path: as Spark's column `path` names it: with scheme, and nothing percent-encoded.

    Raises:
        StorageFailed: it is gone, must not be read, or is where workers cannot reach.
    """
    try:
        local = local_path(path)
        file = _remote(path) if local is None else Path(local).open("rb")  # noqa: SIM115 - closed by ArchiveFile
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error
    return ArchiveFile(path, file)


def local_path(path: str) -> str | None:
    """Return where the file is on the worker's own file system, where Databricks mounts its own; None elsewhere."""
    found = _URI.fullmatch(path)
    if found is None:
        return path
    scheme, _, rest = found.groups()
    match scheme:
        case "file":
            return rest
        case "dbfs":
            return rest if rest.startswith("/Volumes/") else f"/dbfs{rest}"
        case _:
            return None


def arrow_uri(path: str) -> str:
    """Return the URI that pyarrow knows the file by."""
    found = _URI.fullmatch(path)
    if found is None:
        return path
    scheme, authority, rest = found.groups()
    return f"{_SCHEMES.get(scheme, scheme)}://{authority or ''}{quote(rest)}"


def _remote(path: str) -> IO[bytes]:
    system, name = pyarrow.fs.FileSystem.from_uri(arrow_uri(path))
    return cast(IO[bytes], system.open_input_file(name))


def _unreadable(path: str, error: Exception) -> StorageFailed:
    """Return the failure to open or read an archived file, in our words."""
    reason = getattr(error, "strerror", None) or str(error)
    return StorageFailed(
        f"The archived file {printable(path)} cannot be read: {printable(reason)}.", _REMEDY, path=path
    )
