"""Failures of Spark and the file system in our words: which condition, transient or terminal, what to do."""

from __future__ import annotations

import re

from demux.core.errors import (
    ConcurrentChange,
    DemuxError,
    ServiceUnavailable,
    SessionLost,
    StorageFailed,
    TableDamaged,
    TableUnsuited,
    TaskFailed,
)
from demux.core.extras import missing_extra
from demux.core.storage.refusals import refusal_in

# an error's text has Java's trace behind it, which says less
_WORKER_TRACE = "Traceback (most recent call last):"
_STORAGE = (
    "No space left on device",
    "Permission denied",
    "Read-only file system",
    "Not a directory",
    "Operation not permitted",
    "Disk quota exceeded",
    "File too large",
    "Mkdirs failed to create",
    "AccessDeniedException",
    "Unable to create",
    "ParentNotDirectoryException",
    "FileAlreadyExistsException",
    "FileExistsError",
)
# errors of Delta when another writer was faster
_CONCURRENT = (
    "ConcurrentAppendException",
    "ConcurrentWriteException",
    "ConcurrentTransactionException",
    "MetadataChangedException",
    "ProtocolChangedException",
    "DELTA_CONCURRENT",
    # of deltalake
    "CommitFailedError",
)
# errors of Spark, Hadoop and Kafka when a worker or a server ended, or did not answer
_UNAVAILABLE = (
    "ExecutorLostFailure",
    "Python worker exited unexpectedly",
    "FetchFailedException",
    "Connection reset",
    "TimeoutException",
    "DisconnectException",
    "ConnectException",
    "ConnectionRefusedError",
    "TimeoutError",
)
# what `deltalake` and Arrow say of a log or a file that was cut, overwritten or removed
_DAMAGED = re.compile(
    r"Json error|No table metadata or protocol found|Parquet error|Parquet magic bytes|Could not open Parquet input"
    r"|Object at location \S+ not found|Failed to open local file '[^']+\.parquet'"
)
_NEWER = re.compile(
    r"Unsupported minimum reader version \d+|Unsupported reader feature|Unknown (?:reader|table) feature"
)

# of Spark Connect, when the server went away or was started again
_SESSION_LOST = (
    "SESSION_CLOSED",
    "SESSION_NOT_FOUND",
    "SESSION_CHANGED",
    "INVALID_HANDLE",
    "StatusCode.UNAVAILABLE",
    "RETRIES_EXCEEDED",
    "NO_ACTIVE_SESSION",
    "Channel closed",
    "failed to connect to all addresses",
)


def as_demux_error(error: BaseException) -> DemuxError:
    """Return the error in our words; a `DemuxError` comes back as it is."""
    if isinstance(error, DemuxError):
        return error
    if (missing := missing_extra(error)) is not None:
        return missing
    if (lost := _session_lost(error)) is not None:
        return lost
    text = f"{type(error).__name__}: {error}"
    if (refused := refusal_in(text)) is not None:
        return refused
    reason = _sentence(text)
    if is_damage(text):
        return damage_error("A table of the root", reason)
    if newer := _NEWER.search(text):
        return TableUnsuited(
            f"A table of the root is of a newer version of Delta than this command reads ({newer[0]}).",
            "Install newer packages: pip install --upgrade deltalake; or read it by a newer Spark.",
        )
    # a conflict of two writers may also name the file that both wanted
    if any(sign in text for sign in _CONCURRENT):
        return ConcurrentChange(f"Another writer changed the table meanwhile: {reason}.", "Run the same command again.")
    if any(sign in text for sign in _UNAVAILABLE):
        return ServiceUnavailable(f"A server or a worker did not answer: {reason}.", "Run the same command again.")
    found = next((sign for sign in _STORAGE if sign in text), None)
    if found is not None:
        return StorageFailed(
            f"The storage refused to work ({found}): {reason}.",
            "Free space or grant write permission on the root, then run the same command again; nothing is lost.",
        )
    return TaskFailed(f"{reason}.", "See the log file for the whole story, then run the same command again.")


def _session_lost(error: BaseException) -> SessionLost | None:
    """Return the error of a server that went away, or forgot the session; None for any other error."""
    text = f"{type(error).__name__}: {error}"
    # the client's own error of its tries is one of all PySpark
    if "connect" not in type(error).__module__ and type(error).__name__ != "RetriesExceeded":
        return None
    if not any(sign in text for sign in _SESSION_LOST):
        return None
    reason = text.strip().splitlines()[0][:300].rstrip(".")
    return SessionLost(
        f"The Spark Connect server does not answer, or does not know this session any more: {reason}.",
        "See that the server of `spark.remote` runs, and run the same command again; nothing is lost.",
    )


def is_damage(text: str) -> bool:
    """Return whether the text says that a table's log, or a file of it, is missing or cut."""
    return _DAMAGED.search(text) is not None


def damage_error(table: str, reason: str) -> TableDamaged:
    """Return the error of a table with a commit or a file that is missing or cut."""
    return TableDamaged(
        f"{table} is damaged: a commit or a file of it is missing or cut ({reason}).",
        "Restore it from a backup of the root. Without one, remove the table, and `demux rebuild --game NAME` makes a "
        "silver table again; `demux rebuild --bronze` makes bronze again from the source.",
    )


def _sentence(text: str) -> str:
    """Return the line that says most, at most 300 characters."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    if raised := _raised_in_worker(text):
        best = raised
    elif causes:
        best = causes[-1].removeprefix("Caused by: ")
    elif lines[1:] and lines[1].startswith(": "):
        # py4j says first which of its objects it called
        best = lines[1].removeprefix(": ")
    else:
        best = lines[0] if lines else "unknown"
    return best[:300].rstrip(".")


def _raised_in_worker(text: str) -> str | None:
    """Return what a Python worker raised: the first line behind its trace's indented ones."""
    _, found, trace = text.partition(_WORKER_TRACE)
    return next((line for line in trace.splitlines() if line and not line[0].isspace()), None) if found else None
