"""The files in volumes, by the Files API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from tests.fakes.workspace.catalog import Catalog
from tests.fakes.workspace.http.exchange import Answer, Refused, Request, answered, unknown_endpoint

_PREFIX = "/api/2.0/fs/"
_MODIFIED = "Tue, 14 Nov 2023 22:13:20 GMT"


@dataclass(slots=True)
class Files:
    """All files in volumes.

    Attributes:
        catalog: where the volumes are.
        held: the content of each file, by path, such as `/Volumes/main/demux/wheels/a.whl`.
        folders: the folders that were made, by path.
    """

    catalog: Catalog
    held: dict[str, bytes] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)

    def answer(self, request: Request) -> Answer:
        """Do what the Files API does at this path."""
        kind, _, rest = request.path.removeprefix(_PREFIX).partition("/")
        path = f"/{rest.strip('/')}"
        does: dict[tuple[str, str], Callable[[str, Request], Answer]] = {
            ("PUT", "files"): self._put,
            ("GET", "files"): self._get,
            ("HEAD", "files"): self._get,
            ("DELETE", "files"): self._delete,
            ("PUT", "directories"): self._make_folder,
            ("GET", "directories"): self._list,
            ("HEAD", "directories"): self._look,
            ("DELETE", "directories"): self._delete_folder,
        }
        do = does.get((request.method, kind))
        if do is None:
            raise unknown_endpoint(request)
        self._check_volume(path)
        return do(path, request)

    def _check_volume(self, path: str) -> None:
        parts = PurePosixPath(path).parts
        if len(parts) < 5 or parts[1] != "Volumes":
            raise Refused(400, "INVALID_PARAMETER_VALUE", f"Invalid path: {path}. It must be below a volume.")
        if ("volume", ".".join(parts[2:5])) not in self.catalog.held:
            raise Refused(404, "NOT_FOUND", f"Volume '{'.'.join(parts[2:5])}' does not exist.")

    def _put(self, path: str, request: Request) -> Answer:
        if request.query.get("overwrite") == "false" and path in self.held:
            raise Refused(409, "ALREADY_EXISTS", "The file being created already exists.")
        if self._is_folder(path):
            raise Refused(400, "INVALID_PARAMETER_VALUE", "The path is that of a directory.")
        self.held[path] = request.body
        return Answer(204)

    def _get(self, path: str, request: Request) -> Answer:
        if path not in self.held:
            raise Refused(404, "NOT_FOUND", "The file being accessed is not found.")
        headers = {"Content-Type": "application/octet-stream", "Last-Modified": _MODIFIED}
        return Answer(200, self.held[path], headers)

    def _delete(self, path: str, request: Request) -> Answer:
        self._get(path, request)
        del self.held[path]
        return Answer(204)

    def _make_folder(self, path: str, request: Request) -> Answer:
        parts = PurePosixPath(path).parts
        self.folders |= {str(PurePosixPath(*parts[:length])) for length in range(6, len(parts) + 1)}
        return Answer(204)

    def _is_folder(self, path: str) -> bool:
        below = f"{path}/"
        itself = path in self.folders or len(PurePosixPath(path).parts) == 5
        return itself or any(name.startswith(below) for name in [*self.held, *self.folders])

    def _look(self, path: str, request: Request) -> Answer:
        if not self._is_folder(path):
            raise Refused(404, "NOT_FOUND", "The directory being accessed is not found.")
        return Answer()

    def _list(self, path: str, request: Request) -> Answer:
        self._look(path, request)
        below = f"{path}/"
        inside = {name.removeprefix(below) for name in [*self.held, *self.folders] if name.startswith(below)}
        names = sorted({name.partition("/")[0] for name in inside})
        return answered({"contents": [self._entry(f"{below}{name}") for name in names]})

    def _entry(self, path: str) -> dict[str, object]:
        entry = {"path": path, "name": PurePosixPath(path).name, "is_directory": path not in self.held}
        return {**entry, "file_size": len(self.held[path])} if path in self.held else entry

    def _delete_folder(self, path: str, request: Request) -> Answer:
        self._look(path, request)
        if any(name.startswith(f"{path}/") for name in [*self.held, *self.folders]):
            raise Refused(400, "FILES_API_DIRECTORY_IS_NOT_EMPTY", "The directory being deleted is not empty.")
        self.folders.discard(path)
        return Answer(204)
