"""Failures of Spark and the file system in our words: which condition, transient or terminal, what to do."""

from __future__ import annotations

from demux.errors import DemuxError, StorageFailed, TaskFailed, TaskInterrupted

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
)
# delta and the file system say these when somebody else was quicker, or a worker went away
_TRANSIENT = (
    "ConcurrentAppendException",
    "ConcurrentWriteException",
    "ConcurrentTransactionException",
    "MetadataChangedException",
    "ProtocolChangedException",
    "ExecutorLostFailure",
    "FetchFailedException",
    "Connection reset",
    "TimeoutException",
    "DisconnectException",
    "ConnectException",
    "ConnectionRefusedError",
    "TimeoutError",
    "DELTA_CONCURRENT",
)


def named(error: BaseException) -> DemuxError:
    """Return the error in our words; a `DemuxError` comes back as it is."""
    if isinstance(error, DemuxError):
        return error
    text = f"{type(error).__name__}: {error}"
    reason = _sentence(text)
    # a conflict of two writers may also name the file that both wanted
    if any(sign in text for sign in _TRANSIENT):
        return TaskInterrupted(f"The work was interrupted: {reason}.", "Run the same command again.")
    found = next((sign for sign in _STORAGE if sign in text), None)
    if found is not None:
        return StorageFailed(
            f"The storage refused to work ({found}): {reason}.",
            "Free space or grant write permission on the root, then run the same command again; nothing is lost.",
        )
    return TaskFailed(f"{reason}.", "See the log file for the whole story, then run the same command again.")


def _sentence(text: str) -> str:
    """Return the line that says most, at most 300 characters."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    best = causes[-1].removeprefix("Caused by: ") if causes else (lines[0] if lines else "unknown")
    return best[:300].rstrip(".")
