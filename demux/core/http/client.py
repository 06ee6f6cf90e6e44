"""One server over HTTP: requests, tried again where that helps, with answers or one of three failures."""

from __future__ import annotations

import ssl
import time
import weakref
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from tenacity import RetryCallState, Retrying, retry_if_exception_type
from tenacity.wait import wait_random_exponential
from urllib3.connection import HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from demux.core.http.failures import OTHER_SHAPE, HttpRejected, HttpUnusable, refusal, request_failure

T = TypeVar("T")

_AT_ONCE = 20
_HTML = "text/html"


@dataclass(frozen=True, slots=True)
class Tries:
    """How often and how long a call is tried.

    Attributes:
        max_wait_s: longest wait between two tries where the server does not ask for one.
        all_waits_s: longest time for all waits of a call; no try follows a wait that would be longer.
    """

    retries: int = 5
    max_wait_s: float = 30
    all_waits_s: float = 300
    timeout_s: float = 60


DEFAULT_TRIES = Tries()


class Certificates(NamedTuple):
    """The PEM files of TLS; None = those that Python trusts, no certificate of ours, its key in the same file."""

    authorities: str | None = None
    ours: str | None = None
    key: str | None = None


TRUSTED_BY_PYTHON = Certificates()


class HttpAnswer(NamedTuple):
    """An answer that is a success."""

    content: bytes
    headers: Mapping[str, str]


class HttpClient:
    """The server under one URL. Safe to share between threads; its connections end when it is not used any more.

    Args:
        authorize: returns the headers that say who we are; called for each request.
        secrets: texts that no failure may repeat.
    """

    def __init__(
        self,
        url: str,
        authorize: Callable[[], Mapping[str, str]],
        tries: Tries,
        *,
        certificates: Certificates = TRUSTED_BY_PYTHON,
        secrets: Collection[str] = (),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._url = url.rstrip("/")
        self._tries = tries
        self._certificates = certificates
        self._secrets = secrets
        self._sleep = sleep
        self._session = requests.Session()
        self._session.auth = _HeaderAuth(authorize)
        self._session.mount("http://", HTTPAdapter(pool_maxsize=_AT_ONCE))
        self._session.mount("https://", _TlsAdapter(pool_maxsize=_AT_ONCE))
        weakref.finalize(self, self._session.close)

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> HttpAnswer:
        """Return the answer to a request that is made once, to be called within `try_again`.

        Args:
            path: without the host, quoted.
            headers: beside those that say who we are.

        Raises:
            HttpUnusable: no usable answer.
            HttpRejected: it says no, redirects included.
            CertificateRefused: one side does not accept the other's certificate.
        """
        failure: Exception
        try:
            response = self._sent(method, path, query, content, headers)
            # urllib3 1.26 takes a body that was cut off for a whole one
            is_whole = method == "HEAD" or response.raw.tell() >= int(response.headers.get("Content-Length", 0))
        except (HttpRejected, HttpUnusable) as known:
            failure = known
        except OSError as error:
            failure = request_failure(error, self._tries.timeout_s)
        else:
            if not 200 <= response.status_code < 300:
                failure = refusal(response.status_code, str(response.reason), response.content, response.headers)
            elif not is_whole:
                failure = HttpUnusable("broke off its answer")
            elif response.headers.get("Content-Type", "").startswith(_HTML):
                failure = HttpUnusable("answered with a page for people")
            else:
                return HttpAnswer(response.content, response.headers)
        # raised out here so that no client's error, which may hold a header, hangs on it
        raise self._without_secrets(failure)

    def try_again(self, call: Callable[[], T]) -> T:
        """Return the result of the call, repeated after `HttpUnusable` and after an answer of another shape.

        Raises:
            HttpUnusable: no usable answer, however often it was asked.
            HttpRejected, CertificateRefused: as `send`, at once.
        """
        retrying = Retrying(
            stop=self._is_over,
            wait=self._wait,
            retry=retry_if_exception_type(HttpUnusable),
            sleep=self._sleep,
            reraise=True,
        )
        result: T = retrying(_of_right_shape, call)
        return result

    def _sent(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None,
        content: bytes | None,
        headers: Mapping[str, str] | None,
    ) -> requests.Response:
        authorities, ours, key = self._certificates
        return self._session.request(
            method,
            f"{self._url}/{path.lstrip('/')}",
            params={name: _query_value(value) for name, value in (query or {}).items()},
            data=content,
            headers=dict(headers or {}),
            timeout=self._tries.timeout_s,
            allow_redirects=False,
            # set for each request: a session's own gives way to REQUESTS_CA_BUNDLE
            verify=authorities or True,
            cert=(ours, key) if ours and key else ours,
        )

    def _wait(self, state: RetryCallState) -> float:
        """Return the seconds until the next try: what the server asks for, else growing and bounded."""
        error = state.outcome.exception() if state.outcome else None
        asked = error.after_s if isinstance(error, HttpUnusable) else None
        if asked is not None:
            return asked
        return wait_random_exponential(multiplier=0.5, max=self._tries.max_wait_s)(state)

    def _is_over(self, state: RetryCallState) -> bool:
        is_too_long = state.idle_for + state.upcoming_sleep > self._tries.all_waits_s
        return state.attempt_number > self._tries.retries or is_too_long

    def _without_secrets(self, failure: Exception) -> Exception:
        def hide(text: str) -> str:
            for secret in self._secrets:
                text = text.replace(secret, "***")
            return text

        match failure:
            case HttpRejected():
                return HttpRejected(failure.status, hide(failure.message), failure.code, failure.is_foreign)
            case HttpUnusable():
                return HttpUnusable(hide(failure.what), failure.after_s)
            case _:
                return failure


def _of_right_shape(call: Callable[[], T]) -> T:
    try:
        return call()
    except (AttributeError, LookupError, TypeError, ValueError):
        # what was read from the answer is not what it should be
        pass
    raise HttpUnusable(OTHER_SHAPE)


def _query_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class _HeaderAuth(AuthBase):
    """Says who we are; without an account it keeps requests from looking for one in ~/.netrc."""

    def __init__(self, authorize: Callable[[], Mapping[str, str]]) -> None:
        self._authorize = authorize

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers.update(self._authorize())
        return request


class _TlsConnection(HTTPSConnection):
    def send(self, data: Any) -> None:
        try:
            super().send(data)
        except ssl.SSLError:
            # a server that refuses our certificate closes the connection before we write; its alert is still unread
            if self.sock is not None:
                self.sock.recv(1)
            raise


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class _TlsAdapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": HTTPConnectionPool, "https": _TlsPool}
