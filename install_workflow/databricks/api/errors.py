"""A workspace's answers that are no success, in our words: which condition, what to do. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from demux.core.errors import DemuxError, SettingsInvalid, WorkspaceRefused, WorkspaceUnavailable
from demux.core.text import printable

# what the client adds to a refusal about us, over many words
_ABOUT_US = re.compile(r"\. (Config|Env): .*", re.DOTALL)
_TOKEN = re.compile(r"(invalid|expired|revoked).{0,20}token|token.{0,20}(invalid|expired|revoked)", re.IGNORECASE)
_RUN_AS = re.compile(r"run[_ ]as|service principal", re.IGNORECASE)
# an older way to say 404
_NO_JOB = re.compile(r"Job \d+ does not exist")
_NODE_TYPE = re.compile(r"node[_ ]type", re.IGNORECASE)
# codes that say more than the status that they come with, and the status that they mean
_STATUS_OF_CODE: Mapping[str, int] = {
    "RESOURCE_DOES_NOT_EXIST": 404,
    "ALREADY_EXISTS": 409,
    "RESOURCE_ALREADY_EXISTS": 409,
    "REQUEST_LIMIT_EXCEEDED": 429,
    "RESOURCE_EXHAUSTED": 429,
    "ABORTED": 503,
    "UNKNOWN": 500,
    "DATA_LOSS": 500,
}
OTHER_SHAPE = "answered with JSON of another shape"
_PASSING = frozenset({408, 429, 499})
_NOT_IMPLEMENTED = 501
# in the order in which the APIs' ways to say a reason are looked for
_REASONS = ("message", "error_description", "error", "detail")


class Missing(WorkspaceRefused):
    """There is no such thing in the workspace."""


class Denied(WorkspaceRefused):
    """We may not do that; of a job to be changed, it may also mean that there is none."""


class ApiUnusable(Exception):
    """No usable answer.

    Attributes:
        what: what came instead, continuing after "the workspace".
        after_s: when to ask again, if the server says so.
    """

    def __init__(self, what: str, after_s: float | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.after_s = after_s


class ApiRejected(Exception):
    """An answer that says no.

    Attributes:
        status: the HTTP status.
        message: the server's reason, one line.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def failure_of(status: int, phrase: str, content: bytes, after_s: float | None) -> ApiUnusable | ApiRejected:
    """Return what an answer that is no success means, whatever its body is.

    Args:
        status: the HTTP status, 400 or more.
        phrase: the HTTP reason phrase.
        content: the body.
        after_s: when to ask again, if the server says so.
    """
    body = _object(content)
    code, reasons = body.get("error_code"), [body[name] for name in _REASONS if body.get(name)]
    meant = _STATUS_OF_CODE.get(code, status) if isinstance(code, str) else status
    reason = one_line(str(reasons[0])) if reasons else f"status {status} {one_line(phrase)}"
    # an API says in JSON what is not there: any other 404 comes from something in between
    is_foreign = meant == 404 and content and not body
    if is_foreign or meant in _PASSING or (meant >= 500 and meant != _NOT_IMPLEMENTED):
        return ApiUnusable(f"could not do it now: {reason}", after_s)
    return ApiRejected(meant, reason)


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


def json_object(content: bytes) -> dict[str, Any]:
    """Return the JSON object of a body.

    Raises:
        Unusable: it is none.
    """
    if not content:
        raise ApiUnusable("answered with nothing")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        raise ApiUnusable("answered with what is no JSON") from None
    if not isinstance(value, dict):
        raise ApiUnusable(OTHER_SHAPE)
    return value


def _object(content: bytes) -> dict[str, Any]:
    try:
        return json_object(content)
    except ApiUnusable:
        return {}


def one_line(text: str) -> str:
    """Return the first line, at most 300 characters, without what the client says about us and without a full stop."""
    lines = _ABOUT_US.sub("", text).strip().splitlines()
    return printable(lines[0] if lines else "no reason given")[:300].rstrip(". ")


def unavailable(host: str, doing: str, unusable: ApiUnusable) -> WorkspaceUnavailable:
    """Return the error of a workspace that does not answer; `doing` continues after "to"."""
    when = f" after {unusable.after_s:,.0f} s" if unusable.after_s else ""
    return WorkspaceUnavailable(
        f"The workspace {host}, asked to {doing}, {unusable.what}.",
        f"Run the same command again{when}; what it did before stays, and is not done twice.",
        host=host,
        doing=doing,
    )


def no_login(reason: str) -> WorkspaceRefused:
    """Return the error of a login that cannot even be tried."""
    return WorkspaceRefused(
        f"There is no usable login for a workspace: {reason}.",
        "Set DATABRICKS_HOST and DATABRICKS_TOKEN, or name a profile of ~/.databrickscfg in DATABRICKS_CONFIG_PROFILE.",
        reason=reason,
    )


def refused(host: str, doing: str, rejected: ApiRejected) -> DemuxError:
    """Return the error of an answer that says no; `doing` continues after "to"."""
    reason = rejected.message
    about: dict[str, object] = {"host": host, "doing": doing, "status": rejected.status, "reason": reason}
    if rejected.status == 401 or (rejected.status == 403 and _TOKEN.search(reason)):
        return WorkspaceRefused(
            f"The workspace {host} does not accept our login: {reason}.",
            "Set DATABRICKS_TOKEN to a valid token of this workspace, or log in again.",
            **about,
        )
    if rejected.status == 403 and _RUN_AS.search(reason):
        return Denied(
            f"At the workspace {host}, we may not let a job run as another principal: {reason}.",
            "Have the role Service Principal User granted on it, or correct databricks.run_as.",
            **about,
        )
    if rejected.status == 403:
        return Denied(
            f"At the workspace {host}, we were not permitted to {doing}: {reason}.",
            "Have a workspace admin grant it, or log in as a principal that may.",
            **about,
        )
    if rejected.status == 404 or (rejected.status == 400 and _NO_JOB.match(reason)):
        return Missing(
            f"The workspace {host}, asked to {doing}, does not know what that needs: {reason}.",
            "Make the plan again, and correct the names in the section databricks of the settings.",
            **about,
        )
    if rejected.status == 400 and _NODE_TYPE.search(reason):
        return SettingsInvalid(
            f"The workspace {host} has not the node type that the settings name: {reason}.",
            "Set databricks.cluster.node_type to one that it has (`databricks clusters list-node-types`).",
            **about,
        )
    return WorkspaceRefused(
        f"The workspace {host} refused to {doing}: {reason}.",
        "Correct the section databricks of the settings, then run the same command again.",
        **about,
    )
