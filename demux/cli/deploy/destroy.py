"""`demux destroy`: remove what `demux apply` made."""

from __future__ import annotations

import typer

from demux.cli.command import ask_to_remove, console
from demux.cli.deploy.grants import raise_first, revoking_text, take_back
from demux.cli.deploy.local_plan import destroy_here, list_parts, place_to_remove, print_parts, remove_parts
from demux.cli.deploy.workspace import begin, connect, print_step, removal_text
from demux.core.control.deployments_table import forget_deployment, has_deployment
from demux.core.errors import DemuxError
from demux.core.settings.settings import Settings
from demux.pipeline.context import CommandContext
from install_workflow.databricks.apply.deploy import deployment_of, preview_removal, remove_all
from install_workflow.databricks.grants.apply import preview_revoking
from install_workflow.databricks.jobs.jobs_api import Workspace
from install_workflow.destroy.apply import is_unfinished
from install_workflow.destroy.plan import Folder, RootPart


def destroy(settings: Settings, tables: bool, checkpoints: bool, take_over: bool, wait: bool, yes: bool) -> None:
    """Remove what `demux apply` made: jobs, wheels, settings files, grants, record; or here, which game runs where."""
    parts = frozenset(part for part, asked in ((RootPart.TABLES, tables), (RootPart.CHECKPOINTS, checkpoints)) if asked)
    if settings.databricks.name is None:
        if take_over:
            # it is about a workspace alone
            deployment_of(settings.databricks)
        destroy_here(settings, parts, wait, yes)
    elif not parts:
        _destroy_deployment(settings, take_over, yes)
    else:
        with place_to_remove(settings, wait) as place:
            _destroy_deployment(settings, take_over, yes, place, list_parts(place, parts))
    kept = " and ".join(f"{part.value}s" for part in reversed(RootPart) if part not in parts)
    console.print(f"destroyed; the {kept} are as they were" if kept else "destroyed")


def _destroy_deployment(
    settings: Settings,
    take_over: bool,
    yes: bool,
    place: CommandContext | None = None,
    folders: tuple[Folder, ...] = (),
) -> None:
    workspace = Workspace(connect(settings))
    lock = begin(workspace, settings.databricks, take_over)
    removal = preview_removal(workspace, settings, lock)
    granted = preview_revoking(workspace.connection, settings.databricks)
    if text := revoking_text(granted):
        console.print(text, soft_wrap=True)
    console.print(removal_text(removal), soft_wrap=True)
    print_parts(folders)
    copied = place is not None and _has_copy(place, lock.deployment, folders)
    if copied:
        console.print(f"- forget where the games of {lock.deployment} ran (control/deployments)", soft_wrap=True)
    if removal.is_empty and not granted.kept.version and not folders and not copied:
        raise typer.Exit
    ask_to_remove(yes)
    refused: list[DemuxError] = []
    # the deployment is claimed before the first call; the jobs, which would write the tables again, go before those
    remove_all(workspace, removal, print_step, lock, lambda: refused.extend(take_back(granted, lock.keep)))
    if place is not None:
        remove_parts(place, folders)
        if copied:
            forget_deployment(place.spark, place.layout, lock.deployment)
    raise_first(refused)


def _has_copy(place: CommandContext, deployment: str, folders: tuple[Folder, ...]) -> bool:
    """Return whether the table of deployments stays and has rows of this one; half removed tables are not read."""
    goes = place.layout.deployments in {folder.path for folder in folders}
    return not goes and not is_unfinished(place.layout) and has_deployment(place.spark, place.layout, deployment)
