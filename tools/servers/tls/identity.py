"""An OAuth 2.0 token endpoint on 127.0.0.1: client credentials in, a signed token (RS256) out."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import TracebackType
from urllib.parse import parse_qs, unquote_plus

from joserfc import jwt
from joserfc.jwk import RSAKey

from tools.servers.ports import HOST, free_ports

AUDIENCE = "servers"
_KEY_ID = "1"
_LIFE_S = 3600


class IdentityProvider:
    """A token endpoint; stopped when the block ends.

    Attributes:
        token_url: where clients get their tokens.
        issuer: what its tokens name as their issuer.
        key_set: a file URL of the key that its tokens are verified with (JWKS).
        public_key: the same key in base64 of its DER form.
    """

    def __init__(self, folder: Path, passwords: Mapping[str, str]) -> None:
        """Start it for these clients, with its key set in the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        self._key = RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256", "kid": _KEY_ID})
        self._passwords = passwords
        (port,) = free_ports(1)
        self._server = ThreadingHTTPServer((HOST, port), _handler(self))
        self.issuer = f"http://{HOST}:{port}"
        self.token_url = f"{self.issuer}/token"
        keys = folder / "keys.json"
        keys.write_text(json.dumps({"keys": [self._key.as_dict(private=False)]}), encoding="ascii")
        self.key_set = keys.absolute().as_uri()
        self.public_key = base64.b64encode(self._key.as_der(private=False)).decode("ascii")
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> IdentityProvider:
        """The provider itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it."""
        self.stop()

    def token(self, client: str, life_s: float = _LIFE_S) -> str:
        """Return a token for the client, as the endpoint gives it."""
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": AUDIENCE,
            "sub": client,
            "scope": "servers",
            "iat": now,
            "exp": now + int(life_s),
        }
        return jwt.encode({"alg": "RS256", "typ": "JWT", "kid": _KEY_ID}, claims, self._key)

    def answer(self, authorization: str, form: Mapping[str, list[str]]) -> tuple[int, dict[str, object]]:
        """Return the status and the body for a request of a token (RFC 6749, sections 4.4 and 2.3.1)."""
        if authorization.startswith("Basic "):
            pair = base64.b64decode(authorization.removeprefix("Basic ")).decode("utf-8").partition(":")
            client, password = unquote_plus(pair[0]), unquote_plus(pair[2])
        else:
            client, password = form.get("client_id", [""])[0], form.get("client_secret", [""])[0]
        if self._passwords.get(client) != password:
            return 401, {"error": "invalid_client"}
        if form.get("grant_type") != ["client_credentials"]:
            return 400, {"error": "unsupported_grant_type"}
        return 200, {"access_token": self.token(client), "token_type": "Bearer", "expires_in": _LIFE_S}


def _handler(provider: IdentityProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Answer the request of a token."""
            form = parse_qs(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode("utf-8"))
            status, body = provider.answer(self.headers.get("Authorization", ""), form)
            text = json.dumps(body).encode("ascii")
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the tests' output is not the place."""

    return Handler
