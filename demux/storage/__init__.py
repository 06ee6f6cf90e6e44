"""Files and folders on any file system that Spark reads, by the driver's own Hadoop client.

What is on this machine is read by Python, as the way through the JVM is long.
"""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# a commit or a checkpoint; whoever makes the table has a file with another name there before
_OF_A_VERSION = re.compile(r"\d{20}\.")
_CHECKSUM = re.compile(r"\.(.*\.)?crc", re.DOTALL)
_WILDCARDS = re.compile(r"[\[\]{}*?\\]")


def table_exists(spark: SparkSession, path: str) -> bool:
    """Return whether a Delta table is at the path."""
    return any(_OF_A_VERSION.match(name) for name in file_names(spark, f"{path}/_delta_log"))


def exists(spark: SparkSession, path: str) -> bool:
    """Return whether a file or folder is at the path."""
    location, system = _hadoop(spark, path)
    return bool(system.exists(location))


def file_names(spark: SparkSession, folder: str) -> list[str]:
    """Return the names in a folder, sorted; none when there is no folder."""
    here = local_path(spark, folder)
    if here is not None:
        # as Hadoop does, without its checksums
        names = (one.name for one in Path(here).iterdir()) if _is_folder(Path(here)) else ()
        return sorted(name for name in names if not _CHECKSUM.fullmatch(name))
    path, system = _hadoop(spark, folder)
    if not system.exists(path):
        return []
    return sorted(str(status.getPath().getName()) for status in system.listStatus(path))


def read_text(spark: SparkSession, file: str) -> str:
    """Return a file's text (UTF-8)."""
    here = local_path(spark, file)
    if here is not None:
        return Path(here).read_bytes().decode(errors="replace")
    path, system = _hadoop(spark, file)
    stream = system.open(path)
    try:
        return str(getattr(_jvm(spark), "org.apache.commons.io.IOUtils").toString(stream, "UTF-8"))
    finally:
        stream.close()


def replace_text(spark: SparkSession, file: str, text: str) -> None:
    """Write a file's text (UTF-8) in one step: whoever reads it sees all of the old or all of the new."""
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
    path, system = _hadoop(spark, file)
    return int(system.getFileStatus(path).getLen())


def literal_path(path: str) -> str:
    """Return the path as Spark's readers of files want it, where no character stands for others."""
    return _WILDCARDS.sub(lambda found: "\\" + found[0], path)


def local_path(spark: SparkSession, path: str) -> str | None:
    """Return the path as this machine's own file system has it; None for one elsewhere."""
    location, system = _hadoop(spark, path)
    if system.getScheme() != "file":
        return None
    return str(system.makeQualified(location).toUri().getPath())


def make_folder(spark: SparkSession, folder: str) -> None:
    """Make a folder and those above it; a second call does nothing."""
    path, system = _hadoop(spark, folder)
    system.mkdirs(path)


def remove_folder(spark: SparkSession, folder: str) -> None:
    """Remove a folder and all inside, or a file; a second call does nothing."""
    path, system = _hadoop(spark, folder)
    system.delete(path, True)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # below a folder that may not be entered, say: Hadoop calls that not there
        return False


def _hadoop(spark: SparkSession, path: str) -> tuple[Any, Any]:
    # by its whole name: with every dot, all jars are searched for one more class that is not there
    location = getattr(_jvm(spark), "org.apache.hadoop.fs.Path")(path)
    return location, location.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())


def _jvm(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm
