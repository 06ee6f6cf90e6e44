"""`demux apply`: make it as the plan says."""

from __future__ import annotations

from pathlib import Path

import typer

from demux.cli.deploy_text import plan_text
from demux.cli.deployment import (
    DISCOVERED,
    WHEEL,
    YES,
    ask,
    games_seen,
    print_step,
    somebody_is_there,
    wheel_for,
)
from demux.cli.workplace import ROOT, SET, SETTINGS, console, settings_of
from demux.errors import SettingsInvalid
from install_workflow.databricks.changes import WorkspacePlan, require_modest, require_no_twin
from install_workflow.databricks.connection import Connection
from install_workflow.databricks.deploy import deployment_of, install, look, require_applicable
from install_workflow.databricks.render import as_text
from install_workflow.databricks.saved import from_text
from install_workflow.databricks.workspace import Workspace


def apply(
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
    saved: Path | None = typer.Option(
        None, "--plan", help="Apply this plan, unless the workspace changed since it was saved.", metavar="FILE"
    ),
    force: bool = typer.Option(
        False,
        "--force",
        help="Even where it removes more than a quarter of the games, or makes a second job of a name.",
    ),
    discovered: bool = DISCOVERED,
    wheel: str | None = WHEEL,
    yes: bool = YES,
) -> None:
    """Install the jobs in the workspace, or change them, so that they are as the settings want; again, nothing changes.

    On a terminal the plan is shown, and you are asked.

    Example: `demux apply --set databricks.name=prod --yes`
    """
    settings = settings_of(settings_file, root, changes)
    deployment_of(settings)
    workspace, found = Workspace(Connection()), wheel_for(settings, wheel)
    if saved is not None:
        chosen = _read(saved)
        require_applicable(chosen, workspace, settings, found)
        console.print(as_text(chosen), soft_wrap=True)
    else:
        outlook = look(workspace, settings, found, games_seen(settings, discovered))
        chosen = outlook.plan
        console.print(plan_text(outlook, found), soft_wrap=True)
        if chosen.is_empty and not outlook.must_upload:
            return
    if not force:
        require_no_twin(chosen)
        require_modest(chosen)
    if not yes and somebody_is_there():
        ask("Apply this plan?")
    install(workspace, found, chosen, print_step)
    console.print("applied")


def _read(file: Path) -> WorkspacePlan:
    try:
        return from_text(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise SettingsInvalid(
            f"The plan {file} cannot be read: {reason}.", "Save one: `demux plan --out FILE`.", path=str(file)
        ) from error
