"""What an object store answers when it does not do what it is asked, in our words. Pure."""

from __future__ import annotations

import re

from demux.core.errors import DemuxError, StorageFailed, TaskInterrupted

_REFUSED = frozenset({"PermissionDeniedError", "UnauthenticatedError"})
_NO_BUCKET = re.compile("NoSuchBucket|ContainerNotFound|The specified bucket does not exist")
_CREDENTIALS = re.compile("InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|AccessDenied|credential")
# a signed URL, or Azure's SAS token, is a secret
_QUERY = re.compile(r"\?\S+")
_LONGEST = 300


def lacks_bucket(text: str) -> bool:
    """Return whether the client's text says that there is no such bucket, not only no such object."""
    return _NO_BUCKET.search(text) is not None


def refusal(verb: str, uri: str, kind: str, text: str) -> DemuxError:
    """Return the error for an answer.

    Args:
        verb: what was asked, such as `read`.
        uri: of what.
        kind: the name of the client's exception.
        text: the client's text.
    """
    said = _QUERY.sub("", text.splitlines()[0] if text else kind)[:_LONGEST].rstrip(". ")
    if lacks_bucket(text):
        return StorageFailed(
            f"The store did not {verb} {uri}: the bucket does not exist.",
            "Make the bucket, or correct `root` in the settings.",
            path=uri,
        )
    if kind in _REFUSED or _CREDENTIALS.search(text):
        return StorageFailed(
            f"The store refused to {verb} {uri}: {said}.",
            "Check the credentials (settings `store`, or the environment) and their permissions; nothing is lost.",
            path=uri,
        )
    if kind in {"GenericError", "JoinError"}:
        return TaskInterrupted(
            f"The store failed to {verb} {uri}: {said}.", "Run the same command again; nothing is lost.", path=uri
        )
    return StorageFailed(
        f"The store could not {verb} {uri}: {said}.",
        "Correct the path, or see the log file; nothing is lost.",
        path=uri,
    )
