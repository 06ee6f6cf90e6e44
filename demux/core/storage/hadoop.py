"""Files of a file system that only Spark's own Hadoop client reaches, such as `hdfs://` and `dbfs:`.

It needs a running classic session of Spark in this process, and has what tables, logs and checkpoints ask for: no
conditional writes and no open files. This is the only module of the storage layer that calls the JVM.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from demux.core.errors import StorageFailed
from demux.core.storage.backend import FolderState, NewFile, StoredFile, Tagged

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from demux.core.storage.files import Storage


class HadoopFiles:
    """See `Backend`. A key is the whole path or URI."""

    def read(self, key: str) -> bytes:
        """Return a file's bytes."""
        path, system = _located(key)
        if not system.exists(path):
            raise FileNotFoundError(key)
        stream = system.open(path)
        try:
            return bytes(getattr(_context()._jvm, "org.apache.commons.io.IOUtils").toByteArray(stream))
        finally:
            stream.close()

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """Return some of a file's bytes; reads the whole file."""
        return self.read(key)[start : start + length]

    def size(self, key: str) -> int | None:
        """Return a file's size; None where there is no such file."""
        path, system = _located(key)
        if not system.exists(path):
            return None
        status = system.getFileStatus(path)
        return None if status.isDirectory() else int(status.getLen())

    def write(self, key: str, data: bytes) -> None:
        """Write a file beside the old one, and rename it."""
        # tasks of a job may write the same text at the same time
        path, system = _located(f"{key}.{uuid.uuid4().hex}.tmp")
        stream = system.create(path, True)
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()
        target, _ = _located(key)
        context: Any = _context()
        options = getattr(context._jvm.org.apache.hadoop.fs, "Options$Rename")
        overwrite = context._gateway.new_array(options, 1)
        overwrite[0] = options.OVERWRITE
        files = context._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
            target.toUri(), context._jsc.hadoopConfiguration()
        )
        files.rename(files.makeQualified(path), files.makeQualified(target), overwrite)

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted; none where there is no folder."""
        path, system = _located(folder)
        if not system.exists(path):
            return []
        return sorted(str(status.getPath().getName()) for status in system.listStatus(path))

    def state(self, folder: str) -> FolderState | None:
        """Return what is in a folder; None where there is no folder."""
        names = tuple(self.names(folder))
        return FolderState(names, hash(names)) if names else None

    def files(self, folder: str, after: str | None) -> Iterator[StoredFile]:
        """Yield the files below a folder at any depth."""
        path, system = _located(folder)
        if not system.exists(path):
            return
        found = system.listFiles(path, True)
        below = path.makeQualified(system.getUri(), system.getWorkingDirectory()).toUri()
        while found.hasNext():
            status = found.next()
            key = f"{folder}/{below.relativize(status.getPath().toUri()).getPath()}"
            if after is None or key > after:
                yield StoredFile(key, int(status.getLen()), int(status.getModificationTime()))

    def delete(self, keys: Iterable[str]) -> None:
        """Remove files; what is not there is not missed."""
        for key in keys:
            self.delete_folder(key)

    def delete_folder(self, folder: str) -> None:
        """Remove a folder and all inside, or a file."""
        path, system = _located(folder)
        system.delete(path, True)

    def read_tagged(self, key: str) -> Tagged:
        """Not possible: there are no tags."""
        _refuse(key)

    def open(self, key: str, size: int | None) -> BinaryIO:
        """Return a file's bytes, read whole."""
        return io.BytesIO(self.read(key))

    def create(self, key: str, data: bytes) -> bool:
        """Not possible: there are no conditional writes."""
        _refuse(key)

    def replace(self, key: str, data: bytes, tag: str) -> str | None:
        """Not possible: there are no conditional writes."""
        _refuse(key)

    def writer(self, key: str) -> NewFile:
        """Not possible: Spark writes data files."""
        _refuse(key)


def make_folder(spark: SparkSession, folder: str) -> None:
    """Make a folder and those above it, which Spark wants to see; a second call does nothing."""
    path, system = _located(folder, spark.sparkContext)
    system.mkdirs(path)


def remove_folder(spark: SparkSession, storage: Storage, folder: str) -> None:
    """Remove a folder and all inside, or a file; a second call does nothing."""
    storage.delete_folder(folder)
    if not storage.is_folder(folder):
        # Hadoop's client has an object of its own for each empty folder of a store, which no other client names
        path, system = _located(folder, spark.sparkContext)
        system.delete(path, True)


def _located(path: str, context: SparkContext | None = None) -> tuple[Any, Any]:
    running: Any = context or _context()
    # by its whole name: with every dot, all jars are searched for one more class that is not there
    location = getattr(running._jvm, "org.apache.hadoop.fs.Path")(path)
    return location, location.getFileSystem(running._jsc.hadoopConfiguration())


def _context() -> Any:
    from pyspark import SparkContext

    if (running := SparkContext._active_spark_context) is None:
        raise StorageFailed("Files of this path cannot be read without Spark.", _ELSEWHERE)
    return running


def _refuse(key: str) -> NoReturn:
    raise StorageFailed(f"{key} is reached by Spark's Hadoop client alone, which cannot do this.", _ELSEWHERE)


_ELSEWHERE = "Name a folder, s3://, abfss:// or gs://."
