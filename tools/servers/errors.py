"""How starting a server can fail; each is said in two sentences, as every error of `demux` is."""

from __future__ import annotations

import re
from pathlib import Path

from demux.core.errors import DemuxError, ErrorKind, ExitCode

_LAST_LINES = 15
_LAST_BYTES = 65_536
# a Java server that fails says why, and then at length how it shuts down
_NOISE = re.compile(r"\s+at |\s+\.\.\. |.* INFO ")


class PackagesUnavailable(DemuxError):
    """A server's files could not be fetched."""

    condition = "PACKAGES_UNAVAILABLE"
    kind = ErrorKind.TRANSIENT
    exit_code = ExitCode.TRANSIENT


class ChecksumMismatch(DemuxError):
    """A fetched file is not the one that the repository's list names."""

    condition = "CHECKSUM_MISMATCH"


class ServerFailed(DemuxError):
    """A server ended, or did not answer in time."""

    condition = "SERVER_FAILED"


class PortTaken(DemuxError):
    """Another process listens where a server should."""

    condition = "PORT_TAKEN"


class FolderTaken(DemuxError):
    """The folder holds files that are not of our servers."""

    condition = "FOLDER_TAKEN"


def last_lines(log: Path) -> str:
    """Return the last lines of the log that tell of a problem, at most 15; the last lines of any kind if none does."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _LAST_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    telling = [line for line in lines if line.strip() and not _NOISE.match(line)]
    return "\n".join((telling or lines)[-_LAST_LINES:]) or "(nothing was logged)"
