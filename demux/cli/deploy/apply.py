"""`demux apply`: make it as the plan says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from demux.cli.command import ask, can_ask, console
from demux.cli.deploy.grants import grants_left_out, make_grants
from demux.cli.deploy.local_plan import apply_here
from demux.cli.deploy.workspace import begin, connect, discover_games, plan_text, print_step, wheel_for
from demux.core.errors import SettingsInvalid
from demux.core.settings.settings import Settings
from install_workflow.databricks.apply.deploy import (
    deployment_of,
    install,
    preview_deployment,
    require_applicable,
    settle,
)
from install_workflow.databricks.apply.deployment_lock import DeploymentLock
from install_workflow.databricks.apply.wheel import Wheel, find_missing_plan_files
from install_workflow.databricks.diff.changes import WorkspacePlan, require_modest, require_no_twin
from install_workflow.databricks.diff.render import as_text, from_text
from install_workflow.databricks.grants.apply import GrantsPreview as Grants
from install_workflow.databricks.grants.apply import preview_beside_jobs
from install_workflow.databricks.grants.diff import require_modest as require_modest_grants
from install_workflow.databricks.grants.render import as_text as grants_text
from install_workflow.databricks.jobs.jobs_api import Workspace
from install_workflow.databricks.jobs.oversized_settings import SettingsFile
from install_workflow.databricks.jobs.task_arguments import arguments


def apply(
    settings: Settings,
    saved: Path | None,
    force: bool,
    discovered: bool,
    wheel: str | None,
    take_over: bool,
    wait: bool,
    yes: bool,
) -> None:
    """Install the jobs in the workspace, or change them to what the settings want; a second call changes nothing."""
    if settings.databricks.name is None and not (saved or wheel or force or discovered or take_over):
        apply_here(settings, wait, yes)
        return
    # the other options are about a workspace alone
    deployment_of(settings.databricks)
    if saved is not None and discovered:
        raise SettingsInvalid(
            "--plan and --discovered exclude each other: a saved plan is applied as it was saved.",
            "Save it by `demux plan --discovered --out FILE`, or leave out one of the two.",
        )
    workspace, found = Workspace(connect(settings)), wheel_for(settings.databricks, wheel)
    lock = begin(workspace, settings.databricks, take_over)
    read = _from_file(saved, workspace, settings, found, lock) if saved is not None else None
    coming = read or _made(workspace, settings, found, lock, discovered)
    if not force:
        coming.require_modest()
    if not coming.is_empty and not yes and can_ask():
        ask("Apply this plan?")
    _do(coming, workspace, found, lock)


@dataclass(frozen=True, slots=True)
class _Applied:
    """The parts of an apply.

    Attributes:
        known: names of games, for those that a task tells by their key.
        grants: what changes among the grants; None where nothing is granted.
    """

    plan: WorkspacePlan
    must_upload: bool
    files: tuple[SettingsFile, ...]
    known: frozenset[str]
    grants: Grants | None

    @property
    def has_jobs(self) -> bool:
        """Whether something changes but grants."""
        return not self.plan.is_empty or self.must_upload or bool(self.files)

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not self.has_jobs and (self.grants is None or self.grants.plan.is_empty)

    def require_modest(self) -> None:
        """Let it pass if it takes no more away than may go without --force."""
        if self.has_jobs:
            require_no_twin(self.plan)
            require_modest(self.plan)
        if self.grants is not None:
            require_modest_grants(self.grants.plan)


def _do(coming: _Applied, workspace: Workspace, wheel: Wheel, lock: DeploymentLock) -> None:
    if coming.has_jobs:
        install(workspace, wheel, coming.plan, print_step, lock, coming.known, coming.files)
    else:
        settle(workspace, coming.plan, lock, coming.known)
    if coming.grants is not None and not coming.grants.plan.is_empty:
        make_grants(coming.grants)
    if not coming.is_empty:
        console.print("applied")


def _made(workspace: Workspace, settings: Settings, wheel: Wheel, lock: DeploymentLock, discovered: bool) -> _Applied:
    """Make the plan again, and print it."""
    preview = preview_deployment(workspace, settings, wheel, discover_games(lock, settings, discovered), lock.filled)
    games = frozenset(task.game for task in preview.games.tasks)
    grants = preview_beside_jobs(workspace.connection, settings, games)
    console.print(plan_text(preview, wheel), soft_wrap=True)
    if sentence := grants_text(grants.plan) if grants else grants_left_out(settings):
        console.print(sentence, soft_wrap=True)
    known = games.union(settings.games.allow)
    return _Applied(preview.plan, preview.must_upload, preview.files, known, grants)


def _from_file(saved: Path, workspace: Workspace, settings: Settings, wheel: Wheel, lock: DeploymentLock) -> _Applied:
    """Take the plan from the file, and print it; it has no grants."""
    plan = _read(saved, workspace.connection.host)
    must_upload = require_applicable(plan, workspace, settings, wheel, lock.filled)
    jobs = [change.job.settings for change in plan.changes if change.job is not None]
    files = find_missing_plan_files(workspace.connection, jobs, arguments(settings).files)
    console.print(as_text(plan), soft_wrap=True)
    if sentence := grants_left_out(settings):
        console.print(sentence, soft_wrap=True)
    return _Applied(plan, must_upload, files, frozenset(settings.games.allow), None)


def _read(file: Path, host: str) -> WorkspacePlan:
    try:
        return from_text(file.read_text(encoding="utf-8"), host)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise SettingsInvalid(
            f"The plan {file} cannot be read: {reason}.", "Save one: `demux plan --out FILE`.", path=str(file)
        ) from error
