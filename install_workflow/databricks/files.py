"""The files that jobs need, in a volume or in the workspace's own tree: uploaded once, and removed."""

from __future__ import annotations

import base64
import io
from pathlib import PurePosixPath

from install_workflow.databricks.answers import Missing
from install_workflow.databricks.connection import Connection

_TREE = "/api/2.0/workspace"


def upload(connection: Connection, path: str, content: bytes) -> bool:
    """Return whether the file had to be uploaded; one of the same size at this path stays. Safe to call twice.

    Args:
        connection: the workspace.
        path: below /Volumes/<catalog>/<schema>/<volume> or /Workspace; its folders are made. It should depend on the
            content.
        content: the whole file.
    """
    if _size(connection, path) == len(content):
        return False
    folder, doing = str(PurePosixPath(path).parent), f"upload {path}"
    if _in_volume(path):
        files = connection.client.files
        connection.tried(doing, lambda: files.create_directory(folder))
        connection.tried(doing, lambda: files.upload(path, io.BytesIO(content), overwrite=True))
    else:
        connection.ask("POST", f"{_TREE}/mkdirs", doing, body={"path": folder})
        text = base64.b64encode(content).decode()
        body = {"path": path, "format": "AUTO", "overwrite": True, "content": text}
        connection.ask("POST", f"{_TREE}/import", doing, body=body)
    return True


def remove(connection: Connection, path: str) -> bool:
    """Return whether there was such a file; it is gone afterwards. Safe to call twice."""
    doing = f"remove {path}"
    try:
        if _in_volume(path):
            connection.tried(doing, lambda: connection.client.files.delete(path))
        else:
            connection.ask("POST", f"{_TREE}/delete", doing, body={"path": path})
    except Missing:
        return False
    return True


def _size(connection: Connection, path: str) -> int | None:
    """Return the bytes of a file; None when there is none."""
    doing = f"look at {path}"
    try:
        if _in_volume(path):
            return connection.tried(doing, lambda: connection.client.files.get_metadata(path)).content_length
        size = connection.ask("GET", f"{_TREE}/get-status", doing, {"path": path}).get("size")
    except Missing:
        return None
    return None if size is None else int(size)


def _in_volume(path: str) -> bool:
    return path.startswith("/Volumes/")
