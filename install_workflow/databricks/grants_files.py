"""Our record of what we granted, as files of the workspace, each version written once."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath

from demux.errors import TaskInterrupted, WorkspaceRefused
from install_workflow.databricks.answers import Missing
from install_workflow.databricks.connection import Connection
from install_workflow.databricks.files import files_in, read, remove, write
from install_workflow.databricks.grants import Record
from install_workflow.databricks.grants_record import from_text, to_text

_KEPT = 10


@dataclass(frozen=True, slots=True)
class Kept:
    """A version of the record.

    Attributes:
        version: counted from 1; 0 = there is none yet.
        record: what it says.
    """

    version: int
    record: Record


class RecordFiles:
    """The versions of a deployment's record, `00000001.json` and so on; all raise as `Connection.tried`.

    Attributes:
        folder: where they are.
    """

    def __init__(self, connection: Connection, wheel_path: str, deployment: str) -> None:
        # no deployment can have this name, and its wheels a folder of it
        self.folder = f"{wheel_path}/grants.{deployment}"
        self._connection = connection
        self._deployment = deployment

    def read(self) -> Kept:
        """Return the newest version; changes nothing.

        Raises:
            PlanRefused: it cannot be used.
        """
        newest = max(self._versions(), default=0)
        path = self._path(newest)
        return Kept(newest, from_text(self._deployment, self._content(path), path) if newest else Record())

    def write(self, after: Kept, record: Record) -> Kept:
        """Return the version after this one, written; the tenth before it is removed. Safe to call twice.

        Raises:
            TaskInterrupted: somebody else has written this version.
        """
        version, text = after.version + 1, to_text(self._deployment, record)
        try:
            path = self._path(version)
            write(self._connection, path, text.encode(), f"write {path}", overwrite=False)
        except Missing:
            raise
        except WorkspaceRefused:
            # refused because it is there: by somebody else, or by our own call whose answer was lost
            if version not in self._versions():
                raise
            if self._content(self._path(version)) != text:
                raise _too_late(self.folder) from None
        if version > _KEPT:
            with suppress(WorkspaceRefused):
                remove(self._connection, self._path(version - _KEPT))
        return Kept(version, record)

    def _path(self, version: int) -> str:
        return f"{self.folder}/{version:08}.json"

    def _versions(self) -> list[int]:
        files = map(PurePosixPath, files_in(self._connection, self.folder))
        return [int(file.stem) for file in files if file.suffix == ".json" and file.stem.isdecimal()]

    def _content(self, path: str) -> str:
        return read(self._connection, path).decode("utf-8", "replace")


def _too_late(folder: str) -> TaskInterrupted:
    return TaskInterrupted(
        f"Another command changes the grants at the same time: there is a newer record in {folder}.",
        "Run the same command again.",
        folder=folder,
    )
