"""The short-lived credentials that the workspace gives out for paths of external locations."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.fakes.workspace.http.exchange import Answer, Refused, Request, answered, unknown_endpoint


@dataclass(slots=True)
class PathCredentials:
    """The credentials.

    Attributes:
        location: the URL of the one external location; paths below it have credentials.
        keys: id and key that all of them have, as the server behind them knows no others.
        lifetime_s: how long each lasts.
        given: answers that were given, in order.
        other: the answer in place of AWS credentials, without its time.
    """

    location: str = "s3://demux"
    keys: tuple[str, str] = ("id", "key")
    lifetime_s: float = 3600.0
    given: list[Mapping[str, object]] = field(default_factory=list)
    other: Mapping[str, object] | None = None

    def answer(self, request: Request) -> Answer:
        """Return new credentials of a path."""
        if request.method != "POST":
            raise unknown_endpoint(request)
        asked = json.loads(request.body)
        if asked["operation"] not in {"PATH_READ", "PATH_READ_WRITE", "PATH_CREATE_TABLE"}:
            raise Refused(400, "INVALID_PARAMETER_VALUE", "The operation is not known.")
        if not asked["url"].startswith(self.location):
            raise Refused(403, "PERMISSION_DENIED", "User does not have EXTERNAL USE LOCATION on External Location.")
        names = ("access_key_id", "secret_access_key", "session_token")
        values = (*self.keys, f"token-{len(self.given)}")
        said = self.other or {"aws_temp_credentials": dict(zip(names, values, strict=True))}
        self.given.append({**said, "expiration_time": int((time.time() + self.lifetime_s) * 1000), "url": asked["url"]})
        return answered(self.given[-1])

    def is_valid(self, token: str | None) -> bool:
        """Return whether a session token was given out and has not expired."""
        if token is None or not token.startswith("token-"):
            return False
        expires = self.given[int(token.removeprefix("token-"))]["expiration_time"]
        return isinstance(expires, int) and time.time() * 1000 < expires
