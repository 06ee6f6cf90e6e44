"""The workspace's server of OAuth tokens: for a principal's secret, or for a token of another issuer."""

from __future__ import annotations

import base64
import json
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from tests.fakes.workspace.http.exchange import Answer, Request, answered

PREFIX = "/oidc/"
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


@dataclass(slots=True)
class OAuth:
    """What is let in.

    Attributes:
        secrets: of the service principals, by application id.
        subjects: tokens of another issuer that a service principal trusts, by its application id.
        given: how many tokens were given out, by the kind of grant.
    """

    secrets: dict[str, str] = field(default_factory=dict)
    subjects: dict[str, str] = field(default_factory=dict)
    given: Counter[str] = field(default_factory=Counter)

    def answer(self, request: Request, authorization: str | None, url: str, token: str) -> Answer:
        """Say where tokens are given out, or give one out."""
        if request.method == "GET":
            ends = {"authorization_endpoint": f"{url}/oidc/v1/authorize", "token_endpoint": f"{url}/oidc/v1/token"}
            return answered(ends)
        form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        kind = form.get("grant_type", "")
        client, secret = _basic(authorization)
        match kind:
            case "client_credentials":
                is_known = self.secrets.get(client) == secret != ""
            case _:
                is_known = kind == _EXCHANGE and self.subjects.get(form.get("client_id", "")) == form["subject_token"]
        if not is_known:
            body = {"error": "invalid_client", "error_description": "Client authentication failed"}
            return Answer(401, json.dumps(body).encode(), {"Content-Type": "application/json"})
        self.given[kind] += 1
        return answered({"access_token": token, "token_type": "Bearer", "expires_in": 3600, "scope": "all-apis"})


def _basic(authorization: str | None) -> tuple[str, str]:
    scheme, _, text = (authorization or "").partition(" ")
    if scheme != "Basic":
        return "", ""
    client, _, secret = base64.b64decode(text).decode().partition(":")
    return client, secret
