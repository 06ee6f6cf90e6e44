"""The meaning of an HTTP answer that is no success, and of a failed request. Pure."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from http.client import IncompleteRead

from demux.core.text import printable

OTHER_SHAPE = "answered with JSON of another shape"
_MAX_SENTENCE = 300
# what databricks-sdk adds to a refusal about us, over many words
_ABOUT_US = re.compile(r"\. (Config|Env): .*", re.DOTALL)
# in the order in which the APIs' ways to say a reason are looked for
_REASONS = ("message", "error_description", "error", "detail")
# codes of a workspace that say more than the status that they come with, and the status that they mean
_STATUS_OF_CODE: Mapping[object, int] = {
    "RESOURCE_DOES_NOT_EXIST": 404,
    "ALREADY_EXISTS": 409,
    "RESOURCE_ALREADY_EXISTS": 409,
    "REQUEST_LIMIT_EXCEEDED": 429,
    "RESOURCE_EXHAUSTED": 429,
    "ABORTED": 503,
    "UNKNOWN": 500,
    "DATA_LOSS": 500,
}
_PASSING = frozenset({408, 425, 429, 499})
_NOT_IMPLEMENTED = 501


class HttpUnusable(Exception):
    """There was no answer, or none that can be used; a later one may be.

    Attributes:
        what: what came instead, continuing after "it".
        after_s: when to ask again, if the server says so.
    """

    def __init__(self, what: str, after_s: float | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.after_s = after_s


class HttpRejected(Exception):
    """An answer that says no.

    Attributes:
        status: the HTTP status, 300 or more.
        code: the server's own code, such as 40403 or `INVALID_STATE`; None where it has none.
        is_foreign: whether the body is something other than a JSON object: something in between may have sent it.
    """

    def __init__(self, status: int, message: str, code: object = None, is_foreign: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.is_foreign = is_foreign


class CertificateRefused(Exception):
    """One side does not accept the other's certificate.

    Attributes:
        reason: what the TLS library says, without a full stop.
    """

    def __init__(self, ours: bool, reason: str) -> None:
        super().__init__(reason)
        self.ours = ours
        self.reason = reason


def refusal(
    status: int, phrase: str, content: bytes, headers: Mapping[str, str] | None = None
) -> HttpUnusable | HttpRejected:
    """Return the failure of an answer that is no success, whatever its body is."""
    body = _object(content)
    code = body.get("error_code")
    meant = _STATUS_OF_CODE.get(code, status) if isinstance(code, str) else status
    reasons = (one_line(str(body[name])) for name in _REASONS if body.get(name))
    reason = next(reasons, "")
    if meant in _PASSING or (meant >= 500 and meant != _NOT_IMPLEMENTED):
        return HttpUnusable(f"answered {status}{f' ({reason})' if reason else ''}", seconds_to_wait(headers or {}))
    is_foreign = bool(content) and not body
    return HttpRejected(meant, reason or f"status {status} {one_line(phrase)}".rstrip(), code, is_foreign)


def request_failure(error: BaseException, timeout_s: float) -> HttpUnusable | CertificateRefused:
    """Return the failure of a request that ended with this error before there was a whole answer."""
    causes = [*_causes(error)]
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return CertificateRefused(False, cause.verify_message.rstrip("."))
        if isinstance(cause, ssl.SSLError) and re.search("alert.*(certificate|unknown ca|handshake)", str(cause), re.I):
            return CertificateRefused(True, one_line(str(cause)))
    if any(isinstance(cause, IncompleteRead) for cause in causes):
        return HttpUnusable("broke off its answer")
    name = type(error).__name__
    if name.endswith("Timeout"):
        return HttpUnusable(f"gave no whole answer within {timeout_s:g} s")
    # the first cause says it; those around it repeat it with the names of their classes
    return HttpUnusable(
        f"was not reached: {next((text for cause in reversed(causes) if (text := one_line(str(cause)))), name)}"
    )


def seconds_to_wait(headers: Mapping[str, str]) -> float | None:
    """Return how long `Retry-After` asks to wait, as seconds or as a date after `Date`; None where it does not."""
    asked = headers.get("Retry-After", "").strip()
    if asked.isascii() and asked.isdigit():
        return float(asked)
    try:
        wait = parsedate_to_datetime(asked) - parsedate_to_datetime(headers.get("Date", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, wait.total_seconds())


def parse_json(content: bytes) -> object:
    """Return the value of a body.

    Raises:
        HttpUnusable: it is no JSON.
    """
    if not content:
        raise HttpUnusable("answered with nothing")
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise HttpUnusable("answered with something that is not JSON") from None


def one_line(text: str) -> str:
    """Return a reason on one line, at most 300 characters, without what databricks-sdk adds and without a full stop."""
    line = printable(" ".join(_ABOUT_US.sub("", text).split()))
    return (line if len(line) <= _MAX_SENTENCE else f"{line[: _MAX_SENTENCE - 1]}…").rstrip(". ")


def _object(content: bytes) -> dict[str, object]:
    try:
        body = parse_json(content)
    except HttpUnusable:
        return {}
    return body if isinstance(body, dict) else {}


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        # urllib3 hands some on as an argument only
        inside = next((argument for argument in cause.args if isinstance(argument, BaseException)), None)
        cause = inside or cause.__cause__ or cause.__context__
