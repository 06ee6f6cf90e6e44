"""Opens an archived file in a worker, by the name that Spark has for it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO, cast
from urllib.parse import quote

import pyarrow as pa
import pyarrow.fs

from bronze_ingest.archive.content import ArchiveFile, unreadable

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(/.*)", re.DOTALL)
# hadoop's names of what pyarrow calls by another
_SCHEMES = {"s3a": "s3", "s3n": "s3", "wasbs": "abfss"}


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
        raise unreadable(path, error) from error
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
