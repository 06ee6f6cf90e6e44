"""What we ask of a Databricks workspace, its secrets, on 127.0.0.1."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

_SECRET = "/api/2.0/secrets/get"
# what a client asks before anything else
_ABOUT = "/.well-known/databricks-config"


@dataclass(slots=True)
class FakeWorkspace:
    """What the workspace holds.

    Attributes:
        token: the bearer token that is let in.
        secrets: the bytes of each secret, by scope and key.
        values: the `value` of an answer as it is, in place of a secret, by scope and key.
        url: where it answers.
        asked: scope and key of every request that was let in.
    """

    token: str
    secrets: Mapping[tuple[str, str], bytes]
    values: Mapping[tuple[str, str], object] = field(default_factory=dict)
    url: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)

    @property
    def environ(self) -> dict[str, str]:
        """The environment by which the client finds the workspace."""
        return {"DATABRICKS_HOST": self.url, "DATABRICKS_TOKEN": self.token}

    def answer(self, authorization: str | None, path: str, query: Mapping[str, str]) -> tuple[int, dict[str, object]]:
        """Return status and body."""
        if path == _ABOUT:
            return 200, {"oidc_endpoint": f"{self.url}/oidc", "workspace_id": "1"}
        if path != _SECRET:
            return 404, {"error_code": "ENDPOINT_NOT_FOUND", "message": f"No API found for {path}"}
        if authorization != f"Bearer {self.token}":
            return 403, {"error_code": "PERMISSION_DENIED", "message": "Invalid access token."}
        asked = query.get("scope", ""), query.get("key", "")
        self.asked.append(asked)
        if asked in self.values:
            return 200, {"key": asked[1], "value": self.values[asked]}
        if asked not in self.secrets:
            message = f"Secret does not exist with scope: {asked[0]} and key: {asked[1]}"
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": message}
        return 200, {"key": asked[1], "value": base64.b64encode(self.secrets[asked]).decode()}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    workspace: FakeWorkspace

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        status, body = self.workspace.answer(
            self.headers.get("Authorization"), parts.path, dict(parse_qsl(parts.query))
        )
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serving(workspace: FakeWorkspace) -> Iterator[FakeWorkspace]:
    """The workspace, answering under its `url` until the block ends."""
    handler = type("Handler", (_Handler,), {"workspace": workspace})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        workspace.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield workspace
        finally:
            server.shutdown()
            thread.join()
