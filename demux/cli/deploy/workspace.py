"""Shared by the commands about a deployment: the wheel, the games, the deployment's lock, and plans as text."""

from __future__ import annotations

import getpass
import os
import socket
import uuid
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from demux.cli.command import console, session_to_look
from demux.core.control.games_and_rounds import Control
from demux.core.names import names_of
from demux.core.root.layout import cache_folder, layout_of
from demux.core.schemas.registry_selection import Registries, registered_games
from demux.core.settings.databricks.deployment import DatabricksSettings
from demux.core.settings.settings import Settings
from demux.core.text import printable
from install_workflow.databricks.api.client import WorkspaceConnection, login_of
from install_workflow.databricks.apply.apply_jobs import CallMoment, JobStep
from install_workflow.databricks.apply.deploy import DeploymentPreview, FileCall, FileStep, Removal, deployment_of
from install_workflow.databricks.apply.deployment_lock import DeploymentLock, InstallerId, LocalPresence, OnClaim
from install_workflow.databricks.apply.wheel import Wheel, find_wheel, is_our_wheel
from install_workflow.databricks.diff.changes import JobCall, WorkspacePlan
from install_workflow.databricks.diff.deployed_games import DiscoveredGames
from install_workflow.databricks.diff.render import as_text, content_of, with_names
from install_workflow.databricks.grants.diff import GrantsPlan
from install_workflow.databricks.grants.render import content_of as grants_content
from install_workflow.databricks.jobs.job import wheel_folder
from install_workflow.databricks.jobs.jobs_api import Workspace
from install_workflow.planning.plan import Action, waiting_lines
from install_workflow.planning.round_plan import balance_since, preview_round


def wheel_for(settings: DatabricksSettings, given: str | None) -> Wheel:
    """Return the wheel of the deployment; raises as `find_wheel`."""
    return find_wheel(given, wheel_folder(settings.wheel_path or "", deployment_of(settings)))


def discover_games(lock: DeploymentLock, settings: Settings, discovered: bool) -> DiscoveredGames:
    """Return the games that the registries name, and where wanted what bronze says of the games.

    Raises:
        DemuxError: as `registered_games`, and as `session_to_look`.
    """
    registered = registered_games(settings, Registries(settings, os.environ))
    if not discovered:
        return DiscoveredGames(registered=registered, recorded=lock.games)
    with session_to_look(settings, "plan", may_be_new=True) as spark:
        control = Control(spark, layout_of(settings))
        preview = preview_round(spark, settings, control)
        history = control.history()
    games = {change.task.game for change in preview.plan.changes} | {each.game for each in preview.plan.waiting}
    rebalance = balance_since(lock.last_change, history)
    return DiscoveredGames(frozenset(games), history.loads, registered, rebalance, lock.games)


def print_step(step: JobStep | FileStep) -> None:
    """Print a call that was made."""
    if line := step_line(step):
        console.print(line, soft_wrap=True)


def deployment_lock_of(workspace: Workspace, settings: DatabricksSettings) -> DeploymentLock:
    """Return our lock of the deployment, not held yet; raises as `deployment_of`."""
    process = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
    who = InstallerId(
        f"{_user()}@{socket.gethostname()}", process, LocalPresence(cache_folder(os.environ) / "installers")
    )
    folder, name = settings.wheel_path or "", deployment_of(settings)
    return DeploymentLock(workspace.connection, folder, name, who, lambda: datetime.now(timezone.utc), uuid.uuid4().hex)


def begin(workspace: Workspace, settings: DatabricksSettings, take_over: bool) -> DeploymentLock:
    """Return our lock, held; raises as `DeploymentLock.begin`."""
    lock = deployment_lock_of(workspace, settings)
    lock.begin(OnClaim.TAKE_OVER if take_over else OnClaim.REFUSE)
    return lock


def read_deployment_lock(workspace: Workspace, settings: DatabricksSettings) -> DeploymentLock:
    """Return our lock, not held, with the record as it is; raises as `DeploymentLock.look`."""
    lock = deployment_lock_of(workspace, settings)
    lock.look()
    return lock


def print_busy(lock: DeploymentLock) -> None:
    """Print which installer changes the deployment now, if one does; raises as `DeploymentLock.look`."""
    if claim := lock.look():
        since = f"{claim.at:%H:%M:%S} UTC ({claim.by}, process {claim.process})"
        console.print(f"! busy   another command installs {lock.deployment} since {printable(since)}", soft_wrap=True)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # a container's user may have no name
        return f"user {os.getuid()}"


_MARKS = {JobCall.CREATE: "+", JobCall.RESET: "~", JobCall.PERMIT: "~", JobCall.DELETE: "-"}


def plan_text(preview: DeploymentPreview, wheel: Wheel, everything: bool = False) -> str:
    """Return the files that are missing, the games that move and why, those that wait, and the plan of the jobs."""
    missing = [*([wheel.path] if preview.must_upload else []), *(file.path for file in preview.files)]
    lines = [f"+ upload {printable(path)}" for path in missing]
    lines += [
        f"~ game {printable(change.task.game)} to {change.task.cluster}: {change.reason}"
        for change in preview.games.changes
        if change.action is Action.UPDATE
    ]
    return "\n".join([*lines, *waiting_lines(preview.games.waiting), as_text(_shown(preview), everything)])


def plan_content(preview: DeploymentPreview, wheel: Wheel, grants: GrantsPlan | None) -> dict[str, Any]:
    """Return the plan as `content_of` has it, with more fields.

    They are: wheel (path, upload), settings_files (paths to upload), waiting (game, reason), and grants: null, or what
    `content_of` of grants has.
    """
    return {
        **content_of(_shown(preview)),
        "wheel": {"path": wheel.path, "upload": preview.must_upload},
        "settings_files": [file.path for file in preview.files],
        "waiting": [asdict(each) for each in preview.games.waiting],
        "grants": grants_content(grants) if grants else None,
    }


def _shown(preview: DeploymentPreview) -> WorkspacePlan:
    games = (change.task.game for change in preview.games.changes)
    return with_names(preview.plan, {names_of(game).key: game for game in games})


def removal_text(removal: Removal) -> str:
    """Return a line for each file that goes or stays, for the record and empty folders, then the plan of the jobs."""
    going = (*removal.files, *filter(None, [removal.record]), *removal.empty)
    lines = [f"- remove {printable(path)}" for path in going]
    lines += [f"- remove {printable(path)}, if nothing else is in it" for path in removal.made]
    lines += [
        f"! leave  {printable(path)}: a job of another deployment {'runs' if is_our_wheel(path) else 'reads'} it"
        for path in removal.shared
    ]
    return "\n".join([*lines, as_text(removal.plan)])


def step_line(step: JobStep | FileStep) -> str:
    """Return the line of a call that was made; "" for one that is only about to be."""
    match step:
        case FileStep(FileCall.UPLOAD, path):
            return f"+ upload {printable(path)}: done"
        case FileStep(_, path):
            return f"- remove {printable(path)}: done"
        case JobStep(CallMoment.AFTER, call, _, name, job_id):
            return f"{_MARKS[call]} {call.value:6} {printable(name)} (job {job_id}): done"
        case JobStep():
            return ""


def connect(settings: Settings) -> WorkspaceConnection:
    """Return the connection; asks the host once where it logs in.

    Raises:
        SecretMissing: the secret of the login is not there.
        WorkspaceRefused: there is no login.
    """
    return WorkspaceConnection(login_of(settings.databricks.login, os.environ))
