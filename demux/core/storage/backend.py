"""What every store can do, by key: a folder of this machine and a bucket alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from typing_extensions import Buffer


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in a listing.

    Attributes:
        modified_ms: when it was written, in milliseconds since 1970.
    """

    key: str
    bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Tagged:
    """A file's bytes, and the tag that says which version of the file they are."""

    data: bytes
    tag: str


@dataclass(frozen=True, slots=True)
class FolderState:
    """What is in a folder.

    Attributes:
        names: of files and folders, sorted.
        stamp: another number once a file of the folder came or went: on this machine the time of that, in nanoseconds
            since 1970; in a store a checksum of the names.
    """

    names: tuple[str, ...]
    stamp: int


class NewFile(Protocol):
    """A file that is written: in the store once it is closed, and never where it was abandoned."""

    @property
    def closed(self) -> bool:
        """Whether nothing more can be written."""

    def write(self, data: Buffer, /) -> int:
        """Write bytes; return how many."""

    def tell(self) -> int:
        """Return how many bytes were written."""

    def flush(self) -> None:
        """Do nothing that a reader could see."""

    def close(self) -> None:
        """Put the file in the store."""

    def abandon(self) -> None:
        """Leave no file behind, as far as possible: no table has it."""


class Backend(Protocol):
    """A store. A missing file is a `FileNotFoundError`; a store that fails raises a `DemuxError` or an `OSError`."""

    def read(self, key: str) -> bytes:
        """Return a file's bytes."""

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """Return some of a file's bytes; fewer where it ends before."""

    def read_tagged(self, key: str) -> Tagged:
        """Return a file's bytes and its tag."""

    def open(self, key: str, size: int | None) -> BinaryIO:
        """Return a file that can be read from anywhere; its size, where that is known, saves a request."""

    def size(self, key: str) -> int | None:
        """Return a file's size in bytes; None where there is no such file."""

    def write(self, key: str, data: bytes) -> None:
        """Write a file in one step: a reader sees all of the old or all of the new."""

    def create(self, key: str, data: bytes) -> bool:
        """Write a file where there is none; return whether the file that is there then has these bytes.

        So the bytes must tell one writer from another. A second call with the same bytes is true again: an answer that
        was lost changes nothing.
        """

    def replace(self, key: str, data: bytes, tag: str) -> str | None:
        """Write a file in place of the version with this tag; return the new tag, None where that was replaced before.

        The bytes must tell one writer from another, as with `create`.
        """

    def writer(self, key: str) -> NewFile:
        """Return a new file to write to, of any size."""

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, files' and folders', sorted; none where there is no folder."""

    def state(self, folder: str) -> FolderState | None:
        """Return what is in a folder; None where there is no folder. A store lists it once."""

    def files(self, folder: str, after: str | None) -> Iterator[StoredFile]:
        """Yield the files below a folder at any depth, in no order; with `after`, those whose key is greater."""

    def delete(self, keys: Iterable[str]) -> None:
        """Remove files; what is not there is not missed."""

    def delete_folder(self, folder: str) -> None:
        """Remove all files below a folder, or the file of this name."""
