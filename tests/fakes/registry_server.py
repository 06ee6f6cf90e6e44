"""A small schema registry that speaks Confluent's REST protocol on 127.0.0.1, and fails as it is told to."""

from __future__ import annotations

import json
import re
import ssl
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

_JSON = "application/vnd.schemaregistry.v1+json"


class Way(Enum):
    """How an answer goes wrong beyond what it says."""

    WHOLE = "whole"
    TRUNCATED = "truncated"
    NEVER = "never"
    CUT_OFF = "cut off"


@dataclass(frozen=True, slots=True)
class Fault:
    """What the next request gets instead of its answer."""

    status: int = 200
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    way: Way = Way.WHOLE


@dataclass(slots=True)
class Version:
    """A version of a subject."""

    schema_id: int
    number: int
    content: dict[str, Any]
    deleted: bool = False


class No(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, code: int | None, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error_code": code, "message": message} if code else {"message": message}


class FakeRegistry:
    """What the registry holds, and how it behaves.

    Attributes:
        faults: what the next requests get; one each.
        broken: what requests for a path get for as long as it stands here, such as `/schemas/ids/1`.
        asked: what was asked so far, such as `GET /schemas/ids/1`.
        account: the `Authorization` that is let in; None = everybody.
        forbidden: whether who is let in may do nothing.
        against: what the compatibility check finds against a next version, by subject.
        checks: whether it knows compatibility checks of its own, or finds out when registering.
        guids: whether it gives GUIDs.
        levels: the compatibility of subjects.
        answers_left: how many requests are answered before it dies; None = it lives. The one after is done, unanswered.
    """

    def __init__(self, first_id: int = 1) -> None:
        """Hold nothing yet; ids are counted from `first_id`."""
        self.url = ""
        self.faults: deque[Fault] = deque()
        self.broken: dict[str, Fault] = {}
        self.asked: list[str] = []
        self.account: str | None = None
        self.forbidden = False
        self.against: dict[str, list[str]] = {}
        self.checks = True
        self.guids = True
        self.levels: dict[str, str] = {}
        self.answers_left: int | None = None
        self.stopping = threading.Event()
        self._subjects: dict[str, list[Version]] = {}
        self._ids: dict[str, int] = {}
        self._contents: dict[int, dict[str, Any]] = {}
        self._next_id = first_id

    def put(self, subject: str, content: Mapping[str, Any]) -> int:
        """Keep a schema as another client would, without any check, and return its id."""
        content = {"schemaType": "AVRO", "references": [], **content}
        key = json.dumps(content, sort_keys=True)
        if key not in self._ids:
            self._ids[key], self._next_id = self._next_id, self._next_id + 1
            self._contents[self._ids[key]] = content
        versions = self._subjects.setdefault(subject, [])
        number = max((version.number for version in versions), default=0) + 1
        versions.append(Version(self._ids[key], number, content))
        return self._ids[key]

    def lose(self, subject: str) -> None:
        """Forget a subject though others refer to it, as no registry should."""
        del self._subjects[subject]

    def guid(self, schema_id: int) -> str:
        """Return the GUID of an id."""
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self._contents[schema_id]}"))

    def everything(self) -> dict[str, list[int]]:
        """Return all subjects with their versions, deleted ones too."""
        return {name: [version.number for version in versions] for name, versions in self._subjects.items()}

    def answer(self, method: str, path: str, query: Mapping[str, str], body: dict[str, Any]) -> object:
        """Return the answer to a request."""
        for wanted, pattern, act in self._routes():
            match = re.fullmatch(pattern, path)
            if wanted == method and match:
                return act(query, body, *(unquote(group) for group in match.groups()))
        raise No(404, None, "HTTP 404 Not Found")

    def _routes(self) -> list[tuple[str, str, Callable[..., object]]]:
        return [
            ("GET", "/subjects", lambda query, _: [name for name in self._subjects if self._live(name)]),
            ("GET", "/subjects/([^/]+)/versions", self._numbers),
            ("GET", "/subjects/([^/]+)/versions/([0-9]+)", lambda query, _, *at: self._shown(*at)),
            ("POST", "/subjects/([^/]+)/versions", self._register),
            ("POST", "/subjects/([^/]+)", self._lookup),
            ("DELETE", "/subjects/([^/]+)/versions/([0-9]+)", self._delete),
            ("POST", "/compatibility/subjects/([^/]+)/versions", self._check),
            ("GET", "/schemas/ids/(-?[0-9]+)", lambda query, _, schema_id: self._content(int(schema_id))),
            ("GET", "/schemas/ids/([0-9]+)/versions", self._places),
            ("GET", "/schemas/guids/([^/]+)/ids", self._of_guid),
            ("GET", "/config", lambda query, _: {"compatibilityLevel": "BACKWARD"}),
            ("GET", "/config/([^/]+)", self._level),
        ]

    def _live(self, subject: str, deleted: bool = False) -> list[Version]:
        return [version for version in self._subjects.get(subject, []) if deleted or not version.deleted]

    def _known(self, subject: str, deleted: bool = False) -> list[Version]:
        versions = self._live(subject, deleted)
        if not versions:
            raise No(404, 40401, f"Subject '{subject}' not found.")
        return versions

    def _numbers(self, query: Mapping[str, str], _: object, subject: str) -> list[int]:
        return [version.number for version in self._known(subject, "deleted" in query)]

    def _shown(self, subject: str, number: str) -> dict[str, Any]:
        for version in self._known(subject):
            if version.number == int(number):
                return {"subject": subject, "version": version.number, "id": version.schema_id, **version.content}
        raise No(404, 40402, f"Version {number} not found.")

    def _content(self, schema_id: int) -> dict[str, Any]:
        if schema_id not in self._contents:
            raise No(404, 40403, f"Schema {schema_id} not found")
        content = dict(self._contents[schema_id])
        # as Confluent's does
        if content["schemaType"] == "AVRO":
            del content["schemaType"]
        return content

    def _places(self, query: Mapping[str, str], _: object, schema_id: str) -> list[dict[str, Any]]:
        self._content(int(schema_id))
        return [
            {"subject": subject, "version": version.number}
            for subject in sorted(self._subjects, reverse=True)
            for version in self._live(subject, "deleted" in query)
            if version.schema_id == int(schema_id)
        ]

    def _of_guid(self, _: object, __: object, guid: str) -> list[dict[str, Any]]:
        if not self.guids:
            raise No(404, None, "HTTP 404 Not Found")
        found = [schema_id for schema_id in self._contents if self.guid(schema_id) == guid]
        if not found:
            raise No(404, 40403, f"Schema {guid} not found")
        return [{"context": ".", "id": schema_id} for schema_id in found]

    def _level(self, _: object, __: object, subject: str) -> dict[str, str]:
        if subject not in self.levels:
            raise No(404, 40408, f"Subject '{subject}' does not have subject-level compatibility configured")
        return {"compatibilityLevel": self.levels[subject]}

    def _lookup(self, query: Mapping[str, str], body: dict[str, Any], subject: str) -> dict[str, Any]:
        for version in self._known(subject, "deleted" in query):
            if version.content == {"schemaType": "AVRO", "references": [], **body}:
                return {"subject": subject, "version": version.number, "id": version.schema_id, **version.content}
        raise No(404, 40403, "Schema not found")

    def _check(self, query: Mapping[str, str], _: object, subject: str) -> dict[str, Any]:
        if not self.checks:
            raise No(404, None, "HTTP 404 Not Found")
        self._known(subject)
        against = self.against.get(subject, [])
        return {"is_compatible": not against, **({"messages": against} if query.get("verbose") == "true" else {})}

    def _register(self, query: Mapping[str, str], body: dict[str, Any], subject: str) -> dict[str, Any]:
        for reference in body.get("references", []):
            if reference["version"] not in [version.number for version in self._live(reference["subject"])]:
                raise No(422, 42201, f"Invalid schema: no reference found for {reference['subject']}")
        if "messag " in body["schema"]:
            raise No(422, 42201, "Invalid schema: Syntax error in :1:20: unexpected label: messag")
        if self.against.get(subject):
            raise No(409, 409, "; ".join(self.against[subject]))
        try:
            schema_id = self._lookup(query, body, subject)["id"]
        except No:
            schema_id = self.put(subject, body)
        return {"id": schema_id, **({"guid": self.guid(schema_id)} if self.guids else {})}

    def _delete(self, query: Mapping[str, str], _: object, subject: str, number: str) -> int:
        for version in self._known(subject, "permanent" in query):
            if version.number == int(number):
                wanted = {"subject": subject, "version": version.number}
                if any(wanted.items() <= other.items() for other in self._references()):
                    raise No(422, 42206, f"One or more references exist to the schema {subject}/{number}")
                if "permanent" not in query:
                    version.deleted = True
                elif not version.deleted:
                    raise No(404, 40407, f"Version {number} was not deleted first before being permanently deleted")
                else:
                    self._forget(subject, version)
                return version.number
        raise No(404, 40402, f"Version {number} not found.")

    def _forget(self, subject: str, version: Version) -> None:
        self._subjects[subject].remove(version)
        if not self._subjects[subject]:
            del self._subjects[subject]
        if all(version.schema_id != other.schema_id for versions in self._subjects.values() for other in versions):
            del self._contents[version.schema_id], self._ids[json.dumps(version.content, sort_keys=True)]

    def _references(self) -> list[dict[str, Any]]:
        live = (version for subject in self._subjects for version in self._live(subject))
        return [reference for version in live for reference in version.content["references"]]


class Passing(FakeRegistry):
    """A registry that holds nothing itself: it asks the one under `origin`, and fails as it is told to on the way."""

    def __init__(self, origin: str) -> None:
        super().__init__()
        self._origin = origin

    def answer(self, method: str, path: str, query: Mapping[str, str], body: dict[str, Any]) -> object:
        """Return the origin's answer."""
        asked = urlencode(query)
        request = Request(
            f"{self._origin}{path}{'?' if asked else ''}{asked}",
            json.dumps(body).encode() if body else None,
            {"Content-Type": _JSON},
            method=method,
        )
        try:
            # a proxy of the environment is not for this machine
            with build_opener(ProxyHandler({})).open(request) as answer:
                return json.load(answer)
        except HTTPError as error:
            with error:
                said = json.load(error)
            raise No(error.code, said.get("error_code"), said.get("message", "")) from error


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # headers and body in one packet, or the other side waits 40 ms for the second
    wbufsize = -1
    disable_nagle_algorithm = True
    registry: FakeRegistry

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        registry = self.registry
        parts = urlsplit(self.path)
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        registry.asked.append(f"{self.command} {parts.path}")
        if registry.answers_left is not None and registry.answers_left <= 0:
            self.close_connection = True
            if registry.answers_left == 0:
                with suppress(No):
                    registry.answer(self.command, parts.path, dict(parse_qsl(parts.query)), body)
            registry.answers_left -= 1
            return
        if registry.answers_left is not None:
            registry.answers_left -= 1
        if registry.faults:
            self._fail(registry.faults.popleft())
        elif parts.path in registry.broken:
            self._fail(registry.broken[parts.path])
        elif registry.account is not None and self.headers.get("Authorization") != registry.account:
            self._send(401, json.dumps({"error_code": 40101, "message": "Unauthorized"}), {})
        elif registry.forbidden:
            self._send(403, json.dumps({"error_code": 40301, "message": "User is denied operation Read"}), {})
        else:
            try:
                answer = registry.answer(self.command, parts.path, dict(parse_qsl(parts.query)), body)
                self._send(200, json.dumps(answer), {})
            except No as no:
                self._send(no.status, json.dumps(no.body), {})

    def _fail(self, fault: Fault) -> None:
        match fault.way:
            case Way.NEVER:
                self.registry.stopping.wait()
                self.close_connection = True
            case Way.CUT_OFF:
                self.close_connection = True
            case _:
                self._send(fault.status, fault.body, fault.headers, missing=fault.way is Way.TRUNCATED)

    def _send(self, status: int, body: str, headers: Mapping[str, str], missing: bool = False) -> None:
        content = body.encode()
        self.send_response(status)
        for name, value in {"Content-Type": _JSON, "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if missing else content)
        self.close_connection = self.close_connection or missing


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients go away, and distrust us, on purpose."""


@contextmanager
def serving(registry: FakeRegistry, tls: ssl.SSLContext | None = None, port: int = 0) -> Iterator[FakeRegistry]:
    """The registry, answering under its `url` until the block ends; afterwards it can be served again."""
    handler = type("Handler", (_Handler,), {"registry": registry})
    registry.stopping.clear()
    with _Quiet(("127.0.0.1", port), handler) as server:
        server.daemon_threads = True
        # the handshake belongs to the connection's own thread, not to the one that accepts
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        registry.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield registry
        finally:
            registry.stopping.set()
            server.shutdown()
            thread.join()


def proto(text: str, *references: tuple[str, str, int]) -> dict[str, object]:
    """A Protobuf schema with references (name, subject, version), as the registry keeps it."""
    named = [{"name": name, "subject": subject, "version": version} for name, subject, version in references]
    return {"schema": text, "schemaType": "PROTOBUF", "references": named}
