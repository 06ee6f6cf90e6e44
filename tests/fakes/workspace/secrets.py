"""The secrets of the workspace."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.fakes.workspace.http.exchange import Answer, Refused, Request, answered, unknown_endpoint


@dataclass(slots=True)
class Secrets:
    """The secrets.

    Attributes:
        held: the bytes of each secret, by scope and key.
        values: the `value` of an answer as it is, in place of a secret, by scope and key.
        asked: scope and key of every request.
    """

    held: Mapping[tuple[str, str], bytes] = field(default_factory=dict)
    values: Mapping[tuple[str, str], object] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def answer(self, request: Request) -> Answer:
        """Return the secret that is asked for."""
        if (request.method, request.path) != ("GET", "/api/2.0/secrets/get"):
            raise unknown_endpoint(request)
        asked = request.query.get("scope", ""), request.query.get("key", "")
        self.asked.append(asked)
        return answered({"key": asked[1], "value": self._value(*asked)})

    def _value(self, scope: str, key: str) -> object:
        if (scope, key) in self.values:
            return self.values[scope, key]
        if (scope, key) not in self.held:
            message = f"Secret does not exist with scope: {scope} and key: {key}"
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST", message)
        return base64.b64encode(self.held[scope, key]).decode()
