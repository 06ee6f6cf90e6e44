"""`demux destroy`: remove what `demux apply` made."""

from __future__ import annotations

from pathlib import Path

from demux.cli.deploy_text import removal_text
from demux.cli.deployment import YES, ask, print_step, somebody_is_there
from demux.cli.workplace import ROOT, SET, SETTINGS, console, settings_of
from demux.errors import SettingsInvalid
from install_workflow.databricks.connection import Connection
from install_workflow.databricks.deploy import deployment_of, look_at_removal, remove_all
from install_workflow.databricks.workspace import Workspace


def destroy(
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
    yes: bool = YES,
) -> None:
    """Remove the jobs and the wheels that `demux apply` made, and only these; tables and checkpoints stay.

    All of it is listed before, and you are asked.

    Example: `demux destroy`
    """
    settings = settings_of(settings_file, root, changes)
    deployment_of(settings)
    workspace = Workspace(Connection())
    removal = look_at_removal(workspace, settings)
    console.print(removal_text(removal), soft_wrap=True)
    if removal.is_empty:
        return
    if not yes:
        if not somebody_is_there():
            raise SettingsInvalid("Nobody can be asked, and --yes is not given.", "Give --yes; nothing was removed.")
        ask("Remove all this?")
    remove_all(workspace, removal, print_step)
    console.print("destroyed; the tables and checkpoints are as they were")
