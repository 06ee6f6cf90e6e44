"""Where a file is, read from a path or a URI. Pure.

A URI is text, as Hadoop's paths are: `%20` in it is three characters, never a space. Only the clients that want a URL
get one with percent escapes (`Location.url`).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from urllib.parse import quote

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(.*)", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_SLASHES = re.compile("/+")
_WILDCARDS = re.compile(r"[\[\]{}*?\\]")


class Scheme(Enum):
    """What kind of store has a file.

    Attributes:
        FILE: a folder of this machine.
        MOUNT: another file system, mounted at a folder of this machine: Spark has a path of its own for it.
        S3: Amazon S3, and every server that speaks its protocol.
        AZURE: a container of Azure Data Lake Storage.
        GCS: Google Cloud Storage.
        OTHER: anything else, which is not reached.
    """

    FILE = "file"
    MOUNT = "mount"
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
# how a cluster of Databricks has the file systems of its workspace; Spark takes a path without a scheme for `dbfs:`
WORKSPACE: Mapping[str, str] = MappingProxyType(
    {
        f"{scheme}{prefix}": folder
        for prefix, folder in {"/Volumes": "/Volumes", "/Workspace": "/Workspace", "": "/dbfs"}.items()
        for scheme in ("dbfs:", "")
    }
)


@dataclass(frozen=True, slots=True)
class Location:
    """A file or a folder.

    Attributes:
        container: the bucket, or `container@account.host` in Azure; empty on this machine and for a mount.
        key: the path below the container, without a slash before or behind it; on this machine the path itself.
    """

    scheme: Scheme
    container: str
    key: str

    @property
    def url(self) -> str:
        """The location as a URL, with percent escapes, for clients that decode them."""
        return f"{self.scheme.value}://{self.container}/{quote(self.key)}"


def locate(path: str, mounts: Mapping[str, str] = MappingProxyType({})) -> Location:
    """Return the location of a URI or a path.

    Slashes that follow each other count as one, and `.` and `..` are resolved, as Hadoop does.

    Args:
        mounts: folders of this machine by the prefix, `scheme://container/path`, that Spark has for what they hold.
    """
    found = _URI.fullmatch(path)
    scheme, container, key = ("", "", path) if found is None else (found[1].lower(), found[2] or "", found[3])
    key = _normal(key)
    whole = (f"{scheme}:" if scheme else "") + (f"//{container}" if container else "") + key
    for prefix, folder in sorted(mounts.items(), reverse=True):
        begin = prefix.rstrip("/")
        if whole == begin or whole.startswith(f"{begin}/"):
            return Location(Scheme.MOUNT, "", f"{folder.rstrip('/')}{whole[len(begin) :]}")
    kind = _SCHEMES.get(scheme, Scheme.OTHER) if scheme else Scheme.FILE
    if kind is not Scheme.FILE:
        return Location(kind, container, key.strip("/"))
    is_here = container in {"", "localhost"}
    return Location(Scheme.FILE, "", key) if is_here else Location(Scheme.OTHER, container, key.strip("/"))


def has_scheme(path: str) -> bool:
    """Return whether the path is a URI, such as `s3://bucket/x` or `dbfs:/x`."""
    return _SCHEME.match(path) is not None


def literal_path(path: str) -> str:
    """Return the path as Spark's readers of files want it, with wildcards escaped."""
    return _WILDCARDS.sub(lambda found: "\\" + found[0], path)


def _normal(path: str) -> str:
    normal = posixpath.normpath(_SLASHES.sub("/", path)) if path else ""
    return "" if normal == "." else normal
