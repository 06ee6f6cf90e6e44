"""A bucket of an object store as a store, by `obstore`. A key is an object's name.

The client tries reads and plain writes again by itself. A conditional write may not be sent twice blindly: its answer
can be lost after it was carried out. So the writer looks at what is there: its own bytes mean that it was.
"""

from __future__ import annotations

import errno
import io
import os
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

import pyarrow as pa

from demux.core.errors import ErrorKind
from demux.core.extras import obstore
from demux.core.storage.backend import FolderState, NewFile, StoredFile, Tagged
from demux.core.storage.location import Scheme, locate
from demux.core.storage.refusals import lacks_bucket, lacks_upload, refusal

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from typing_extensions import Buffer

T = TypeVar("T")

# a larger file is read and written in parts
_WHOLE_BYTES = 32 * 2**20
_IN_MEMORY_BYTES = 4 * 2**20
_READ_BYTES = 2**20
_PAUSES_S = (0.1, 0.4, 1.6)


class Bucket:
    """A bucket, or a container of Azure; see `Backend`."""

    def __init__(self, client: Any, uri: str) -> None:
        """Prepare.

        Args:
            client: a store of `obstore`, of the whole bucket.
            uri: the bucket's, for sentences.
        """
        self._client = client
        self._uri = uri
        # Google's condition is a generation, and its client knows no other
        self._tag = "version" if locate(uri).scheme is Scheme.GCS else "e_tag"

    def read(self, key: str) -> bytes:
        """Return an object's bytes; one request."""
        return self._retry("read", key, lambda: bytes(self._client.get(key).bytes()))

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """Return some of an object's bytes; one request."""
        return self._retry("read", key, lambda: bytes(self._client.get_range(key, start=start, length=length)))

    def read_tagged(self, key: str) -> Tagged:
        """Return an object's bytes and its entity tag, or its generation; one request."""

        def get() -> Tagged:
            found = self._client.get(key)
            return Tagged(bytes(found.bytes()), str(found.meta[self._tag]))

        return self._retry("read", key, get)

    def open(self, key: str, size: int | None) -> BinaryIO:
        """Return the object as a file: up to 32 MiB in memory, by one request; a larger one is read as it is used."""
        if size is not None and size <= _WHOLE_BYTES:
            return cast(BinaryIO, pa.BufferReader(self.read(key)))
        known = self.size(key) if size is None else size
        if known is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), f"{self._uri}/{key}")
        return io.BufferedReader(_ObjectReader(self, key, known), _READ_BYTES)

    def size(self, key: str) -> int | None:
        """Return an object's size; one request."""
        try:
            return int(self._retry("look at", key, lambda: self._client.head(key)["size"]))
        except FileNotFoundError:
            return None

    def write(self, key: str, data: bytes) -> None:
        """Write an object; one request, or a multipart upload."""
        self._retry("write", key, lambda: self._client.put(key, data))

    def create(self, key: str, data: bytes) -> bool:
        """Write an object where there is none; one request, and one more where there is one."""

        def put() -> bool:
            try:
                self._client.put(key, data, mode="create")
            except obstore.exceptions.AlreadyExistsError:
                return bytes(self._client.get(key).bytes()) == data
            return True

        return self._retry("write", key, put)

    def replace(self, key: str, data: bytes, tag: str) -> str | None:
        """Write an object in place of the version with this tag; one request, and one more where it is gone."""

        def put() -> str | None:
            try:
                return str(self._client.put(key, data, mode={self._tag: tag})[self._tag])
            except obstore.exceptions.PreconditionError:
                found = self._client.get(key)
                return str(found.meta[self._tag]) if bytes(found.bytes()) == data else None

        return self._retry("write", key, put)

    def writer(self, key: str) -> NewFile:
        """Return a new object, which is sent when it is closed."""
        return _ObjectWriter(self, key)

    def send(self, key: str, file: BinaryIO) -> None:
        """Write what the file holds from here on; one request, or a multipart upload."""
        start = file.tell()

        def put() -> None:
            file.seek(start)
            self._client.put(key, file)

        self._retry("write", key, put)

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder; one request for each 1,000."""

        def listed() -> list[str]:
            found = self._client.list_with_delimiter(folder or None)
            keys = [str(key).rstrip("/") for key in found["common_prefixes"]]
            keys += [str(one["path"]) for one in found["objects"]]
            # an empty object of the folder's own name is how other clients make a folder
            return sorted(key.rpartition("/")[2] for key in keys if key != folder)

        return self._retry("list", folder, listed)

    def state(self, folder: str) -> FolderState | None:
        """Return what is in a folder; one request for each 1,000 names."""
        names = self.names(folder)
        return FolderState(tuple(names), zlib.crc32("/".join(names).encode())) if names else None

    def files(self, folder: str, after: str | None) -> Iterator[StoredFile]:
        """Yield the objects below a folder; one request for each 1,000."""
        last, pages = after, None

        def page() -> list[Any] | None:
            nonlocal pages
            if pages is None:
                pages = iter(self._client.list(folder or None, offset=last))
            try:
                return next(pages, None)
            except obstore.exceptions.BaseError:
                # what failed would end as if it were complete
                pages = None
                raise

        while (found := self._retry("list", folder, page)) is not None:
            for one in found:
                key = str(one["path"])
                # names are in order; not every server knows where to begin
                if last is None or key > last:
                    last = key
                    yield StoredFile(key, int(one["size"]), int(one["last_modified"].timestamp() * 1000))

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; one request for each 1,000, where the store has such."""
        names = list(keys)

        def remove() -> None:
            try:
                self._client.delete(names)
            except FileNotFoundError:  # only some stores miss one
                for name in names:
                    with suppress(FileNotFoundError):
                        self._client.delete(name)

        if names:
            self._retry("remove", names[0], remove)

    def delete_folder(self, folder: str) -> None:
        """Remove all objects below a folder, or the object of this name."""
        self.delete([folder, *(entry.key for entry in self.files(folder, None))])

    def _retry(self, verb: str, key: str, action: Callable[[], T]) -> T:
        """Return what the action gives; it may run again after a failure that can pass."""
        for pause_s in (*_PAUSES_S, None):
            try:
                return action()
            except (obstore.exceptions.BaseError, FileNotFoundError) as error:
                uri = f"{self._uri}/{key}"
                if isinstance(error, FileNotFoundError) and not (lacks_bucket(str(error)) or lacks_upload(str(error))):
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), uri) from error
                refused = refusal(verb, uri, type(error).__name__, str(error))
                if pause_s is None or refused.kind is not ErrorKind.TRANSIENT:
                    raise refused from error
            time.sleep(pause_s)
        raise AssertionError("the last try returns or raises")


class _ObjectReader(io.RawIOBase):
    """An object that is read from anywhere, a range at a time."""

    def __init__(self, bucket: Bucket, key: str, size: int) -> None:
        self._bucket = bucket
        self._key = key
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        into = memoryview(buffer).cast("B")
        length = max(0, min(len(into), self._size - self._at))
        if length:
            data = self._bucket.read_range(self._key, self._at, length)
            into[: len(data)] = data
            length = len(data)
        self._at += length
        return length


class _ObjectWriter:
    """An object that is written to a temporary file, and sent when it is closed."""

    def __init__(self, bucket: Bucket, key: str) -> None:
        self._bucket = bucket
        self._key = key
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115
        self.closed = False

    def write(self, data: Buffer, /) -> int:
        return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()

    def flush(self) -> None:
        return None

    def close(self) -> None:
        if not self.closed:
            self._file.seek(0)
            try:
                self._bucket.send(self._key, cast(BinaryIO, self._file))
            finally:
                self.abandon()

    def abandon(self) -> None:
        self.closed = True
        self._file.close()
