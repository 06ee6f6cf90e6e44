"""One registry over HTTP: requests, tried again where that helps, with answers of the expected shape or our errors."""

from __future__ import annotations

import base64
import json
import re
import time
import weakref
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_random_exponential

from demux.core.errors import DemuxError, SettingsInvalid
from demux.core.registry.confluent.errors import not_expected, not_let_in, not_trusted, unavailable
from demux.core.registry.confluent.responses import (
    CertificateRefused,
    RegistryRejected,
    RegistryUnusable,
    failure,
    refusal,
)
from demux.core.registry.confluent.session import client_certificate, open_session
from demux.core.secrets import resolve
from demux.core.settings.settings import RegistrySettings

T = TypeVar("T")

_JSON = "application/vnd.schemaregistry.v1+json"


class RequestKind(Enum):
    """What a request does."""

    GET = "GET"
    POST = "POST"
    DELETE = "DELETE"


class Rest:
    """The registry under one URL. Safe to share between threads; its connections end when it is not used any more.

    Attributes:
        url: where it is, without secrets.
    """

    def __init__(
        self, settings: RegistrySettings, environ: Mapping[str, str], sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Prepare; resolves the secrets, reads the certificates, makes no request.

        Raises:
            SecretMissing: a secret is not there.
            SettingsInvalid: there is no URL, or a certificate file cannot be used.
        """
        if settings.url is None:
            raise SettingsInvalid("registry.url is not set.", "Set it.")
        self.url = settings.url
        self._settings = settings
        self._sleep = sleep
        password = resolve(settings.password, environ) if settings.password else ""
        token = resolve(settings.token, environ) if settings.token else ""
        if re.search(r"[^\x21-\x7e]", token):
            raise SettingsInvalid(
                f"The secret {settings.token} is no token: it has blanks or characters beyond ASCII.",
                "Put the token there, and nothing else.",
                reference=settings.token,
            )
        login = base64.b64encode(f"{settings.username}:{password}".encode()).decode()
        self._secrets = [secret for secret in (password, token, login if password else "") if secret]
        self._certificate = client_certificate(settings)
        self._session = open_session(f"Bearer {token}" if token else f"Basic {login}" if settings.username else None)
        self._session.headers["Accept"] = f"{_JSON}, application/json"
        weakref.finalize(self, self._session.close)

    def get(self, path: str, shape: TypeAdapter[T], query: Mapping[str, str] | None = None) -> T:
        """Return the answer to a GET.

        Raises:
            Rejected: the registry says no; only what `RegistryRefused` does not cover.
            RegistryRefused: wrong account, permission or certificate.
            RegistryUnavailable: no usable answer, however often it was asked.
        """
        return self.ask(RequestKind.GET, path, shape, query=query)

    def ask(
        self,
        method: RequestKind,
        path: str,
        shape: TypeAdapter[T],
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> T:
        """Return the answer to any request; raises as `get` does. Requests are such that twice is as good as once."""
        retrying = Retrying(
            stop=stop_after_attempt(self._settings.retries + 1),
            wait=self._wait,
            retry=retry_if_exception_type(RegistryUnusable),
            sleep=self._sleep,
            reraise=True,
        )
        error: DemuxError | RegistryRejected
        try:
            answer: T = retrying(self._once, method, path, shape, query, body)
            return answer
        except RegistryUnusable as unusable:
            error = unavailable(self.url, unusable)
        except CertificateRefused as distrusted:
            error = not_trusted(self.url, distrusted)
        except RegistryRejected as rejected:
            error = not_let_in(self._settings, rejected) if rejected.status in (401, 403) else rejected
        # raised out here so that no client's error, which may hold a header, hangs on it
        raise error

    def unexpected(self, rejected: RegistryRejected) -> DemuxError:
        """Return the error of a no that the caller has no other words for."""
        return not_expected(self.url, rejected)

    def _once(
        self,
        method: RequestKind,
        path: str,
        shape: TypeAdapter[T],
        query: Mapping[str, str] | None,
        body: Mapping[str, object] | None,
    ) -> T:
        answer: T | Exception
        try:
            answer = self._sent(method, path, shape, query, body)
        except (RegistryRejected, RegistryUnusable) as known:
            answer = known
        except Exception as error:
            answer = failure(error, self._settings.timeout_s)
        if isinstance(answer, Exception):
            raise self._clean(answer)
        return answer

    def _sent(
        self,
        method: RequestKind,
        path: str,
        shape: TypeAdapter[T],
        query: Mapping[str, str] | None,
        body: Mapping[str, object] | None,
    ) -> T:
        response = self._session.request(
            method.value,
            f"{self.url.rstrip('/')}/{path}",
            params=query,
            data=None if body is None else json.dumps(body),
            headers={} if body is None else {"Content-Type": _JSON},
            timeout=self._settings.timeout_s,
            allow_redirects=False,
            # set for each request: a session's own gives way to REQUESTS_CA_BUNDLE
            verify=self._settings.ca_file or True,
            cert=self._certificate,
        )
        if not 200 <= response.status_code < 300:
            raise refusal(response.status_code, response.headers, response.content)
        # urllib3 1.26 takes a body that was cut off for a whole one
        if response.raw.tell() < int(response.headers.get("Content-Length", 0)):
            raise RegistryUnusable("its answer was cut off")
        try:
            return shape.validate_python(json.loads(response.content))
        except ValidationError:
            raise RegistryUnusable("it answered with JSON of another shape") from None

    def _wait(self, state: RetryCallState) -> float:
        """Return the seconds until the next try: what the registry asks for, else growing, at most one time-out."""
        most = self._settings.timeout_s
        error = state.outcome.exception() if state.outcome else None
        asked = error.after_s if isinstance(error, RegistryUnusable) else None
        if asked is None:
            return wait_random_exponential(multiplier=0.5, max=most, min=min(0.1, most))(state)
        if asked > most:
            raise RegistryUnusable(f"{error}, and asks to wait {asked:.0f} s, more than registry.timeout_s")
        return asked

    def _clean(self, error: Exception) -> Exception:
        """Return the error without our secrets, should the registry or the client have repeated one."""
        match error:
            case RegistryRejected():
                return RegistryRejected(error.status, error.code, self._without_secrets(error.message))
            case RegistryUnusable():
                return RegistryUnusable(self._without_secrets(error.what), error.after_s)
            case _:
                return error

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text
