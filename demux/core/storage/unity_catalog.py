"""Short-lived credentials of a store that Unity Catalog gives out for a path of an external location.

One process asks once, and again before they expire. A value that is sent to Spark's tasks takes the credentials of now
along: tasks have no login. They are kept in memory alone, and never logged.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from demux.core.errors import DemuxError, ServiceUnavailable, StorageFailed

_PATH = "/api/2.1/unity-catalog/temporary-path-credentials"
_TIMEOUT_S = 30
_OK, _TOO_MANY, _SERVER_FAILED = 200, 429, 500
# renewed so long before they expire, or after half of their life
_MOST_AHEAD_S = 300.0
_KINDS = ("aws_temp_credentials", "azure_user_delegation_sas", "azure_aad")
_REMEDY = (
    "The caller needs EXTERNAL USE LOCATION on the external location of `root`, and the metastore external data access."
)


@dataclass(frozen=True, slots=True)
class TemporaryCredentials:
    """Credentials as Unity Catalog gives them.

    Attributes:
        values: the credentials by their names in its answer.
        expires_s: when they expire, in seconds since 1970.
        renew_s: when to ask for others, in seconds since 1970.
    """

    values: Mapping[str, str] = field(repr=False)
    expires_s: float
    renew_s: float

    def client_credential(self) -> dict[str, Any]:
        """Return what `obstore` takes from a provider."""
        expires = {"expires_at": datetime.fromtimestamp(self.renew_s, timezone.utc)}
        match self.values:
            case {"access_key_id": key, "secret_access_key": secret, "session_token": token}:
                return {"access_key_id": key, "secret_access_key": secret, "token": token, **expires}
            case {"sas_token": token}:
                return {"sas_token": token, **expires}
            case values:
                return {"token": values["aad_token"], **expires}

    def client_options(self) -> dict[str, str]:
        """Return the options of the Rust crate `object_store`, for a client that asks no provider."""
        names = {
            "access_key_id": "aws_access_key_id",
            "secret_access_key": "aws_secret_access_key",
            "session_token": "aws_session_token",
            "sas_token": "azure_storage_sas_key",
            "aad_token": "azure_storage_token",
        }
        return {names[name]: value for name, value in self.values.items()}


@dataclass(frozen=True, slots=True)
class UnityCatalogPath:
    """A path whose credentials Unity Catalog gives out.

    Attributes:
        url: of a folder in an external location.
    """

    url: str

    def __reduce__(self) -> tuple[object, ...]:
        return _received, (self.url, self.credentials())

    def credentials(self) -> TemporaryCredentials:
        """Return credentials that have not expired; asks the workspace where they are to be renewed.

        Raises:
            StorageFailed: the workspace refuses, or cannot give what our clients take.
            ServiceUnavailable: it does not answer.
        """
        return _CREDENTIALS.of(self.url)

    def provide(self) -> dict[str, Any]:
        """Return the credentials as `obstore` asks for them."""
        return self.credentials().client_credential()


class _CredentialCache:
    """The credentials of this process, by URL."""

    def __init__(self, ask: Callable[[str], TemporaryCredentials]) -> None:
        self._ask = ask
        self._known: dict[str, TemporaryCredentials] = {}
        self._lock = threading.Lock()

    def of(self, url: str) -> TemporaryCredentials:
        """Return those that are known, or new ones where it is time; the known ones, while they last, on a failure."""
        with self._lock:
            known, now = self._known.get(url), time.time()
            if known is not None and now < known.renew_s:
                return known
            try:
                self._known[url] = self._ask(url)
            except DemuxError:
                if known is None or now >= known.expires_s:
                    raise
            return self._known[url]

    def keep(self, url: str, credentials: TemporaryCredentials) -> None:
        """Know credentials that another process has got."""
        with self._lock:
            known = self._known.get(url)
            if known is None or known.expires_s < credentials.expires_s:
                self._known[url] = credentials


def _received(url: str, credentials: TemporaryCredentials) -> UnityCatalogPath:
    _CREDENTIALS.keep(url, credentials)
    return UnityCatalogPath(url)


def _from_workspace(url: str) -> TemporaryCredentials:
    import requests
    from databricks.sdk.config import Config
    from databricks.sdk.errors.base import DatabricksError

    asked_s = time.time()
    try:
        config = Config(retry_timeout_seconds=_TIMEOUT_S)
        # databricks-sdk 0.49 has no function for it, and its client logs the answer when it is told to debug
        answer = requests.post(
            f"{config.host}{_PATH}",
            headers=config.authenticate(),
            json={"url": url, "operation": "PATH_READ_WRITE"},
            timeout=_TIMEOUT_S,
        )
        content = answer.json()
        status = answer.status_code
    except requests.RequestException as error:
        failure: DemuxError = _unanswered(url, type(error).__name__)
    except (DatabricksError, AttributeError, TypeError, ValueError, OSError) as error:
        # the client breaks on JSON of another shape, and its sentence may continue over many lines
        failure = _failed(url, str(error).splitlines()[0].rstrip(".") if str(error) else "no answer")
    else:
        if status == _OK:
            return credentials_in(content, url, asked_s)
        reason = str(content.get("message", "")).rstrip(".") if isinstance(content, Mapping) else ""
        passes = status == _TOO_MANY or status >= _SERVER_FAILED
        failure = (_unanswered if passes else _failed)(url, reason or f"HTTP {status}")
    # raised out here so that the client's error, which may hold a header, does not hang on it
    raise failure


def credentials_in(answer: object, url: str, asked_s: float) -> TemporaryCredentials:
    """Return the credentials of an answer.

    Args:
        asked_s: when they were asked for, in seconds since 1970.

    Raises:
        StorageFailed: there are none in it, or such as our clients do not take.
    """
    content: Mapping[str, Any] = answer if isinstance(answer, Mapping) else {}
    if "gcp_oauth_token" in content:
        raise _failed(url, "deltalake takes no OAuth token of Google", "Use `store.service_account` instead.")
    found: Mapping[str, Any] = next((content[kind] for kind in _KINDS if isinstance(content.get(kind), Mapping)), {})
    wanted = ("access_key_id", "secret_access_key", "session_token", "sas_token", "aad_token")
    values = {name: str(found[name]) for name in wanted if found.get(name)}
    expires = content.get("expiration_time")
    if len(values) not in (1, 3) or not isinstance(expires, int | float):
        raise _failed(url, "its answer has no credentials that are known here")
    expires_s = expires / 1000
    ahead_s = min(_MOST_AHEAD_S, max(0.0, expires_s - asked_s) / 2)
    return TemporaryCredentials(values, expires_s, expires_s - ahead_s)


def _unanswered(url: str, reason: str) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"The workspace did not answer when it was asked for credentials of {url}: {reason}.",
        "Run the same command again; nothing is lost.",
        path=url,
    )


def _failed(url: str, reason: str, remedy: str = _REMEDY) -> StorageFailed:
    return StorageFailed(f"Unity Catalog gives no credentials of {url}: {reason}.", remedy, path=url)


_CREDENTIALS = _CredentialCache(_from_workspace)
