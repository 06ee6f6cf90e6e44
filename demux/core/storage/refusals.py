"""What an object store answers when it does not do what it is asked, in our words. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from demux.core.errors import DemuxError, ServiceUnavailable, StorageFailed
from demux.core.storage.location import Scheme, locate

_REFUSED = frozenset({"PermissionDeniedError", "UnauthenticatedError"})
_PASSING = frozenset({"GenericError", "JoinError"})
_NO_BUCKET = re.compile("NoSuchBucket|ContainerNotFound|The specified bucket does not exist")
_EXPIRED = re.compile("ExpiredToken|token has expired|TokenRefreshRequired|AuthenticationExpired")
_CLOCK = re.compile("RequestTimeTooSkewed")
_CREDENTIALS = re.compile(
    "InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken|AccessDenied|credential|lacked the necessary privileges"
    "|Status Code: 40[13]|AllAccessDisabled"
)
# of the Rust crate in `obstore` and `deltalake`, and of Spark's own client
_STORE = re.compile(r"Generic (?:S3|MicrosoftAzure|GCS) error|Service: (?:Amazon )?S3\b")
_REQUEST = re.compile(r"Error performing ([A-Z]+) https?://[^/\s]+/(\S+)")
_COLOURS = re.compile("\x1b\\[[0-9;]*m|↳")
# a signed URL, or Azure's SAS token, is a secret
_QUERY = re.compile(r"\?\S+")
_LONGEST = 300
# what the client did, in words of the operations of `Backend`
_VERBS = {"GET": "read", "HEAD": "look at", "PUT": "write", "POST": "write", "DELETE": "remove"}
# other operations (`open`, `make`) read and write
_PERMISSIONS: Mapping[Scheme, Mapping[str, str]] = {
    Scheme.S3: {
        "read": "s3:GetObject",
        "look at": "s3:GetObject",
        "list": "s3:ListBucket",
        "write": "s3:PutObject",
        "make": "s3:PutObject",
        "remove": "s3:DeleteObject",
    },
    Scheme.AZURE: {
        "read": "Storage Blob Data Reader",
        "look at": "Storage Blob Data Reader",
        "list": "Storage Blob Data Reader",
        "write": "Storage Blob Data Contributor",
        "make": "Storage Blob Data Contributor",
        "remove": "Storage Blob Data Contributor",
    },
    Scheme.GCS: {
        "read": "storage.objects.get",
        "look at": "storage.objects.get",
        "list": "storage.objects.list",
        "write": "storage.objects.create",
        "make": "storage.objects.create",
        "remove": "storage.objects.delete",
    },
}


def lacks_bucket(text: str) -> bool:
    """Return whether the client's text says that there is no such bucket, not only no such object."""
    return _NO_BUCKET.search(text) is not None


def lacks_upload(text: str) -> bool:
    """Return whether a client says that a multipart upload is not there: it was completed, and the answer was lost."""
    return "NoSuchUpload" in text


def refusal(verb: str, uri: str, kind: str, text: str) -> DemuxError:
    """Return the error for an answer.

    Args:
        verb: what was asked, such as `read`.
        uri: of what.
        kind: the name of the client's exception.
        text: the client's text.
    """
    if lacks_bucket(text):
        return StorageFailed(
            f"The store did not {verb} {uri}: the bucket does not exist.",
            "Make the bucket, or correct `root` in the settings.",
            path=uri,
        )
    if _EXPIRED.search(text):
        return StorageFailed(
            f"The store refused to {verb} {uri}: the credentials have expired.",
            "Renew the credentials (settings `store`, or the environment) and run the same command again; nothing is "
            "lost.",
            path=uri,
        )
    if _CLOCK.search(text):
        return StorageFailed(
            f"The store refused to {verb} {uri}: its clock and the clock of this machine differ.",
            "Set the clock of this machine and run the same command again; nothing is lost.",
            path=uri,
        )
    reason = _sentence(text, kind)
    if kind in _REFUSED or _CREDENTIALS.search(text):
        needed = _PERMISSIONS.get(locate(uri).scheme, {}).get(verb)
        permission = "their permissions" if needed is None else f"their permission `{needed}`"
        return StorageFailed(
            f"The store refused to {verb} {uri}: {reason}.",
            f"Check the credentials (settings `store`, or the environment) and {permission}; nothing is lost.",
            path=uri,
        )
    if kind in _PASSING or lacks_upload(text):
        return ServiceUnavailable(
            f"The store failed to {verb} {uri}: {reason}.", "Run the same command again; nothing is lost.", path=uri
        )
    return StorageFailed(
        f"The store could not {verb} {uri}: {reason}.",
        "Correct the path, or see the log file; nothing is lost.",
        path=uri,
    )


def refusal_in(text: str) -> DemuxError | None:
    """Return the error for what `deltalake`, DataFusion or Spark says of a store; None where it says nothing of one."""
    if _STORE.search(text) is None:
        return None
    request = _REQUEST.search(text)
    verb, uri = ("reach", "the root") if request is None else (_VERBS.get(request[1], "reach"), f"s3://{request[2]}")
    return refusal(verb, _QUERY.sub("", uri), "GenericError", text)


def _sentence(text: str, kind: str) -> str:
    """Return what the client says in one line, without what is secret and without its own place in a program."""
    words = " ".join(_COLOURS.sub(" ", text.partition("Debug source")[0]).split())
    return (_QUERY.sub("", words) or kind)[:_LONGEST].rstrip(". -")
