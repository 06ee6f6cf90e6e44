"""One workspace over HTTP: the login by databricks-sdk; calls with answers or our errors."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import requests
from databricks.sdk.clock import Clock
from databricks.sdk.config import Config
from databricks.sdk.errors.base import DatabricksError

from demux.core.errors import DemuxError
from demux.core.http.client import DEFAULT_TRIES, HttpAnswer, HttpClient, Tries
from demux.core.http.failures import CertificateRefused, HttpRejected, HttpUnusable, one_line, parse_json
from demux.core.secrets import resolve
from demux.core.settings.databricks.access import LoginSettings
from install_workflow.databricks.api.errors import certificate_error, login_error, refusal_error, unavailable_error

T = TypeVar("T")

# how long the SDK may ask the host about itself when the login is made; it can do without an answer
_FIRST_S = 10


class WorkspaceConnection:
    """A workspace and our login there."""

    def __init__(
        self,
        login: Mapping[str, Any] | None = None,
        tries: Tries = DEFAULT_TRIES,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Find the login; asks the host once where it logs in.

        Args:
            login: arguments of databricks-sdk's `Config`, such as host, token or profile; what is not given comes from
                the environment and ~/.databrickscfg.

        Raises:
            WorkspaceRefused: there is no login.
        """
        options = {"http_timeout_seconds": tries.timeout_s, "retry_timeout_seconds": _FIRST_S, **(login or {})}
        try:
            self._config = Config(clock=_OneTry(), **options)
        except (AttributeError, LookupError, TypeError, ValueError, OSError) as error:
            # the SDK breaks on what a host says of itself in JSON of another shape
            reason = one_line(str(error))
        else:
            self.host = str(self._config.host)
            self._client = HttpClient(self.host, self._authorize, tries, sleep=sleep)
            return
        # raised out here so that the SDK's error, which may hold a header, does not hang on it
        raise login_error(reason)

    def ask(
        self,
        method: str,
        path: str,
        doing: str,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:
        """Return the JSON object that is answered; raises as `retry` does, and is tried again like it.

        Args:
            path: without the host.
            doing: what it is for, continuing after "to".
        """
        return self.retry(doing, lambda: self.once(method, path, query, body))

    def read(
        self, path: str, doing: str, of: Callable[[dict[str, Any]], T], query: Mapping[str, object] | None = None
    ) -> T:
        """Return what `of` makes of the JSON object that is answered to a GET; the other arguments as of `ask`.

        Where `of` breaks, the answer is not what it should be, and the call is tried again.
        """
        return self.retry(doing, lambda: of(self.once("GET", path, query)))

    def once(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:
        """Return the JSON object that is answered; tried once, to be called within `retry`."""
        data = None if body is None else json.dumps(body).encode()
        value = parse_json(self.answer(method, path, query, data, "application/json").content)
        if not isinstance(value, dict):
            raise TypeError("no object")
        return value

    def answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        data: bytes | None = None,
        content_type: str = "application/octet-stream",
    ) -> HttpAnswer:
        """Return the answer, whatever its status; one try, to be called within `retry`.

        Args:
            path: without the host; it is quoted here.
        """
        workspace = getattr(self._config, "workspace_id", None)
        headers = {
            "User-Agent": self._config.user_agent,
            **({"X-Databricks-Workspace-Id": workspace} if workspace else {}),
            **({} if data is None else {"Content-Type": content_type}),
        }
        try:
            return self._client.send(method, quote(path), query=query, content=data, headers=headers)
        except HttpRejected as rejected:
            # an API says in JSON what is not there: any other 404, and a redirect, comes from something in between
            if rejected.status >= 400 and not (rejected.status == 404 and rejected.is_foreign):
                raise
            failure = HttpUnusable(f"answered with {rejected.message}")
        raise failure

    def retry(self, doing: str, call: Callable[[], T]) -> T:
        """Return the result of the call; repeats it after transient failures.

        Raises:
            Denied: it is not permitted.
            Missing: something that it needs is not there.
            SettingsInvalid: the settings name what the workspace has not.
            WorkspaceRefused: wrong login, or any other refusal.
            WorkspaceUnavailable: no usable answer, however often it was asked.
        """
        failure: DemuxError
        try:
            return self._client.try_again(call)
        except HttpUnusable as unusable:
            failure = unavailable_error(self.host, doing, unusable)
        except HttpRejected as rejected:
            failure = refusal_error(self.host, doing, rejected)
        except CertificateRefused as distrusted:
            failure = certificate_error(self.host, distrusted)
        raise failure

    def _authorize(self) -> Mapping[str, str]:
        try:
            return self._config.authenticate()
        except requests.RequestException:
            # no answer of the server that gives out tokens, or one that is no JSON
            raise
        except (ValueError, DatabricksError) as error:
            # such as a profile that no longer works
            failure = HttpRejected(401, one_line(str(error)) or "no reason given")
        raise failure


class _OneTry(Clock):
    """Time that goes by only while the SDK waits to try again, and then it is too late to."""

    def __init__(self) -> None:
        self._now = 0.0

    def time(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds + _FIRST_S


_OAUTH = "oauth-m2m"


def login_of(settings: LoginSettings, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the login of the settings; what they leave out the SDK finds by itself.

    A service principal with a secret logs in by OAuth, whatever else the environment has.

    Args:
        environ: where `secret:env/NAME` is looked up.

    Raises:
        SecretMissing: as `resolve`.
    """
    secret = None if settings.client_secret is None else resolve(settings.client_secret, environ)
    given = {
        "host": settings.host,
        "profile": settings.profile,
        "auth_type": settings.auth_type or (None if secret is None else _OAUTH),
        "client_id": settings.client_id,
        "client_secret": secret,
    }
    return {name: value for name, value in given.items() if value is not None}
