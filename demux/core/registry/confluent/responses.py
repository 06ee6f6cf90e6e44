"""What a Confluent-compatible registry answers: shapes of its JSON, and refusals and failures in our words. Pure."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterator, Mapping
from http.client import IncompleteRead
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

# statuses that say: later (429, and what proxies answer for a server that is away), or once more
_LATER = frozenset({408, 425, 429})
_MAX_SENTENCE = 300


class _JsonShape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class RegisteredVersion(_JsonShape):
    """A version of a subject."""

    subject: str
    version: int


class ReferenceTo(_JsonShape):
    """A schema that another one imports as `name`."""

    name: str
    subject: str
    version: int


class Stored(_JsonShape):
    """A schema as the registry keeps it; `id`, `subject` and `version` only where it was asked for by subject."""

    text: str = Field(alias="schema")
    type: str = Field(default="AVRO", alias="schemaType")
    references: tuple[ReferenceTo, ...] | None = Field(default=None, strict=False)
    id: int | None = None
    subject: str | None = None
    version: int | None = None


class SchemaLocation(_JsonShape):
    """Where a schema is that was looked up by its text."""

    id: int
    subject: str
    version: int


class CompatibilityVerdict(_JsonShape):
    """Whether a new version would be compatible, and why not."""

    is_compatible: bool
    messages: list[str] | None = None


class _CompatibilityLevel(_JsonShape):
    level: str = Field(alias="compatibilityLevel")


class _Numbered(_JsonShape):
    id: int


STORED = TypeAdapter(Stored)
FOUND = TypeAdapter(SchemaLocation)
VERDICT = TypeAdapter(CompatibilityVerdict)
LEVEL = TypeAdapter(_CompatibilityLevel)
REGISTERED = TypeAdapter(_Numbered)
PLACES = TypeAdapter(list[RegisteredVersion])
IDS = TypeAdapter(list[_Numbered])
NUMBERS = TypeAdapter(list[int])
NAMES = TypeAdapter(list[str])
ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)


class RegistryRejected(Exception):
    """The registry understood, and says no.

    Attributes:
        status: the HTTP status, 300 … 499.
        code: the registry's own code, such as 40403; None where the answer is not the registry's.
        message: its sentence.
    """

    def __init__(self, status: int, code: int | None, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message

    @property
    def is_unknown(self) -> bool:
        """Whether the registry itself says that there is no such id, subject or version."""
        return self.status == 404 and self.code is not None and 40400 <= self.code < 40500


class RegistryUnusable(Exception):
    """There was no answer, or none that can be used.

    Attributes:
        what: what came, without a full stop.
        after_s: how long the registry wants us to wait.
    """

    def __init__(self, what: str, after_s: float | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.after_s = after_s


class CertificateRefused(Exception):
    """One side does not accept the other's certificate.

    Attributes:
        ours: whether it is our certificate.
        reason: what the TLS library says, without a full stop.
    """

    def __init__(self, ours: bool, reason: str) -> None:
        super().__init__(reason)
        self.ours = ours
        self.reason = reason


def refusal(status: int, headers: Mapping[str, str], body: bytes) -> RegistryRejected | RegistryUnusable:
    """Return what an answer means that is no success."""
    code, message = _error_in(body)
    if status >= 500 or status in _LATER:
        kind = f" ({message})" if message else ""
        return RegistryUnusable(f"it answered {status}{kind}", _seconds(headers.get("Retry-After", "")))
    return RegistryRejected(status, code, message or f"HTTP status {status}")


def failure(error: Exception, timeout_s: float) -> RegistryUnusable | CertificateRefused:
    """Return what it means that a client failed with this error before there was a whole answer."""
    causes = [*_causes(error)]
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return CertificateRefused(False, cause.verify_message.rstrip("."))
        if isinstance(cause, ssl.SSLError) and re.search("alert.*(certificate|unknown ca|handshake)", str(cause), re.I):
            return CertificateRefused(True, clipped(str(cause)))
    if any(isinstance(cause, IncompleteRead) for cause in causes):
        return RegistryUnusable("its answer was cut off")
    name = type(error).__name__
    if name.endswith("Timeout"):
        return RegistryUnusable(f"there was no whole answer within {timeout_s:g} s")
    if isinstance(error, ValueError):
        return RegistryUnusable("it answered with something that is not JSON")
    # the first cause says it; those around it repeat it with the names of their classes
    return RegistryUnusable(next((text for cause in reversed(causes) if (text := clipped(str(cause)))), name))


def clipped(text: str) -> str:
    """Return the text on one line, at most 300 characters, without a full stop."""
    line = " ".join(text.split())
    return (line if len(line) <= _MAX_SENTENCE else line[: _MAX_SENTENCE - 1] + "…").rstrip(".")


def _error_in(body: bytes) -> tuple[int | None, str]:
    try:
        answer = json.loads(body)
    except ValueError:
        return None, ""
    if not isinstance(answer, dict):
        return None, ""
    code, message = answer.get("error_code"), answer.get("message")
    return (code if isinstance(code, int) else None), clipped(message) if isinstance(message, str) else ""


def _seconds(text: str) -> float | None:
    # the other form, a date, is rare, and needs a clock that agrees with the server's
    return float(text) if re.fullmatch(r"[0-9]{1,9}", text.strip()) else None


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        # urllib3 hands some on as an argument only
        inside = next((argument for argument in cause.args if isinstance(argument, BaseException)), None)
        cause = inside or cause.__cause__ or cause.__context__
