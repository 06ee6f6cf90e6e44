"""What Spark would let pass in silence: settings that it reads in another way, and files that it leaves out."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bronze_ingest.archive.listing import Listing, files_of, listings
from bronze_ingest.archive.opening import local_path
from demux.checkpoints import read_checkpoint
from demux.errors import DemuxError, SettingsInvalid, StorageFailed
from demux.settings_source import ArchiveSettings, Clean
from demux.storage import file_names, read_text, replace_text
from demux.streams import Batch
from demux.text import printable

_GLOB = frozenset("{}[]*?\\")
_HIDDEN = ("_", ".")
_NOTE = "archive.json"
_FROM_WORKER = re.compile(r"\[STORAGE_FAILED\] (?P<cause>The archived file .*?\.) (?P<remedy>(?:Put|Correct) .*)")

OnBatch = Callable[[DataFrame, Batch], None]


def require_consistent(path: str, settings: ArchiveSettings) -> None:
    """Check the settings.

    Raises:
        SettingsInvalid: Spark would take the folder for a pattern, or read again what was moved away.
    """
    if glob := sorted(_GLOB & set(path)):
        raise SettingsInvalid(
            f"archive.path {path} has {' '.join(glob)}, which makes it a pattern to Spark.",
            "Name a folder without them; `archive.pattern` says which files to read.",
        )
    if settings.clean is Clean.ARCHIVE and settings.clean_path is not None:
        inner, outer = _parts(settings.clean_path), _parts(path)
        shared = min(len(inner), len(outer))
        if inner[:shared] == outer[:shared]:
            raise SettingsInvalid(
                f"archive.clean_path {settings.clean_path} and archive.path {path} lie within each other.",
                "Name a folder beside the archive, or what was moved there would be read again.",
            )


def require_names(spark: SparkSession, path: str) -> None:
    """Check the names of local files and folders: what Java cannot name, Spark leaves out.

    Raises:
        StorageFailed: there is such a name.
    """
    local = local_path(path)
    if local is None:
        return
    odd = [(folder, name) for folder, name in _names(local) if not name.isascii()]
    if not odd or _java_has(spark, "".join(name for _, name in odd)):
        return
    shown = next(printable(f"{folder}/{name}") for folder, name in odd if not _java_has(spark, name))
    raise StorageFailed(
        f"The archived file {shown} has a name that Java cannot have here.",
        "Rename it, or start in a locale of UTF-8, such as LC_ALL=C.UTF-8.",
        path=shown,
    )


def require_same_reading(spark: SparkSession, checkpoint: str, settings: ArchiveSettings) -> None:
    """Check that archived files of an interrupted batch would be read as when it was begun; call it before the query.

    Notes in the checkpoint how files are read from now on. A second call changes nothing.

    Raises:
        SettingsInvalid: they would not: some of their records would come otherwise, or not at all.
    """
    now = {"format": settings.format.value, "pattern": settings.pattern}
    noted = file_names(spark, checkpoint)
    before = json.loads(read_text(spark, f"{checkpoint}/{_NOTE}")) if _NOTE in noted else now
    if before != now:
        unfinished = read_checkpoint(spark, checkpoint).unfinished
        if unfinished is not None and _listings(spark, checkpoint, unfinished):
            then = f"`archive.format: {before['format']}` and `archive.pattern: {before['pattern'] or 'null'}`"
            raise SettingsInvalid(
                f"Batch {unfinished} of bronze was interrupted, and has archived files that were read with {then}.",
                "Put these settings back until a run has gone through, and change them then.",
                **before,
            )
    if before != now or _NOTE not in noted:
        replace_text(spark, f"{checkpoint}/{_NOTE}", json.dumps(now))


def with_files(spark: SparkSession, checkpoint: str, on_batch: OnBatch) -> OnBatch:
    """Return `on_batch` with the archive watched: every file of a batch is there, or the batch fails.

    What it returns raises:
        StorageFailed: a file is gone, which Spark would leave out in silence, or a worker cannot read it.
    """

    def watched(frame: DataFrame, batch: Batch) -> None:
        _require_files(spark, checkpoint, batch.batch_id)
        try:
            on_batch(frame, batch)
        except Exception as error:
            # spark hands on what a worker raised as the text of a traceback
            found = None if isinstance(error, DemuxError) else _FROM_WORKER.search(str(error))
            if found is None:
                raise
            raise StorageFailed(found["cause"], found["remedy"]) from error

    return watched


def _require_files(spark: SparkSession, checkpoint: str, batch_id: int) -> None:
    for listing in _listings(spark, checkpoint, batch_id):
        folder = f"{checkpoint}/sources/{listing.source}"
        names = set(file_names(spark, folder))
        for entry in range(listing.after + 1, listing.last + 1):
            name = str(entry) if str(entry) in names else f"{entry}.compact"
            for uri in files_of(read_text(spark, f"{folder}/{name}"), listing):
                _require_file(spark, uri)


def _listings(spark: SparkSession, checkpoint: str, batch_id: int) -> list[Listing]:
    before = read_text(spark, f"{checkpoint}/offsets/{batch_id - 1}") if batch_id else None
    return listings(read_text(spark, f"{checkpoint}/offsets/{batch_id}"), before)


def _require_file(spark: SparkSession, uri: str) -> None:
    jvm: Any = spark.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri))
    if not path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).isFile(path):
        name = printable(str(path.toString()))
        raise StorageFailed(
            f"The archived file {name} is gone since this batch was begun.",
            "Put it back, or an empty file in its place if its records are to be left out, and run again.",
            path=name,
        )


def _parts(location: str) -> list[str]:
    local = local_path(location)
    return (location if local is None else os.path.normpath(Path(local).absolute())).rstrip("/").split("/")


def _names(folder: str) -> Iterator[tuple[str, str]]:
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(_HIDDEN)]
        yield from ((parent, name) for name in (*folders, *files) if not name.startswith(_HIDDEN))


def _java_has(spark: SparkSession, text: str) -> bool:
    # a byte that is no UTF-8 is half of a surrogate pair in python
    if any("\ud800" <= character <= "\udfff" for character in text):
        return False
    jvm: Any = spark.sparkContext._jvm
    encoding = jvm.java.lang.System.getProperty("sun.jnu.encoding")
    return bool(jvm.java.nio.charset.Charset.forName(encoding).newEncoder().canEncode(text))
