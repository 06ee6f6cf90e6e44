"""Files and folders as Spark's session reaches them: by `Storage`, and by Hadoop's client where only Spark can.

`Storage` is the interface (`files`). What is here is for callers that have a session, and goes with
them: the functions add only the roots that no client of ours reaches. Those that read take a `Storage` too.
"""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

from demux.core.storage.access import StoreAccess
from demux.core.storage.files import Storage, is_version

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_WILDCARDS = re.compile(r"[\[\]{}*?\\]")
_OF_CONTEXT: WeakKeyDictionary[SparkContext, Storage] = WeakKeyDictionary()

# what reads files: a session, or a storage where there is none
Files: TypeAlias = "SparkSession | Storage"


def storage_of(spark: SparkSession) -> Storage:
    """Return how files are reached with the endpoint and the credentials that the session has for S3."""
    # further sessions of a process have the same files
    context = spark.sparkContext
    if context not in _OF_CONTEXT:
        conf = context.getConf()
        _OF_CONTEXT[context] = Storage.here(StoreAccess.of_spark(lambda name: conf.get(name)))
    return _OF_CONTEXT[context]


def remember(spark: SparkSession, storage: Storage) -> None:
    """Let `storage_of` return this for the session, whose configuration has no keys of Azure and GCS."""
    _OF_CONTEXT[spark.sparkContext] = storage


def table_exists(files: Files, path: str) -> bool:
    """Return whether a Delta table is at the path."""
    return any(is_version(name) for name in file_names(files, f"{path}/_delta_log"))


def exists(files: Files, path: str) -> bool:
    """Return whether a file is at the path."""
    if (storage := _reaching(files, path)) is not None:
        return storage.exists(path)
    location, system = _hadoop(files, path)
    return bool(system.exists(location))


def file_names(files: Files, folder: str, after: str | None = None) -> list[str]:
    """Return the names in a folder, sorted; none when there is no folder.

    With `after`, those that are greater, and none of folders; where only Spark reaches the folder, all names.
    """
    if (storage := _reaching(files, folder)) is not None:
        if after is None:
            return storage.names(folder)
        return sorted(file.key for file in storage.files(folder, after) if "/" not in file.key)
    path, system = _hadoop(files, folder)
    if not system.exists(path):
        return []
    return sorted(str(status.getPath().getName()) for status in system.listStatus(path))


def files_below(files: Files, folder: str) -> list[str]:
    """Return the files below a folder at any depth, by their paths in it; none when there is no folder."""
    if (storage := _reaching(files, folder)) is not None:
        return [file.key for file in storage.files(folder)]
    path, system = _hadoop(files, folder)
    if not system.exists(path):
        return []
    found, below = system.listFiles(path, True), path.makeQualified(system.getUri(), system.getWorkingDirectory())
    paths = []
    while found.hasNext():
        paths.append(str(below.toUri().relativize(found.next().getPath().toUri()).getPath()))
    return paths


def read_text(files: Files, file: str) -> str:
    """Return a file's text (UTF-8)."""
    if (storage := _reaching(files, file)) is not None:
        return storage.read_text(file)
    path, system = _hadoop(files, file)
    stream = system.open(path)
    try:
        return str(getattr(_jvm(files), "org.apache.commons.io.IOUtils").toString(stream, "UTF-8"))
    finally:
        stream.close()


def replace_text(spark: SparkSession, file: str, text: str) -> None:
    """Write a file's text (UTF-8) in one step: a reader sees all of the old or all of the new."""
    if (storage := _reaching(spark, file)) is not None:
        storage.write(file, text.encode())
        return
    jvm = _jvm(spark)
    # tasks of a job may write the same text at the same time
    beside = f"{file}.{uuid.uuid4().hex}.tmp"
    path, system = _hadoop(spark, beside)
    stream = system.create(path, True)
    try:
        stream.write(bytearray(text.encode()))
    finally:
        stream.close()
    target, _ = _hadoop(spark, file)
    options = getattr(jvm.org.apache.hadoop.fs, "Options$Rename")
    overwrite = spark.sparkContext._gateway.new_array(options, 1)  # type: ignore[union-attr]
    overwrite[0] = options.OVERWRITE
    context = jvm.org.apache.hadoop.fs.FileContext.getFileContext(
        target.toUri(), spark.sparkContext._jsc.hadoopConfiguration()
    )
    context.rename(context.makeQualified(path), context.makeQualified(target), overwrite)


def file_bytes(spark: SparkSession, file: str) -> int:
    """Return a file's size."""
    if (storage := _reaching(spark, file)) is not None:
        return storage.size(file) or 0
    path, system = _hadoop(spark, file)
    return int(system.getFileStatus(path).getLen())


def literal_path(path: str) -> str:
    """Return the path as Spark's readers of files want it, with wildcards escaped."""
    return _WILDCARDS.sub(lambda found: "\\" + found[0], path)


def make_folder(spark: SparkSession, folder: str) -> None:
    """Make a folder and those above it, which Spark wants to see; a second call does nothing."""
    path, system = _hadoop(spark, folder)
    system.mkdirs(path)


def remove_folder(spark: SparkSession, folder: str) -> None:
    """Remove a folder and all inside, or a file; a second call does nothing."""
    if (storage := _reaching(spark, folder)) is not None:
        storage.delete_folder(folder)
        if storage.is_folder(folder):
            return
        # Hadoop's client has an object of its own for each empty folder, which ours cannot name
    path, system = _hadoop(spark, folder)
    system.delete(path, True)


def _reaching(files: Files, path: str) -> Storage | None:
    if isinstance(files, Storage):
        return files
    storage = storage_of(files)
    return storage if storage.reaches(path) else None


def _hadoop(spark: Any, path: str) -> tuple[Any, Any]:
    # by its whole name: with every dot, all jars are searched for one more class that is not there
    location = getattr(_jvm(spark), "org.apache.hadoop.fs.Path")(path)
    return location, location.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())


def _jvm(spark: Any) -> Any:
    return spark.sparkContext._jvm
