"""One workspace over HTTP, by databricks-sdk: calls, tried again where that helps, with answers or our errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import requests
from databricks.sdk import WorkspaceClient
from databricks.sdk.clock import Clock
from databricks.sdk.config import Config
from databricks.sdk.errors import platform
from databricks.sdk.errors.base import DatabricksError
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_random_exponential

from demux.errors import DemuxError
from install_workflow.databricks.answers import Rejected, Unusable, no_login, one_line, refused, unavailable

T = TypeVar("T")

_DAY_S = 86_400
_UNUSABLE = (
    platform.TooManyRequests,
    platform.TemporarilyUnavailable,
    platform.DeadlineExceeded,
    platform.InternalError,
    platform.Cancelled,
    platform.Aborted,
)
_STATUS = (
    (platform.Unauthenticated, 401),
    (platform.PermissionDenied, 403),
    (platform.NotFound, 404),
    (platform.ResourceConflict, 409),
)


@dataclass(frozen=True, slots=True)
class Tries:
    """How often and how long a call is tried.

    Attributes:
        retries: tries after the first.
        max_wait_s: longest wait between two tries.
        timeout_s: longest wait for an answer.
        first_s: how long the client may ask the host about itself when it is made; it can do without an answer.
    """

    retries: int = 5
    max_wait_s: float = 30
    timeout_s: float = 60
    first_s: int = 10


class Connection:
    """A workspace and our login there.

    Attributes:
        host: its URL.
        client: the client of databricks-sdk; it tries each call once.
    """

    def __init__(
        self,
        login: Mapping[str, str] | None = None,
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
        except (ValueError, OSError, DatabricksError) as error:
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
            doing: what it is for, going on after "to".
            query: behind the path.
            body: the JSON object that is sent.
        """
        return self.tried(doing, lambda: self.once(method, path, query, body))

    def once(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:
        """Return the JSON object that is answered; tried once, to be called within `tried`."""
        workspace = getattr(self.client.config, "workspace_id", None)
        answer = self.client.api_client.do(
            method,
            path,
            query=dict(query or {}),
            headers={"X-Databricks-Workspace-Id": workspace} if workspace else {},
            body=None if body is None else dict(body),
        )
        if not isinstance(answer, dict):
            raise Unusable("answered with JSON of another shape")
        return answer

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
            stop=stop_after_attempt(self._tries.retries + 1),
            wait=self._wait,
            retry=retry_if_exception_type(Unusable),
            sleep=self._sleep,
            reraise=True,
        )
        failure: DemuxError
        try:
            result: T = retrying(_translated, call)
            return result
        except Unusable as unusable:
            failure = unavailable(self.host, doing, unusable)
        except Rejected as rejected:
            failure = refused(self.host, doing, rejected)
        raise failure

    def _wait(self, state: RetryCallState) -> float:
        """Return the seconds until the next try: what the server asks for, else growing, both bounded."""
        error = state.outcome.exception() if state.outcome else None
        asked = error.after_s if isinstance(error, Unusable) else None
        most = self._tries.max_wait_s
        return min(asked, most) if asked is not None else wait_random_exponential(multiplier=0.5, max=most)(state)


class _OneTry(Clock):
    """Time that goes by only while the client waits to try again, and then it is too late to."""

    def __init__(self) -> None:
        self._now = 0.0

    def time(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        # the client would repeat a create whose answer was lost: two jobs
        self._now += seconds + _DAY_S


def _translated(call: Callable[[], T]) -> T:
    failure: Exception
    try:
        return call()
    except (DatabricksError, requests.RequestException, TimeoutError, ValueError) as error:
        # the client says "timed out" when it does not try again
        cause = error.__cause__ if isinstance(error, TimeoutError) else None
        failure = _failure(cause or error)
    raise failure


def _failure(error: BaseException) -> Unusable | Rejected:
    reason = one_line(str(error))
    match error:
        case requests.Timeout() | TimeoutError():
            return Unusable("did not answer in time")
        case requests.JSONDecodeError():
            return Unusable("answered with what is no JSON")
        case requests.RequestException():
            return Unusable(f"was not reached ({type(error).__name__})")
        case DatabricksError() if isinstance(error, _UNUSABLE) or type(error) is DatabricksError:
            return Unusable(f"could not do it now: {reason}", error.retry_after_secs)
        case DatabricksError():
            return Rejected(next((status for kind, status in _STATUS if isinstance(error, kind)), 400), reason)
        case _:
            # the login itself failed, such as a profile that no longer works
            return Rejected(401, reason)
