"""The files that jobs need, in a volume or in the workspace's own tree: uploaded once, and removed."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from demux.core.errors import WorkspaceRefused
from demux.core.http.failures import HttpUnusable
from install_workflow.databricks.api.client import WorkspaceConnection
from install_workflow.databricks.api.errors import Missing

_TREE = "/api/2.0/workspace"
_FILES, _FOLDERS = "/api/2.0/fs/files", "/api/2.0/fs/directories"


def upload(connection: WorkspaceConnection, path: str, content: bytes) -> bool:
    """Upload the file unless one of the same size is there; return whether it was uploaded. Safe to call twice.

    Args:
        path: below /Volumes/<catalog>/<schema>/<volume> or /Workspace; its folders are made. It should depend on the
            content.
    """
    if size(connection, path) == len(content):
        return False
    write(connection, path, content, f"upload {path}", overwrite=True)
    return True


def write(connection: WorkspaceConnection, path: str, content: bytes, doing: str, *, overwrite: bool) -> None:
    """Write a whole file, its folders too; without `overwrite`, one that is there already is a `WorkspaceRefused`.

    Args:
        doing: what it is for, continuing after "to".
    """
    folder = str(PurePosixPath(path).parent)
    if _in_volume(path):
        _do(connection, "PUT", f"{_FOLDERS}{folder}", doing)
        _do(connection, "PUT", f"{_FILES}{path}", doing, {"overwrite": overwrite}, content)
    else:
        connection.ask("POST", f"{_TREE}/mkdirs", doing, body={"path": folder})
        text = base64.b64encode(content).decode()
        body = {"path": path, "format": "AUTO", "overwrite": overwrite, "content": text}
        connection.ask("POST", f"{_TREE}/import", doing, body=body)


def read(connection: WorkspaceConnection, path: str) -> bytes:
    """Return the content of a file."""
    doing = f"read {path}"
    if _in_volume(path):
        return connection.retry(doing, lambda: connection.answer("GET", f"{_FILES}{path}").content)
    query = {"path": path, "format": "AUTO"}
    return connection.read(f"{_TREE}/export", doing, lambda got: base64.b64decode(got["content"], validate=True), query)


def remove(connection: WorkspaceConnection, path: str) -> bool:
    """Remove a file; return whether it was there. Safe to call twice."""
    return _removed(connection, path, _FILES)


def remove_folder(connection: WorkspaceConnection, path: str) -> None:
    """Remove an empty folder; does nothing if there is none. Safe to call twice."""
    _removed(connection, path, _FOLDERS)


def files_in(connection: WorkspaceConnection, folder: str) -> tuple[str, ...]:
    """Return the paths of all that is in a folder, sorted; () when there is no such folder."""
    return _content(connection, folder) or ()


def is_empty_folder(connection: WorkspaceConnection, path: str) -> bool:
    """Return whether there is such a folder, with nothing in it."""
    return _content(connection, path) == ()


def remove_empty(connection: WorkspaceConnection, path: str) -> bool:
    """Remove a folder if it is empty; return whether it was removed. Safe to call twice."""
    if not is_empty_folder(connection, path):
        return False
    # another command may write into it at this moment
    with suppress(WorkspaceRefused):
        remove_folder(connection, path)
        return True
    return False


def missing_folders(connection: WorkspaceConnection, path: str) -> tuple[str, ...]:
    """Return the folders that a first file below this one would create, the innermost first."""
    missing = []
    folder = PurePosixPath(path)
    # /Volumes/<catalog>/<schema>/<volume> and /Workspace are no folders that we make
    while len(folder.parts) > (5 if _in_volume(path) else 2) and _content(connection, str(folder)) is None:
        missing.append(str(folder))
        folder = folder.parent
    return tuple(missing)


def _content(connection: WorkspaceConnection, folder: str) -> tuple[str, ...] | None:
    """Return the paths of all that is in a folder, sorted; None when there is no such folder."""
    doing = f"list {folder}"
    names: list[str] = []
    try:
        if not _in_volume(folder):
            names = connection.read(f"{_TREE}/list", doing, _names_in_tree, {"path": folder})
        else:
            token: str | None = None
            while token != "":
                query = {} if token is None else {"page_token": token}
                page, token = connection.read(f"{_FOLDERS}{folder}", doing, _names_in_volume, query)
                names += page
    except Missing:
        return None
    return tuple(sorted(f"{folder}/{name}" for name in names))


def size(connection: WorkspaceConnection, path: str) -> int | None:
    """Return the bytes of a file; None when there is none."""
    doing = f"look at {path}"
    try:
        if _in_volume(path):
            return connection.retry(doing, lambda: _length(connection.answer("HEAD", f"{_FILES}{path}").headers))
        return connection.read(f"{_TREE}/get-status", doing, _size_in, {"path": path})
    except Missing:
        return None


def _names_in_tree(answer: Mapping[str, Any]) -> list[str]:
    return [PurePosixPath(entry["path"]).name for entry in answer.get("objects", [])]


def _names_in_volume(page: Mapping[str, Any]) -> tuple[list[str], str]:
    """Return the names on a page, and the token of the next one."""
    return [str(entry["name"]) for entry in page.get("contents", [])], str(page.get("next_page_token") or "")


def _length(headers: Mapping[str, str]) -> int | None:
    return int(headers["Content-Length"]) if "Content-Length" in headers else None


def _size_in(status: Mapping[str, Any]) -> int | None:
    # a folder has none
    return int(status["size"]) if "size" in status else None


def _removed(connection: WorkspaceConnection, path: str, kind: str) -> bool:
    """Return whether it was there; `kind` is the API's path for what is in a volume."""
    doing = f"remove {path}"
    try:
        if _in_volume(path):
            _do(connection, "DELETE", f"{kind}{path}", doing)
        else:
            connection.ask("POST", f"{_TREE}/delete", doing, body={"path": path})
    except Missing:
        return False
    return True


def _do(
    connection: WorkspaceConnection,
    method: str,
    path: str,
    doing: str,
    query: Mapping[str, object] | None = None,
    data: bytes | None = None,
) -> None:
    """Make a call of the Files API that is answered with nothing."""

    def done() -> None:
        if connection.answer(method, path, query, data).content:
            raise HttpUnusable("answered with more than the status")

    connection.retry(doing, done)


def _in_volume(path: str) -> bool:
    return path.startswith("/Volumes/")
