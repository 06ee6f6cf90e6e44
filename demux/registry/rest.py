"""One registry over HTTP: requests, tried again where that helps, with answers of the expected shape or our errors."""

from __future__ import annotations

import base64
import re
import time
import weakref
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeVar

from confluent_kafka.schema_registry import SchemaRegistryClient
from pydantic import TypeAdapter, ValidationError
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_random_exponential

from demux.errors import DemuxError, SettingsInvalid
from demux.registry.answers import Distrusted, Rejected, Unusable, clipped, failure, refusal
from demux.registry.sentences import not_expected, not_let_in, not_trusted, unavailable
from demux.secrets import resolve
from demux.settings import RegistrySettings

T = TypeVar("T")


class Method(Enum):
    """What a request does."""

    GET = "GET"
    POST = "POST"
    DELETE = "DELETE"


class Rest:
    """The registry under one URL. Safe to share between threads; its connections end when nobody has it any more.

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
        pair = f"{settings.username}:{password}"
        encoded = base64.b64encode(pair.encode()).decode()
        self._secrets = [secret for secret in (password, token, encoded if password else "") if secret]
        client = _client(settings, pair if settings.username else None, token)
        # the client's own methods hide `Retry-After` and the reasons of an incompatibility, keep wrong answers for
        # ever and know no way from a GUID to an id; what it is good at, connections and accounts, is below them
        self._rest: Any = client._rest_client
        self._rest.session.event_hooks["response"].append(_refuse)
        weakref.finalize(self, self._rest.session.close)

    def get(self, path: str, shape: TypeAdapter[T], query: Mapping[str, str] | None = None) -> T:
        """Return the answer to a GET.

        Raises:
            Rejected: the registry says no; only what `RegistryRefused` does not cover.
            RegistryRefused: wrong account, permission or certificate.
            RegistryUnavailable: no usable answer, however often it was asked.
        """
        return self.ask(Method.GET, path, shape, query=query)

    def ask(
        self,
        method: Method,
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
            retry=retry_if_exception_type(Unusable),
            sleep=self._sleep,
            reraise=True,
        )
        error: DemuxError | Rejected
        try:
            answer: T = retrying(self._once, method, path, shape, query, body)
            return answer
        except Unusable as unusable:
            error = unavailable(self.url, unusable)
        except Distrusted as distrusted:
            error = not_trusted(self.url, distrusted)
        except Rejected as rejected:
            error = not_let_in(self._settings, rejected) if rejected.status in (401, 403) else rejected
        # raised out here so that no client's error, which may hold a header, hangs on it
        raise error

    def unexpected(self, rejected: Rejected) -> DemuxError:
        """Return the error of a no that the caller has no other words for."""
        return not_expected(self.url, rejected)

    def _once(
        self,
        method: Method,
        path: str,
        shape: TypeAdapter[T],
        query: Mapping[str, str] | None,
        body: Mapping[str, object] | None,
    ) -> T:
        answer: T | Exception
        try:
            answer = self._sent(method, path, shape, query, body)
        except (Rejected, Unusable) as known:
            answer = known
        except Exception as error:
            answer = failure(error, self._settings.timeout_s)
        if isinstance(answer, Exception):
            raise self._clean(answer)
        return answer

    def _sent(
        self,
        method: Method,
        path: str,
        shape: TypeAdapter[T],
        query: Mapping[str, str] | None,
        body: Mapping[str, object] | None,
    ) -> T:
        answer = self._rest.send_request(path, method.value, body=body, query=query)
        try:
            return shape.validate_python(answer)
        except ValidationError:
            raise Unusable("it answered with JSON of another shape") from None

    def _wait(self, state: RetryCallState) -> float:
        """Return the seconds until the next try: what the registry asks for, else growing, at most one time-out."""
        most = self._settings.timeout_s
        error = state.outcome.exception() if state.outcome else None
        asked = error.after_s if isinstance(error, Unusable) else None
        if asked is None:
            return wait_random_exponential(multiplier=0.5, max=most, min=min(0.1, most))(state)
        if asked > most:
            raise Unusable(f"{error}, and asks to wait {asked:.0f} s, more than registry.timeout_s")
        return asked

    def _clean(self, error: Exception) -> Exception:
        """Return the error without our secrets, should the registry or the client have repeated one."""
        match error:
            case Rejected():
                return Rejected(error.status, error.code, self._without_secrets(error.message))
            case Unusable():
                return Unusable(self._without_secrets(error.what), error.after_s)
            case _:
                return error

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def _refuse(response: Any) -> None:
    """Turn an answer that is no success into an exception, while its headers are at hand."""
    if not response.is_success:
        raise refusal(response.status_code, response.headers, response.read())


def _client(settings: RegistrySettings, pair: str | None, token: str) -> SchemaRegistryClient:
    options: dict[str, object] = {
        "url": settings.url,
        "timeout": settings.timeout_s,
        # its own tries know no `Retry-After`
        "max.retries": 0,
    }
    if token:
        options["bearer.auth.credentials.source"] = "CUSTOM"
        options["bearer.auth.custom.provider.function"] = _bearer
        options["bearer.auth.custom.provider.config"] = {"token": token}
    elif pair is not None:
        options["basic.auth.user.info"] = pair
    files = {
        "ssl.ca.location": settings.ca_file,
        "ssl.certificate.location": settings.certificate_file,
        "ssl.key.location": settings.key_file,
    }
    options |= {name: path for name, path in files.items() if path is not None}
    try:
        return SchemaRegistryClient(options)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not PEM"
    named = ", ".join(path for path in files.values() if path is not None)
    raise SettingsInvalid(
        f"The registry's certificate files cannot be used ({named or 'none'}): {clipped(str(reason))}.",
        "Correct registry.ca_file, registry.certificate_file and registry.key_file.",
        files=named,
    )


def _bearer(config: Mapping[str, str]) -> dict[str, str]:
    return {"bearer.auth.token": config["token"], "bearer.auth.logical.cluster": ""}
