"""A record of ours as files of the workspace, a version each, written once: put-if-absent, as Delta's commits are."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Generic, TypeVar

from demux.core.control.record_format import RecordFormat, file_of, version_in
from demux.core.errors import ConcurrentChange, DemuxError, WorkspaceRefused
from install_workflow.databricks.api.client import WorkspaceConnection
from install_workflow.databricks.api.errors import Missing
from install_workflow.databricks.api.workspace_files import files_in, read, remove, remove_empty, write

R = TypeVar("R")

_KEPT = 10


@dataclass(frozen=True, slots=True)
class FileVersion(Generic[R]):
    """A version of the record.

    Attributes:
        version: counted from 1; 0 = there is none yet.
    """

    version: int
    record: R


class RecordFiles(Generic[R]):
    """The versions of a record, `00000001.json` and so on; all raise as `WorkspaceConnection.tried`."""

    def __init__(self, connection: WorkspaceConnection, folder: str, form: RecordFormat[R]) -> None:
        self.folder = folder
        self._connection = connection
        self._form = form

    def read(self) -> FileVersion[R]:
        """Return the newest version; changes nothing.

        Raises:
            PlanRefused: it cannot be used.
            ConcurrentChange: it was removed just now.
        """
        newest = max(self._versions(), default=0)
        return FileVersion(newest, self._record(newest) if newest else self._form.empty)

    def write(self, after: FileVersion[R], record: R) -> FileVersion[R]:
        """Write the next version, check it, and return it; removes the tenth version before it.

        Safe to call twice.

        Raises:
            ConcurrentChange: another process has written this version, or the one before it is not what was read.
        """
        written = FileVersion(after.version + 1, record)
        self._put(written)
        self._confirm(written, after)
        if written.version > _KEPT:
            # one too many is no reason to fail
            with suppress(DemuxError):
                remove(self._connection, self._path(written.version - _KEPT))
        return written

    def remove(self) -> bool:
        """Remove all versions, the newest last, and the folder if it is empty; return whether there was a version.

        Safe to call twice.
        """
        versions = sorted(self._versions())
        for version in versions:
            remove(self._connection, self._path(version))
        remove_empty(self._connection, self.folder)
        return bool(versions)

    def _put(self, kept: FileVersion[R]) -> None:
        version, text = kept.version, self._form.to_text(kept.record)
        try:
            path = self._path(version)
            write(self._connection, path, text.encode(), f"write {path}", overwrite=False)
        except Missing:
            raise
        except WorkspaceRefused:
            # refused because it is there: by another process, or by our own call whose answer was lost
            if version not in self._versions():
                raise
            if self._content(version) != text:
                raise self._too_late() from None

    def _confirm(self, written: FileVersion[R], after: FileVersion[R]) -> None:
        """Check that the written version is the newest and follows the version that was read.

        Where the folder was removed meanwhile, counting began again, and a number says nothing.

        Raises:
            ConcurrentChange: it is not; it is removed if the one before it is gone, or another.
        """
        versions = self._versions()
        is_next = not after.version or (after.version in versions and self._record(after.version) == after.record)
        # read last: what is removed must still be ours
        is_ours = self._record(written.version) == written.record
        if is_ours and not is_next:
            remove(self._connection, self._path(written.version))
        if not is_ours or not is_next or max(versions, default=0) != written.version:
            raise self._too_late()

    def _path(self, version: int) -> str:
        return f"{self.folder}/{file_of(version)}"

    def _versions(self) -> list[int]:
        found = (version_in(PurePosixPath(path).name) for path in files_in(self._connection, self.folder))
        return [version for version in found if version]

    def _record(self, version: int) -> R:
        try:
            return self._form.from_text(self._content(version), self._path(version))
        except Missing:
            raise self._too_late() from None

    def _content(self, version: int) -> str:
        return read(self._connection, self._path(version)).decode("utf-8", "replace")

    def _too_late(self) -> ConcurrentChange:
        return ConcurrentChange(
            f"Another command changed {self._form.about} at the same time: there is a newer record in {self.folder}.",
            "Run the same command again.",
            folder=self.folder,
        )
