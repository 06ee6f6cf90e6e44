"""One workspace over HTTP, by databricks-sdk: calls, tried again where that helps, with answers or our errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

import requests
from databricks.sdk import WorkspaceClient
from databricks.sdk.clock import Clock
from databricks.sdk.config import Config
from databricks.sdk.errors.base import DatabricksError
from databricks.sdk.errors.platform import PermissionDenied
from tenacity import RetryCallState, Retrying, retry_if_exception_type
from tenacity.wait import wait_random_exponential

from demux.core.errors import DemuxError
from install_workflow.databricks.api.errors import (
    OTHER_SHAPE,
    ApiRejected,
    ApiUnusable,
    failure_of,
    json_object,
    no_login,
    one_line,
    refused,
    seconds_to_wait,
    unavailable,
)

T = TypeVar("T")

_DAY_S = 86_400
_HTML = "text/html"


@dataclass(frozen=True, slots=True)
class Tries:
    """How often and how long a call is tried.

    Attributes:
        retries: tries after the first.
        max_wait_s: longest wait between two tries where the server does not ask for one.
        all_waits_s: longest time for all waits of a call; no try follows a wait that would be longer.
        timeout_s: longest wait for an answer.
        first_s: how long the client may ask the host about itself when it is made; it can do without an answer.
    """

    retries: int = 5
    max_wait_s: float = 30
    all_waits_s: float = 300
    timeout_s: float = 60
    first_s: int = 10


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """An answer that is a success.

    Attributes:
        content: the body.
        size: what `Content-Length` says, in bytes; of a HEAD, of what is there.
    """

    content: bytes
    size: int | None


class WorkspaceConnection:
    """A workspace and our login there.

    Attributes:
        host: its URL.
        client: the client of databricks-sdk; it tries each call once.
    """

    def __init__(
        self,
        login: Mapping[str, Any] | None = None,
        tries: Tries = Tries(),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Find the login; asks the host once where it logs in.

        Args:
            login: arguments of databricks-sdk's `Config`, such as host, token or profile; what is not given comes from
                the environment and ~/.databrickscfg.
            tries: how often a call is tried.
            sleep: waits.

        Raises:
            WorkspaceRefused: there is no login.
        """
        options: dict[str, Any] = {
            "http_timeout_seconds": tries.timeout_s,
            "retry_timeout_seconds": tries.first_s,
            **(login or {}),
        }
        try:
            config = Config(clock=_OneTry(), **options)
            self.client = WorkspaceClient(config=config)
        except (AttributeError, LookupError, TypeError, ValueError, OSError, DatabricksError) as error:
            # the client breaks on what a host says of itself in JSON of another shape
            reason = one_line(str(error))
        else:
            self.host = str(config.host)
            self._tries = tries
            self._sleep = sleep
            return
        # raised out here so that the client's error, which may hold a header, does not hang on it
        raise no_login(reason)

    def ask(
        self,
        method: str,
        path: str,
        doing: str,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:
        """Return the JSON object that is answered; raises as `tried` does, and is tried again like it.

        Args:
            method: such as `GET`.
            path: without the host.
            doing: what it is for, continuing after "to".
            query: behind the path.
            body: the JSON object that is sent.
        """
        return self.tried(doing, lambda: self.once(method, path, query, body))

    def read(
        self, path: str, doing: str, of: Callable[[dict[str, Any]], T], query: Mapping[str, object] | None = None
    ) -> T:
        """Return what `of` makes of the JSON object that is answered to a GET; the other arguments as of `ask`.

        Where `of` breaks, the answer is not what it should be, and the call is tried again.
        """
        return self.tried(doing, lambda: of(self.once("GET", path, query)))

    def once(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:
        """Return the JSON object that is answered; tried once, to be called within `tried`."""
        return json_object(self.answer(method, path, query, body).content)

    def answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        data: bytes | None = None,
    ) -> ApiResponse:
        """Return what is answered, whatever it is; tried once, to be called within `tried`.

        Args:
            method: such as `GET`.
            path: without the host; it is quoted here.
            query: behind the path.
            body: the JSON object that is sent.
            data: the bytes that are sent in place of it.
        """
        workspace = getattr(self.client.config, "workspace_id", None)
        headers = {"X-Databricks-Workspace-Id": workspace} if workspace else {}
        if data is not None:
            headers["Content-Type"] = "application/octet-stream"
        answer: dict[str, Any] = self.client.api_client.do(
            method,
            quote(path),
            query=dict(query or {}),
            headers=headers,
            body=None if body is None else dict(body),
            data=data,
            raw=True,
            auth=self._authorized,
            response_headers=["content-type", "content-length"],
        )
        with answer["contents"] as contents:
            content = contents.read()
        if str(answer["content-type"]).startswith(_HTML):
            raise ApiUnusable("answered with a page for people")
        size = answer["content-length"]
        return ApiResponse(content, None if size is None else int(size))

    def tried(self, doing: str, call: Callable[[], T]) -> T:
        """Return what the call returns, tried again after failures that may pass.

        Raises:
            Denied: it is not permitted.
            Missing: something that it needs is not there.
            SettingsInvalid: the settings name what the workspace has not.
            WorkspaceRefused: wrong login, or any other refusal.
            WorkspaceUnavailable: no usable answer, however often it was asked.
        """
        retrying = Retrying(
            stop=self._is_over,
            wait=self._wait,
            retry=retry_if_exception_type(ApiUnusable),
            sleep=self._sleep,
            reraise=True,
        )
        failure: DemuxError
        try:
            result: T = retrying(_translated, call)
            return result
        except ApiUnusable as unusable:
            failure = unavailable(self.host, doing, unusable)
        except ApiRejected as rejected:
            failure = refused(self.host, doing, rejected)
        raise failure

    def _wait(self, state: RetryCallState) -> float:
        """Return the seconds until the next try: what the server asks for, else growing and bounded."""
        error = state.outcome.exception() if state.outcome else None
        asked = error.after_s if isinstance(error, ApiUnusable) else None
        if asked is not None:
            return asked
        return wait_random_exponential(multiplier=0.5, max=self._tries.max_wait_s)(state)

    def _is_over(self, state: RetryCallState) -> bool:
        is_too_long = state.idle_for + state.upcoming_sleep > self._tries.all_waits_s
        return state.attempt_number > self._tries.retries or is_too_long

    def _authorized(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        try:
            request.headers.update(self.client.config.authenticate())
        except requests.RequestException:
            # no answer of the server that gives out tokens, or one that is no JSON
            raise
        except ValueError as error:
            # such as a profile that no longer works
            failure = ApiRejected(401, one_line(str(error)))
        else:
            # before the client reads the answer: it has no words for many bodies, and breaks on some
            request.register_hook("response", _require_success)
            return request
        raise failure


class _OneTry(Clock):
    """Time that goes by only while the client waits to try again, and then it is too late to."""

    def __init__(self) -> None:
        self._now = 0.0

    def time(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        # the client would repeat a create whose answer was lost: two jobs
        self._now += seconds + _DAY_S


def _require_success(response: requests.Response, **_: object) -> None:
    if response.status_code >= 400:
        after_s = seconds_to_wait(response.headers)
        raise failure_of(response.status_code, str(response.reason), response.content, after_s)


def _translated(call: Callable[[], T]) -> T:
    failure: Exception
    try:
        return call()
    except (DatabricksError, requests.RequestException, TimeoutError) as error:
        # the client says "timed out" when it does not try again
        cause = error.__cause__ if isinstance(error, TimeoutError) else None
        failure = _failure(cause or error)
    except (AttributeError, LookupError, TypeError, ValueError):
        # what was read from the answer is not what it should be
        failure = ApiUnusable(OTHER_SHAPE)
    raise failure


def _failure(error: BaseException) -> ApiUnusable | ApiRejected:
    match error:
        case requests.Timeout() | TimeoutError():
            return ApiUnusable("did not answer in time")
        case requests.exceptions.ChunkedEncodingError() | requests.exceptions.ContentDecodingError():
            return ApiUnusable("broke off its answer")
        case requests.RequestException():
            return ApiUnusable(f"was not reached ({type(error).__name__})")
        case _:
            # the client's own words, such as for a network that the workspace does not let in
            return ApiRejected(403 if isinstance(error, PermissionDenied) else 400, one_line(str(error)))
