"""What a server says over HTTP that is no success, and what it means."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.http.failures import HttpRejected, HttpUnusable, one_line, refusal, seconds_to_wait


@given(st.integers(300, 599), st.text(), st.binary(), st.none() | st.integers(0, 10**6))
def test_an_answer_that_is_no_success_always_has_one_line(
    status: int, phrase: str, content: bytes, after_s: int | None
) -> None:
    failure = refusal(status, phrase, content, {} if after_s is None else {"Retry-After": str(after_s)})
    assert "\n" not in str(failure)
    if isinstance(failure, HttpUnusable):
        assert failure.after_s == after_s
    else:
        assert failure.status == status


@pytest.mark.parametrize(
    ("status", "body", "meant"),
    [
        (400, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no job"}, (404, "no job")),
        (400, {"error_code": "RESOURCE_ALREADY_EXISTS", "message": "there"}, (409, "there")),
        (403, {"error_code": "PERMISSION_DENIED", "message": "no"}, (403, "no")),
        (404, {"detail": "no group", "status": "404"}, (404, "no group")),
        (400, {"error": "invalid_request", "error_description": "bad scope"}, (400, "bad scope")),
        (413, {}, (413, "status 413 Said")),
        (501, {}, (501, "status 501 Said")),
    ],
)
def test_a_refusal_has_the_status_that_its_code_means(
    status: int, body: dict[str, str], meant: tuple[int, str]
) -> None:
    failure = refusal(status, "Said", json.dumps(body).encode())
    assert isinstance(failure, HttpRejected)
    assert (failure.status, failure.message) == meant


@pytest.mark.parametrize("code", ["REQUEST_LIMIT_EXCEEDED", "RESOURCE_EXHAUSTED", "ABORTED", "UNKNOWN", "DATA_LOSS"])
def test_a_code_of_a_failure_that_passes_counts_more_than_its_status(code: str) -> None:
    body = json.dumps({"error_code": code, "message": "later"}).encode()
    assert isinstance(refusal(400, "Bad Request", body), HttpUnusable)


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, None),
        ({"Retry-After": "90"}, 90.0),
        ({"Retry-After": " 0 "}, 0.0),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "Tue, 14 Nov 2023 22:14:50 GMT", "Date": "Tue, 14 Nov 2023 22:13:20 GMT"}, 90.0),
        ({"Retry-After": "Tue, 14 Nov 2023 22:13:20 GMT", "Date": "Tue, 14 Nov 2023 22:14:50 GMT"}, 0.0),
        ({"Retry-After": "Tue, 14 Nov 2023 22:14:50 GMT"}, None),
        ({"Retry-After": "Tue, 14 Nov 2023 22:14:50", "Date": "Tue, 14 Nov 2023 22:13:20 GMT"}, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(headers: Mapping[str, str], wait_s: float | None) -> None:
    assert seconds_to_wait(headers) == wait_s


def test_a_reason_is_one_line_without_what_the_client_adds() -> None:
    text = "Invalid access token. Config: host=https://x, token=***. Env: DATABRICKS_TOKEN\nmore"
    assert one_line(text) == "Invalid access token"
    assert one_line("a.\n b") == "a. b"
    assert len(one_line("x" * 1000)) == 300
    assert one_line("a\x1b[31mb") == "a\\u001b[31mb"
