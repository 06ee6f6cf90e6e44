"""The archive: a stream of file names, each file read whole by one worker."""

from __future__ import annotations

import locale
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from bronze_ingest.archive.byte_reader import FileContent
from bronze_ingest.archive.delimited import delimited
from bronze_ingest.archive.file_open import ArchiveFile, local_path, open_archive
from bronze_ingest.archive.ndjson import ndjson
from bronze_ingest.archive.parquet import parquet
from bronze_ingest.archive.record_batch import ARCHIVED, CUT, RecordRows, batch_of
from demux.core.columns.spark import spark_struct
from demux.core.errors import SettingsInvalid, SourceMissing, StorageFailed
from demux.core.settings.source import ArchiveFormat, ArchiveSettings, CleanUp
from demux.core.spark.map_in_arrow import ArrowFunction, map_in_arrow
from demux.core.text import printable

_FILES = "path STRING, modificationTime TIMESTAMP, length LONG, content BINARY"
# Spark forgets files that are older than this than the newest one, and then passes over a late one in silence
_FOR_EVER = "36500d"
_GLOB = frozenset("{}[]*?\\")
_HIDDEN = ("_", ".")


def archive_stream(spark: SparkSession, settings: ArchiveSettings) -> DataFrame:
    """Return a streaming frame of the archive's records in the columns of `ARCHIVED`; `path` must be set.

    A file is known by its path: it is read once, and not again when it changes. Files whose name, or whose folder's
    name, begins with `_` or `.` are not read: write a file under such a name, then rename it. With `clean`, Spark
    moves or deletes a batch's files once the batch after it begins.

    Raises:
        SettingsInvalid: the settings contradict each other in a way that Spark would refuse, or not notice.
        SourceMissing: there is no such folder.
        StorageFailed: a file has a name that this Java cannot have.
    """
    path = settings.path
    assert path is not None
    require_consistent(path, settings)
    require_names(path)
    options = {
        "recursiveFileLookup": "true",
        "maxFilesPerTrigger": str(settings.max_files_per_batch),
        "maxFileAge": _FOR_EVER,
        # whatever the session says: a file that is left out is lost
        "ignoreMissingFiles": "false",
        "ignoreCorruptFiles": "false",
        # without it, Spark 3.4 takes the files' own names for patterns
        "__globPaths__": "false",
        **_clean_options(settings),
    }
    if settings.pattern is not None:
        options["pathGlobFilter"] = settings.pattern
    try:
        files = spark.readStream.format("binaryFile").schema(_FILES).options(**options).load(path)
    except AnalysisException as error:
        if "PATH_NOT_FOUND" not in str(error):
            raise
        raise SourceMissing(
            f"There is no archive at {path}.", "Make the folder, or correct `archive.path`.", path=path
        ) from error
    # the name alone: Spark never opens a file
    return map_in_arrow(files.select("path"), reader(settings), spark_struct(ARCHIVED))


def reader(settings: ArchiveSettings) -> ArrowFunction:
    """Return a function that reads the files of its first column, into the columns of `ARCHIVED`."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column(0).to_pylist():
                with open_archive(path) as file:
                    for rows in records(path, file, settings.format):
                        if settings.clean is CleanUp.DELETE:
                            _require_whole(path, rows)
                        yield rows

    return read


def _require_whole(path: str, rows: pa.RecordBatch) -> None:
    # a wrong `archive.format` makes one such piece of each file, and would cost the whole archive
    if pc.any(pc.ends_with(rows.column("refused_sentence"), CUT)).as_py():
        raise StorageFailed(
            f"The archived file {printable(path)} has a malformed piece that is too large for quarantine, and "
            "`archive.clean: delete` would delete it.",
            "Correct `archive.format`, or move the file elsewhere and leave an empty one in its place, and run again.",
            path=path,
        )


def _clean_options(settings: ArchiveSettings) -> dict[str, str]:
    match settings.clean:
        case CleanUp.KEEP:
            return {}
        case CleanUp.DELETE:
            return {"cleanSource": "delete"}
        case CleanUp.ARCHIVE:
            assert settings.clean_path is not None
            return {"cleanSource": "archive", "sourceArchiveDir": settings.clean_path}


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
    if settings.clean is CleanUp.ARCHIVE and settings.clean_path is not None:
        inner, outer = _parts(settings.clean_path), _parts(path)
        shared = min(len(inner), len(outer))
        if inner[:shared] == outer[:shared]:
            raise SettingsInvalid(
                f"archive.clean_path {settings.clean_path} and archive.path {path} lie within each other.",
                "Name a folder beside the archive, or what was moved there would be read again.",
            )


def require_names(path: str) -> None:
    """Check the names of local files and folders: what Java cannot name, Spark leaves out.

    Raises:
        StorageFailed: there is such a name.
    """
    local = local_path(path)
    if local is None:
        return
    odd = [(folder, name) for folder, name in _names(local) if not name.isascii()]
    if not odd or _java_has("".join(name for _, name in odd)):
        return
    shown = next(printable(f"{folder}/{name}") for folder, name in odd if not _java_has(name))
    raise StorageFailed(
        f"The archived file {shown} has a name that Java cannot have here.",
        "Rename it, or start in a locale of UTF-8, such as LC_ALL=C.UTF-8.",
        path=shown,
    )


def _parts(location: str) -> list[str]:
    local = local_path(location)
    return (location if local is None else os.path.normpath(Path(local).absolute())).rstrip("/").split("/")


def _names(folder: str) -> Iterator[tuple[str, str]]:
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(_HIDDEN)]
        yield from ((parent, name) for name in (*folders, *files) if not name.startswith(_HIDDEN))


def _java_has(text: str) -> bool:
    # Java takes the names of files in the encoding of the locale that it was started in: ours
    try:
        text.encode(locale.nl_langinfo(locale.CODESET))
    except UnicodeEncodeError:  # also of a byte that is no UTF-8, half of a surrogate pair in Python
        return False
    return True


def records(path: str, file: ArchiveFile, layout: ArchiveFormat) -> Iterator[pa.RecordBatch]:
    """Return the file's rows in order, in the columns of `ARCHIVED`; nothing for an empty file.

    A batch has at most `MAX_BATCH_ROWS` rows and `MAX_BATCH_BYTES`; a larger record has a batch of its own. A row
    whose `refused_sentence` is not NULL is a malformed piece. The same file gives the same rows each time.

    Args:
        path: the file as Spark names it, such as `file:/archive/a.bin`.
        file: opened, at its beginning.

    Raises:
        StorageFailed: the file cannot be read.
    """
    match layout:
        case ArchiveFormat.DELIMITED:
            return _batches(path, file, delimited)
        case ArchiveFormat.NDJSON:
            return _batches(path, file, ndjson)
        case ArchiveFormat.PARQUET:
            return parquet(path, file)


def _batches(
    path: str, file: ArchiveFile, read: Callable[[FileContent], Iterator[RecordRows]]
) -> Iterator[pa.RecordBatch]:
    content = FileContent(path, file)
    for rows in read(content) if content.broken is None else [content.rest(0, b"", "")]:
        yield batch_of(path, rows)
