"""Folders of this machine as a store. A key is a path."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
from filelock import FileLock

from demux.core.storage.backend import FolderState, NewFile, StoredFile, Tagged

# what Hadoop writes beside its files, and hides
_CHECKSUM = re.compile(r"\.(.*\.)?crc", re.DOTALL)


class LocalFolder:
    """The file system of this machine; see `Backend`. What fails is an `OSError`."""

    def read(self, key: str) -> bytes:
        """Return a file's bytes."""
        return Path(key).read_bytes()

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """Return some of a file's bytes."""
        with Path(key).open("rb") as file:
            file.seek(start)
            return file.read(length)

    def read_tagged(self, key: str) -> Tagged:
        """Return a file's bytes and their digest."""
        data = self.read(key)
        return Tagged(data, _digest(data))

    def open(self, key: str, size: int | None) -> BinaryIO:
        """Return the open file, as Arrow reads it best."""
        return cast(BinaryIO, pa.OSFile(key, "rb"))

    def size(self, key: str) -> int | None:
        """Return a file's size."""
        try:
            return Path(key).stat().st_size if Path(key).is_file() else None
        except OSError:  # below a folder that may not be entered, say
            return None

    def write(self, key: str, data: bytes) -> None:
        """Write a file beside the old one, and rename it; Hadoop would miss its checksum of the old one."""
        path = Path(key)
        with _scratch(key, data) as written:
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
            written.replace(path)

    def create(self, key: str, data: bytes) -> bool:
        """Write a file where there is none, by a hard link: unlike a rename, it replaces no other file.

        Raises:
            OSError: also where the file system has no hard links.
        """
        with _scratch(key, data) as written:
            try:
                os.link(written, key)
            except FileExistsError:
                return self.read(key) == data
        return True

    def replace(self, key: str, data: bytes, tag: str) -> str | None:
        """Write a file in place of the one with this digest; processes of this machine take turns."""
        path = Path(key)
        with FileLock(path.with_name(f".{path.name}.lock")):
            found = self.read_tagged(key)
            if found.data != data:
                if found.tag != tag:
                    return None
                self.write(key, data)
        return _digest(data)

    def writer(self, key: str) -> NewFile:
        """Return the new file, in its place from the first byte on: a table has it only by a commit."""
        path = Path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        return _FileSink(path)

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, without Hadoop's checksums."""
        if not _is_folder(folder):
            return []
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if not _CHECKSUM.fullmatch(entry.name))

    def state(self, folder: str) -> FolderState | None:
        """Return what is in a folder; the time first, so that a later change has another one."""
        try:
            stamp = Path(folder).stat().st_mtime_ns
        except OSError:
            return None
        return FolderState(tuple(self.names(folder)), stamp)

    def files(self, folder: str, after: str | None) -> Iterator[StoredFile]:
        """Yield the files below a folder, without Hadoop's checksums."""
        for within, _, names in os.walk(folder):
            for name in names:
                path = Path(within, name)
                if _CHECKSUM.fullmatch(name) or (after is not None and str(path) <= after):
                    continue
                # a file may go while we look
                with suppress(FileNotFoundError):
                    found = path.stat()
                    yield StoredFile(str(path), found.st_size, found.st_mtime_ns // 1_000_000)

    def delete(self, keys: Iterable[str]) -> None:
        """Remove files."""
        for key in keys:
            Path(key).unlink(missing_ok=True)

    def delete_folder(self, folder: str) -> None:
        """Remove a folder and all inside, or a file."""
        path = Path(folder)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


class _FileSink(io.BufferedWriter):
    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path, "wb"))
        self._path = path

    def abandon(self) -> None:
        # on a full disk not even closing works
        with suppress(OSError):
            self.close()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


@contextmanager
def _scratch(key: str, data: bytes) -> Iterator[Path]:
    """Yield a file with these bytes in the same folder; it is gone when the block ends."""
    path = Path(key)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{uuid.uuid4()}.tmp")
    try:
        scratch.write_bytes(data)
        yield scratch
    finally:
        scratch.unlink(missing_ok=True)


def _is_folder(folder: str) -> bool:
    try:
        return Path(folder).is_dir()
    except OSError:  # below a folder that may not be entered, say: Hadoop calls that not there
        return False


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
