"""What a store answers, in our words."""

from __future__ import annotations

import pytest

from demux.core.error_mapping import as_demux_error
from demux.core.errors import ErrorKind
from demux.core.storage.refusals import refusal, refusal_in


@pytest.mark.parametrize(
    ("kind", "text", "condition", "passes", "words"),
    [
        ("GenericError", "503 SlowDown\n\nDebug source: …", "SERVICE_UNAVAILABLE", ErrorKind.TRANSIENT, "503 SlowDown"),
        ("GenericError", "… NoSuchBucket …", "STORAGE_FAILED", ErrorKind.TERMINAL, "the bucket does not exist"),
        ("PermissionDeniedError", "403", "STORAGE_FAILED", ErrorKind.TERMINAL, "Check the credentials"),
        (
            "PermissionDeniedError",
            "403 ExpiredToken",
            "STORAGE_FAILED",
            ErrorKind.TERMINAL,
            "the credentials have expired",
        ),
        ("PermissionDeniedError", "403 RequestTimeTooSkewed", "STORAGE_FAILED", ErrorKind.TERMINAL, "Set the clock"),
        ("InvalidPathError", "no path", "STORAGE_FAILED", ErrorKind.TERMINAL, "no path"),
    ],
)
def test_a_refusal_says_what_was_asked_and_what_to_do(
    kind: str, text: str, condition: str, passes: ErrorKind, words: str
) -> None:
    error = refusal("write", "s3://bucket/key", kind, text)
    assert (error.condition, error.kind) == (condition, passes)
    assert "write s3://bucket/key: " in error.message
    assert words in f"{error.message} {error.remedy}"


def test_a_signed_url_is_not_repeated() -> None:
    said = "error sending request for https://account.blob/x?sig=hidden&se=1 (timed out)"
    assert "hidden" not in str(refusal("read", "abfss://c/x", "GenericError", said))


@pytest.mark.parametrize(
    ("uri", "verb", "permission"),
    [
        ("s3://bucket/x", "write", "`s3:PutObject`"),
        ("s3a://bucket/x", "list", "`s3:ListBucket`"),
        ("abfss://c@account.host/x", "remove", "`Storage Blob Data Contributor`"),
        ("gs://bucket/x", "read", "`storage.objects.get`"),
        ("s3://bucket/x", "open", "their permissions"),
    ],
)
def test_a_refusal_names_the_permission_in_the_words_of_the_cloud(uri: str, verb: str, permission: str) -> None:
    assert permission in refusal(verb, uri, "PermissionDeniedError", "403").remedy


def test_all_that_a_client_says_is_in_one_line_without_colours_and_its_own_source() -> None:
    said = "Generic S3 error\n  \x1b[31m↳\x1b[0m Error performing PUT\n  ↳ 503 SlowDown\n\nDebug source:\nGeneric {"
    error = refusal("write", "s3://bucket/key", "GenericError", said)
    assert error.message == (
        "The store failed to write s3://bucket/key: Generic S3 error Error performing PUT 503 SlowDown."
    )


@pytest.mark.parametrize(
    ("text", "cause", "kind"),
    [
        (
            "Generic S3 error\n ↳ Error performing PUT http://host:1/bucket/t/_delta_log/3.json in 7ms - HTTP error",
            "The store failed to write s3://bucket/t/_delta_log/3.json: ",
            ErrorKind.TRANSIENT,
        ),
        (
            "External error: Parquet error: Generic S3 error: Error performing GET http://h/b/x.parquet in 1s: 403 "
            "Forbidden: <Error><Code>AccessDenied</Code></Error>",
            "The store refused to read s3://b/x.parquet: ",
            ErrorKind.TERMINAL,
        ),
        (
            "java.nio.file.AccessDeniedException: s3a://b/x: getFileStatus on s3a://b/x: S3Exception: (Service: S3, "
            "Status Code: 403, Request ID: 1):null",
            "The store refused to reach the root: ",
            ErrorKind.TERMINAL,
        ),
        (
            "AWSServiceIOException: S3Exception: Please reduce your request rate. (Service: Amazon S3; Status Code: "
            "503; Error Code: SlowDown)",
            "The store failed to reach the root: ",
            ErrorKind.TRANSIENT,
        ),
    ],
)
def test_what_other_clients_say_of_a_store_is_said_in_the_same_words(text: str, cause: str, kind: ErrorKind) -> None:
    error = as_demux_error(OSError(text))
    assert error.message.startswith(cause)
    assert error.kind is kind


def test_what_says_nothing_of_a_store_is_no_refusal() -> None:
    assert refusal_in("OSError: No space left on device") is None
