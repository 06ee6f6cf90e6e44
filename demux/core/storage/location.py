"""Where a file is, read from a path or a URI. Pure.

A URI is text, as Hadoop's paths are: `%20` in it is three characters, never a space. Only the clients that want a URL
get one with percent escapes (`Location.url`).
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from enum import Enum
from urllib.parse import quote

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(.*)", re.DOTALL)
_SLASHES = re.compile("/+")
_WILDCARDS = re.compile(r"[\[\]{}*?\\]")


class Scheme(Enum):
    """What kind of store has a file.

    Attributes:
        FILE: a folder of this machine.
        S3: Amazon S3, and every server that speaks its protocol.
        AZURE: a container of Azure Data Lake Storage.
        GCS: Google Cloud Storage.
        OTHER: anything else, which only Spark can read.
    """

    FILE = "file"
    S3 = "s3"
    AZURE = "abfss"
    GCS = "gs"
    OTHER = "other"


_SCHEMES = {
    "file": Scheme.FILE,
    "s3": Scheme.S3,
    "s3a": Scheme.S3,
    "abfs": Scheme.AZURE,
    "abfss": Scheme.AZURE,
    "gs": Scheme.GCS,
}


@dataclass(frozen=True, slots=True)
class Location:
    """A file or a folder.

    Attributes:
        scheme: the kind of store.
        container: the bucket, or `container@account.host` in Azure; empty on this machine.
        key: the path below the container, without a slash before or behind it; on this machine the path itself.
    """

    scheme: Scheme
    container: str
    key: str

    @property
    def url(self) -> str:
        """The location as a URL, with percent escapes, for clients that decode them."""
        return f"{self.scheme.value}://{self.container}/{quote(self.key)}"


def locate(path: str, plain: Scheme = Scheme.FILE) -> Location:
    """Return the location of a URI, or of a path, which is one of this machine or as `plain` says.

    Slashes that follow each other count as one, and `.` and `..` are resolved, as Hadoop does.
    """
    found = _URI.fullmatch(path)
    if found is None:
        return Location(plain, "", _normal(path))
    scheme, container, key = _SCHEMES.get(found[1].lower(), Scheme.OTHER), found[2] or "", _normal(found[3])
    if scheme is Scheme.FILE and container in {"", "localhost"}:
        return Location(scheme, "", key)
    scheme = Scheme.OTHER if scheme is Scheme.FILE else scheme
    return Location(scheme, container, key.strip("/"))


def literal_path(path: str) -> str:
    """Return the path as Spark's readers of files want it, with wildcards escaped."""
    return _WILDCARDS.sub(lambda found: "\\" + found[0], path)


def _normal(path: str) -> str:
    normal = posixpath.normpath(_SLASHES.sub("/", path)) if path else ""
    return "" if normal == "." else normal
