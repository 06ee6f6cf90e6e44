"""The settings files of a deployment in the workspace: which are missing, and their upload."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from demux.core.errors import PlanRefused
from install_workflow.databricks.api.client import WorkspaceConnection
from install_workflow.databricks.api.workspace_files import size, upload
from install_workflow.databricks.jobs.oversized_settings import SettingsFile, settings_paths


def missing(connection: WorkspaceConnection, files: Iterable[SettingsFile]) -> tuple[SettingsFile, ...]:
    """Return those that are not there yet; asks once for each, changes nothing."""
    return tuple(file for file in files if size(connection, file.path) != len(file.content))


def upload_files(connection: WorkspaceConnection, files: Iterable[SettingsFile], tell: Callable[[str], None]) -> None:
    """Upload the files that are missing; again, it changes nothing.

    Args:
        connection: the workspace.
        files: named by their content.
        tell: called after each path.
    """
    for file in files:
        if upload(connection, file.path, file.content):
            tell(file.path)


def needed(
    connection: WorkspaceConnection, jobs: Iterable[Mapping[str, Any]], files: Iterable[SettingsFile]
) -> tuple[SettingsFile, ...]:
    """Return the missing files that a saved plan's jobs read; changes nothing.

    Args:
        connection: the workspace.
        jobs: the settings of the plan's jobs.
        files: those that the settings make now.

    Raises:
        PlanRefused: the settings made another file when the plan was saved, and that one is not there.
    """
    paths = settings_paths(jobs)
    ours = {file.path: file for file in files if file.path in paths}
    if lost := sorted(path for path in paths - ours.keys() if size(connection, path) is None):
        raise PlanRefused(
            f"The plan's tasks read {', '.join(lost)}, which is not in the workspace and not made by these settings.",
            "Apply it with the settings that it was made with, or make it again.",
            paths=tuple(lost),
        )
    return missing(connection, ours.values())
