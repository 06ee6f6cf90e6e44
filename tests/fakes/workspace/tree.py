"""The tree of the workspace's own files, by the Workspace API."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesParser
from pathlib import PurePosixPath
from typing import Any

from tests.fakes.workspace.http.exchange import Answer, Refused, Request, answered, unknown_endpoint
from tests.fakes.workspace.users import Users

_PREFIX = "/api/2.0/workspace/"
# what one request may bring at most
MAX_IMPORT_BYTES = 10 * 1024 * 1024


@dataclass(slots=True)
class Tree:
    """All folders and files of the workspace.

    Attributes:
        users: whose home there is.
        held: the content of each file, by path, such as `/Workspace/Shared/a.whl`; of a folder, None.
    """

    users: Users
    held: dict[str, bytes | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._make_folders(f"/Workspace/Users/{self.users.me}")
        self._make_folders("/Workspace/Shared")

    def answer(self, request: Request) -> Answer:
        """Do what the Workspace API does at this path."""
        does: dict[tuple[str, str], Callable[[Request], Answer]] = {
            ("POST", "import"): self._import,
            ("POST", "mkdirs"): self._mkdirs,
            ("POST", "delete"): self._delete,
            ("GET", "get-status"): self._status,
            ("GET", "list"): self._list,
            ("GET", "export"): self._export,
        }
        do = does.get((request.method, request.path.removeprefix(_PREFIX)))
        if do is None:
            raise unknown_endpoint(request)
        return do(request)

    def _make_folders(self, path: str) -> None:
        for each in (*reversed(PurePosixPath(path).parents), PurePosixPath(path)):
            if self.held.setdefault(str(each), None) is not None:
                raise Refused(400, "RESOURCE_ALREADY_EXISTS", f"{each} already exists and it is not a folder")

    def _existing(self, path: str) -> str:
        whole = _whole(path)
        if whole not in self.held:
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST", f"Path ({path}) doesn't exist.")
        return whole

    def _import(self, request: Request) -> Answer:
        given = _form(request)
        path = _whole(str(given.get("path", "")))
        content = _content(given.get("content", b""))
        if len(content) > MAX_IMPORT_BYTES:
            raise Refused(400, "MAX_NOTEBOOK_SIZE_EXCEEDED", f"File size imported is ({len(content)} bytes).")
        if self.held.get(str(PurePosixPath(path).parent), b"") is not None:
            message = f"The parent folder ({PurePosixPath(path).parent}) does not exist."
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST", message)
        if path in self.held and (self.held[path] is None or str(given.get("overwrite")).lower() != "true"):
            message = f"{path} already exists. Please pass overwrite=true to overwrite it."
            raise Refused(400, "RESOURCE_ALREADY_EXISTS", message)
        self.held[path] = content
        return answered({"object_id": self._entry(path)["object_id"]})

    def _mkdirs(self, request: Request) -> Answer:
        self._make_folders(_whole(str(request.json.get("path", ""))))
        return answered({})

    def _delete(self, request: Request) -> Answer:
        body = request.json
        path = self._existing(str(body.get("path", "")))
        inside = [name for name in self.held if name.startswith(f"{path}/")]
        if inside and not body.get("recursive"):
            message = f"Folder ({path}) is not empty. Set recursive=true to delete the folder and its contents."
            raise Refused(400, "DIRECTORY_NOT_EMPTY", message)
        for name in [*inside, path]:
            del self.held[name]
        return answered({})

    def _status(self, request: Request) -> Answer:
        return answered(self._entry(self._existing(request.query.get("path", ""))))

    def _list(self, request: Request) -> Answer:
        path = self._existing(request.query.get("path", ""))
        inside = [name for name in sorted(self.held) if name != "/" and str(PurePosixPath(name).parent) == path]
        return answered({"objects": [self._entry(name) for name in inside]} if inside else {})

    def _export(self, request: Request) -> Answer:
        content = self.held[self._existing(request.query.get("path", ""))] or b""
        if request.query.get("direct_download") == "true":
            return Answer(200, content, {"Content-Type": "application/octet-stream"})
        return answered({"content": base64.b64encode(content).decode()})

    def _entry(self, path: str) -> dict[str, Any]:
        content = self.held[path]
        kind = {"object_type": "DIRECTORY"} if content is None else {"object_type": "FILE", "size": len(content)}
        return {"path": path.removeprefix("/Workspace"), "object_id": zlib.crc32(path.encode()), **kind}


def _whole(path: str) -> str:
    """The path with `/Workspace` before it, which may be left out.

    Raises:
        Refused: 400, for one that does not begin with a slash.
    """
    if not path.startswith("/"):
        raise Refused(400, "INVALID_PARAMETER_VALUE", f"Path ({path}) should start with '/'.")
    return str(PurePosixPath(path if path.startswith("/Workspace") else f"/Workspace{path}"))


def _form(request: Request) -> Mapping[str, object]:
    """The fields of a form of several parts, the content as bytes, or of a JSON object."""
    if not request.content_type.startswith("multipart/form-data"):
        return request.json
    head = f"Content-Type: {request.content_type}\r\n\r\n".encode()
    parts = BytesParser().parsebytes(head + request.body).get_payload()
    return dict(_field(part) for part in parts if isinstance(part, Message))


def _field(part: Message) -> tuple[str, object]:
    name = str(part.get_param("name", header="content-disposition"))
    content = part.get_payload(decode=True)
    return name, content if name == "content" or not isinstance(content, bytes) else content.decode()


def _content(given: object) -> bytes:
    if isinstance(given, bytes):
        return given
    try:
        return base64.b64decode(str(given), validate=True)
    except binascii.Error:
        raise Refused(400, "INVALID_PARAMETER_VALUE", "The content is not base64.") from None
