"""`demux plan` with a deployment: what would change in the workspace."""

from __future__ import annotations

from pathlib import Path

from demux.cli.command import console
from demux.cli.deploy.grants import grants_left_out
from demux.cli.deploy.workspace import (
    connect,
    deployment_lock_of,
    discover_games,
    plan_content,
    plan_text,
    print_busy,
    wheel_for,
)
from demux.cli.output.print_json import print_json
from demux.core.errors import StorageFailed
from demux.core.settings.settings import Settings
from demux.core.text import printable
from install_workflow.databricks.apply.deploy import deployment_of, preview_deployment
from install_workflow.databricks.diff.render import to_text
from install_workflow.databricks.grants.apply import preview_beside_jobs
from install_workflow.databricks.grants.render import as_text as grants_text
from install_workflow.databricks.jobs.jobs_api import Workspace


def plan_workspace(
    settings: Settings, json: bool, everything: bool, out: Path | None, discovered: bool, wheel: str | None
) -> None:
    """Print the changes in the workspace, and save the plan to `out`; options as of `demux plan`.

    Raises:
        SettingsInvalid: no deployment is named.
    """
    deployment_of(settings.databricks)
    workspace = Workspace(connect(settings))
    found = wheel_for(settings.databricks, wheel)
    lock = deployment_lock_of(workspace, settings.databricks)
    if json:
        lock.look()
    else:
        print_busy(lock)
    preview = preview_deployment(workspace, settings, found, discover_games(lock, settings, discovered), lock.filled)
    if out is not None:
        _save(out, to_text(preview.plan, workspace.connection.host))
    granting = preview_beside_jobs(workspace.connection, settings, (task.game for task in preview.games.tasks))
    if json:
        print_json(plan_content(preview, found, granting.plan if granting else None))
        return
    console.print(plan_text(preview, found, everything), soft_wrap=True)
    if granting is not None:
        console.print(grants_text(granting.plan, everything), soft_wrap=True)
    if (granting is None or out is not None) and (sentence := grants_left_out(settings)):
        console.print(sentence, soft_wrap=True)
    if out is not None:
        console.print(f"saved to {printable(str(out))}", soft_wrap=True)


def _save(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageFailed(
            f"The plan cannot be saved to {file}: {error.strerror or error}.",
            "Name a file that can be written with --out FILE.",
            path=str(file),
        ) from error
