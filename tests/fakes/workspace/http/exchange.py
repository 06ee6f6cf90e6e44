"""What goes over the wire: a request, its answer, and the answer of a server that refuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked.

    Attributes:
        method: such as `GET`.
        path: without host and query, decoded.
        query: the parameters behind the path.
        body: as it came.
        content_type: what the client says of the body.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    content_type: str = ""

    @property
    def json(self) -> dict[str, Any]:
        """The body as a JSON object, `{}` without a body; each time a new one.

        Raises:
            Refused: 400, when it is no JSON object.
        """
        try:
            value = json.loads(self.body or b"{}")
        except ValueError as error:
            raise Refused(400, "MALFORMED_REQUEST", f"Could not parse request object: {error}") from None
        if not isinstance(value, dict):
            raise Refused(400, "MALFORMED_REQUEST", "Could not parse request object: Expected an object")
        return value

    def number(self, name: str, default: int | None = None) -> int:
        """A whole number of the query.

        Raises:
            Refused: 400, when it is missing without a default, or no number.
        """
        text = self.query.get(name)
        if text is None and default is not None:
            return default
        if text is None:
            raise Refused(400, "INVALID_PARAMETER_VALUE", f"Missing required field: {name}")
        try:
            return int(text)
        except ValueError:
            raise Refused(400, "INVALID_PARAMETER_VALUE", f"Invalid value for {name}: {text}") from None


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered."""

    status: int = 200
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        content = json.dumps({"error_code": code, "message": message}).encode()
        self.answer = Answer(status, content, {"Content-Type": "application/json", **(headers or {})})


def answered(body: Mapping[str, Any]) -> Answer:
    """The answer with a JSON object."""
    return Answer(content=json.dumps(body).encode(), headers={"Content-Type": "application/json"})


def unknown_endpoint(request: Request) -> Refused:
    """The refusal of a path that the server does not have."""
    return Refused(404, "ENDPOINT_NOT_FOUND", f"No API found for '{request.method} {request.path}'")
