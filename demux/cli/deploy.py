"""`demux plan`, `apply` and `destroy`: the jobs of a workspace as the settings want them, or what would be done."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from demux.cli.deploy_text import plan_json, plan_text, removal_text, step_line
from demux.cli.flow import local_plan
from demux.cli.workplace import ROOT, SET, SETTINGS, console, settings_of, workplace
from demux.errors import ExitCode, SettingsInvalid, StorageFailed
from demux.settings import Settings
from demux.text import printable
from install_workflow.databricks.apply import Step
from install_workflow.databricks.changes import WorkspacePlan, require_modest, require_no_twin
from install_workflow.databricks.connection import Connection
from install_workflow.databricks.deploy import (
    FileStep,
    deployment_of,
    install,
    look_at_removal,
    remove_all,
    require_applicable,
)
from install_workflow.databricks.deploy import look as look_at_workspace
from install_workflow.databricks.render import as_text
from install_workflow.databricks.running import Discovered
from install_workflow.databricks.saved import from_text, to_text
from install_workflow.databricks.wheel import Wheel, find_wheel, wheel_folder
from install_workflow.databricks.workspace import Workspace
from install_workflow.run import look

WHEEL = typer.Option(
    None, "--wheel", help="Wheel to install: a file, or a path in the workspace. Default: built from the checkout."
)
DISCOVERED = typer.Option(False, "--discovered", help="Also take the games that bronze has; needs Spark.")
YES = typer.Option(False, "--yes", "-y", help="Do not ask.")


def plan(
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
    json: bool = typer.Option(False, "--json", help="Print the plan as JSON."),
    everything: bool = typer.Option(False, "--all", help="Also list what stays as it is."),
    out: Path | None = typer.Option(None, "--out", help="Save the plan for `demux apply --plan FILE`.", metavar="FILE"),
    discovered: bool = DISCOVERED,
    wheel: str | None = WHEEL,
) -> None:
    """Show which game would run where, what would change, and which games wait; change nothing.

    With `databricks.name` it is about the jobs in the workspace.

    Example: `demux plan --set games.limit=10`
    """
    settings = settings_of(settings_file, root, changes)
    if settings.databricks.name is None:
        if out is not None or discovered or wheel is not None:
            # these are about a workspace alone
            deployment_of(settings)
        local_plan(settings, json, everything)
        return
    workspace = Workspace(Connection())
    found = wheel_for(settings, wheel)
    outlook = look_at_workspace(workspace, settings, found, games_seen(settings, discovered))
    if out is not None:
        _save(out, to_text(outlook.plan))
    if json:
        console.print(plan_json(outlook, found), soft_wrap=True)
        return
    console.print(plan_text(outlook, found, everything), soft_wrap=True)
    if out is not None:
        console.print(f"saved to {printable(str(out))}", soft_wrap=True)


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
        outlook = look_at_workspace(workspace, settings, found, games_seen(settings, discovered))
        chosen = outlook.plan
        console.print(plan_text(outlook, found), soft_wrap=True)
        if chosen.is_empty and not outlook.must_upload:
            return
    if not force:
        require_no_twin(chosen)
        require_modest(chosen)
    if not yes and _somebody_is_there():
        _ask("Apply this plan?")
    install(workspace, found, chosen, _print_step)
    console.print("applied")


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
        if not _somebody_is_there():
            raise SettingsInvalid("Nobody can be asked, and --yes is not given.", "Give --yes; nothing was removed.")
        _ask("Remove all this?")
    remove_all(workspace, removal, _print_step)
    console.print("destroyed; the tables and checkpoints are as they were")


def wheel_for(settings: Settings, given: str | None) -> Wheel:
    """Return the wheel of the deployment; raises as `find_wheel`."""
    return find_wheel(given, wheel_folder(settings.databricks.wheel_path or "", deployment_of(settings)))


def games_seen(settings: Settings, discovered: bool) -> Discovered:
    """Return what bronze says of the games, by Spark; nothing where that is not wanted."""
    if not discovered:
        return Discovered()
    with workplace(settings, "plan", lock=False) as place:
        outlook = look(place.spark, place.settings, place.control)
        history = place.control.history()
    games = {change.task.game for change in outlook.plan.changes} | {each.game for each in outlook.plan.waiting}
    return Discovered(frozenset(games), history.loads)


def _print_step(step: Step | FileStep) -> None:
    if line := step_line(step):
        console.print(line, soft_wrap=True)


def _somebody_is_there() -> bool:
    # a task on a cluster may have no standard input at all
    return sys.stdin is not None and sys.stdin.isatty()


def _ask(question: str) -> None:
    if not typer.confirm(question):
        console.print("nothing was changed")
        raise typer.Exit(ExitCode.INTERRUPTED)


def _save(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageFailed(
            f"The plan cannot be saved to {file}: {error.strerror or error}.",
            "Name a file that can be written with --out FILE.",
            path=str(file),
        ) from error


def _read(file: Path) -> WorkspacePlan:
    try:
        return from_text(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise SettingsInvalid(
            f"The plan {file} cannot be read: {reason}.", "Save one: `demux plan --out FILE`.", path=str(file)
        ) from error
