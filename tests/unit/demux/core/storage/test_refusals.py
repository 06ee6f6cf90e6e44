"""What a store answers, in our words."""

from __future__ import annotations

import pytest

from demux.core.errors import ErrorKind
from demux.core.storage.refusals import refusal


@pytest.mark.parametrize(
    ("kind", "text", "condition", "passes", "words"),
    [
        ("GenericError", "503 SlowDown\n\nDebug source: …", "TASK_INTERRUPTED", ErrorKind.TRANSIENT, "503 SlowDown"),
        ("GenericError", "… NoSuchBucket …", "STORAGE_FAILED", ErrorKind.TERMINAL, "the bucket does not exist"),
        ("PermissionDeniedError", "403", "STORAGE_FAILED", ErrorKind.TERMINAL, "Check the credentials"),
        ("GenericError", "ExpiredToken", "STORAGE_FAILED", ErrorKind.TERMINAL, "Check the credentials"),
        ("InvalidPathError", "no path", "STORAGE_FAILED", ErrorKind.TERMINAL, "no path"),
    ],
)
def test_a_refusal_says_what_was_asked_and_what_to_do(
    kind: str, text: str, condition: str, passes: ErrorKind, words: str
) -> None:
    error = refusal("write", "s3://bucket/key", kind, text)
    assert (error.condition, error.kind) == (condition, passes)
    assert "write s3://bucket/key: " in error.cause
    assert words in f"{error.cause} {error.remedy}"


def test_a_signed_url_is_not_repeated() -> None:
    said = "error sending request for https://account.blob/x?sig=hidden&se=1 (timed out)"
    assert "hidden" not in str(refusal("read", "abfss://c/x", "GenericError", said))
