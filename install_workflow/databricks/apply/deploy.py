"""The flow of a deployment: games, wanted jobs, deployed jobs, their difference, and its application."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from demux.core.errors import PlanRefused, SettingsInvalid
from demux.core.settings.databricks.deployment import DatabricksSettings
from demux.core.settings.settings import Settings
from install_workflow.databricks.api.workspace_files import files_in, is_empty_folder, remove, remove_empty, upload
from install_workflow.databricks.apply.apply_jobs import CallMoment, JobStep, apply
from install_workflow.databricks.apply.deployment_lock import DeploymentLock
from install_workflow.databricks.apply.wheel import (
    Wheel,
    find_missing_files,
    is_our_wheel,
    must_upload,
    upload_files,
    wheels_of,
)
from install_workflow.databricks.diff.changes import JobCall, WorkspacePlan, compare
from install_workflow.databricks.diff.deployed_games import (
    DiscoveredGames,
    Filled,
    PlacementOutcome,
    Places,
    deployed_places,
    plan_games,
    planned_places,
)
from install_workflow.databricks.diff.drift import filled_in
from install_workflow.databricks.diff.fields import comparable
from install_workflow.databricks.diff.render import require_same_state, require_unchanged
from install_workflow.databricks.grants.apply import GrantsApi, grants_files
from install_workflow.databricks.jobs.build import ALL, CONTINUOUS, job_name, make_jobs
from install_workflow.databricks.jobs.job import OWNER_TAG, Job, wheel_folder
from install_workflow.databricks.jobs.jobs_api import DeploymentJobs, Workspace
from install_workflow.databricks.jobs.oversized_settings import SettingsFile, is_our_settings, settings_paths
from install_workflow.databricks.jobs.task import MAINTAIN
from install_workflow.databricks.jobs.task_arguments import arguments
from install_workflow.planning.plan import Plan

# a job has 1,000 tasks at most, so bronze's job runs fewer parts than that
_MAX_PARTS = 999
NOTHING_FILLED: Filled = {}


@dataclass(frozen=True, slots=True)
class DeploymentPreview:
    """The wanted state, and the plan that leads to it."""

    games: Plan
    jobs: tuple[Job, ...]
    plan: WorkspacePlan
    must_upload: bool
    files: tuple[SettingsFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Removal:
    """All that `destroy` removes.

    Attributes:
        files: their paths, sorted.
        shared: those that jobs of other deployments run or read, and that stay.
        record: the folder of the deployment's record; None where there is none.
        empty: folders of the deployment with nothing in them, which a command that was killed left.
        made: the folders above these that apply made, the innermost first; those go that are empty then.
    """

    plan: WorkspacePlan
    folder: str
    files: tuple[str, ...]
    shared: tuple[str, ...]
    record: str | None
    empty: tuple[str, ...] = ()
    made: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to remove."""
        return self.plan.is_empty and not self.files and self.record is None and not self.empty


class FileCall(Enum):
    """A call that is about a file."""

    UPLOAD = "upload"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class FileStep:
    """A call about a file that was made."""

    call: FileCall
    path: str


Report = Callable[[JobStep | FileStep], None]


def preview_deployment(
    workspace: Workspace, settings: Settings, wheel: Wheel, discovered: DiscoveredGames, filled: Filled = NOTHING_FILLED
) -> DeploymentPreview:
    """Return the wanted state and the plan that leads to it; changes nothing.

    Args:
        filled: what the server had added to each job, as the record has it.

    Raises:
        SettingsInvalid, PlanRefused: as `make_jobs` and `make_plan`; there is no wheel, or no such catalog; another
            deployment's root.
        DemuxError: as the calls of `Workspace`.
    """
    name = deployment_of(settings.databricks)
    _require_catalog(workspace, settings.tables.catalog)
    found = workspace.find(name, _names(name), settings.root)
    _require_own_root(found, settings.root)
    games = plan_games(found.jobs, settings, discovered)
    jobs = make_jobs(games.tasks, settings, wheel.path)
    plan = _compared(jobs, found, filled)
    files = find_missing_files(workspace.connection, arguments(settings).files)
    return DeploymentPreview(games, jobs, plan, must_upload(workspace.connection, wheel), files)


def install(
    workspace: Workspace,
    wheel: Wheel,
    plan: WorkspacePlan,
    report: Report,
    lock: DeploymentLock,
    known: Collection[str] = (),
    files: Sequence[SettingsFile] = (),
) -> None:
    """Upload the wheel and files that are missing, then make each call of the plan; again, it changes nothing.

    Args:
        plan: made from a state that was read after `lock` was taken.
        lock: ours, held.
        known: names of games, for those that a task tells by their key.

    Raises:
        DemuxError: as the calls of `Workspace`, and as `DeploymentLock.run`; what was done stays.
    """
    names = {*known, *lock.games}

    def work() -> PlacementOutcome:
        upload_wheel(workspace, wheel, report)
        upload_files(workspace.connection, files, lambda path: report(FileStep(FileCall.UPLOAD, path)))
        ids = apply(workspace, plan, _keeping(lock, report))
        return PlacementOutcome(planned_places(plan, ids, names), _filled(workspace, plan, ids, lock.filled))

    lock.run(plan.plan_id, work, lambda: _places_now(workspace, lock, names), _written(plan))


def settle(workspace: Workspace, plan: WorkspacePlan, lock: DeploymentLock, known: Collection[str] = ()) -> bool:
    """Return whether the record had to be put right, where the plan has nothing to do; the arguments as for `install`.

    Raises:
        DemuxError: as `DeploymentLock.heal`.
    """
    assert plan.is_empty, "a plan with calls is installed"
    ids = apply(workspace, plan)
    places = planned_places(plan, ids, {*known, *lock.games})
    return lock.heal(plan.plan_id, PlacementOutcome(places, _filled(workspace, plan, ids, lock.filled)))


def upload_wheel(workspace: Workspace, wheel: Wheel, report: Callable[[FileStep], None]) -> None:
    """Upload the wheel where it is missing; again, it changes nothing."""
    if wheel.content is not None and upload(workspace.connection, wheel.path, wheel.content):
        report(FileStep(FileCall.UPLOAD, wheel.path))


def preview_removal(workspace: Workspace, settings: Settings, lock: DeploymentLock) -> Removal:
    """Return all that apply made and that is there still; changes nothing. Our lock is held."""
    name = deployment_of(settings.databricks)
    plan = compare((), workspace.find(name, ()).jobs)
    wheels = settings.databricks.wheel_path or ""
    folder = wheel_folder(wheels, name)
    folders = (folder, lock.folder, grants_files(workspace.connection, wheels, name).folder)
    ours = [path for path in files_in(workspace.connection, folder) if is_our_wheel(path) or is_our_settings(path)]
    others = workspace.others(name) if ours else ()
    shared = wheels_of(others) | settings_paths(others)
    return Removal(
        plan,
        folder,
        tuple(path for path in ours if path not in shared),
        tuple(path for path in ours if path in shared),
        lock.folder if lock.has_record else None,
        tuple(each for each in folders if is_empty_folder(workspace.connection, each)),
        lock.made,
    )


def remove_all(
    workspace: Workspace,
    removal: Removal,
    report: Report,
    lock: DeploymentLock,
    first: Callable[[], None] = lambda: None,
) -> None:
    """Remove the jobs, then the wheels and settings files and their folder, then the record, then folders above it.

    Again, it removes what was left.

    Args:
        lock: ours, held.
        first: what comes before all that, once the deployment is claimed.

    Raises:
        DemuxError: as the calls of `Workspace`, as `DeploymentLock.run` and as `first`; what was done stays.
    """

    def work() -> PlacementOutcome:
        first()
        apply(workspace, removal.plan, _keeping(lock, report))
        for path in removal.files:
            lock.keep()
            if remove(workspace.connection, path):
                report(FileStep(FileCall.REMOVE, path))
        for folder in (removal.folder, *removal.empty):
            # what another command has just written there stays
            if remove_empty(workspace.connection, folder) and folder in removal.empty:
                report(FileStep(FileCall.REMOVE, folder))
        lock.forget()
        if removal.record is not None:
            report(FileStep(FileCall.REMOVE, removal.record))
        for folder in removal.made:
            if remove_empty(workspace.connection, folder):
                report(FileStep(FileCall.REMOVE, folder))
        return PlacementOutcome()

    lock.run(removal.plan.plan_id, work, lambda: _places_now(workspace, lock, lock.games), _written(removal.plan))


def require_applicable(
    saved: WorkspacePlan, workspace: Workspace, settings: Settings, wheel: Wheel, filled: Filled = NOTHING_FILLED
) -> bool:
    """Let a saved plan pass if it is about this deployment and this wheel, and the workspace is as it was.

    Returns whether the wheel is not there yet; `filled` is as for `preview_deployment`.

    Raises:
        PlanRefused: it is not, or the file was changed.
        SettingsInvalid: the wheel is not there, and is not ours to upload; there is no such catalog.
    """
    name = deployment_of(settings.databricks)
    jobs = [change.job for change in saved.changes if change.job is not None]
    owners = {str(job.settings.get("tags", {}).get(OWNER_TAG)) for job in jobs} - {name}
    wheels = wheels_of(job.settings for job in jobs) - {wheel.path}
    for what, others, this in (("deployment", owners, name), ("wheel", wheels, wheel.path)):
        if others:
            raise PlanRefused(
                f"The plan {saved.plan_id} was saved for the {what} {', '.join(sorted(others))}, and this is {this}.",
                "Apply it with the settings and the code that it was made with, or make it again.",
            )
    _require_catalog(workspace, settings.tables.catalog)
    found = workspace.find(name, {change.name for change in saved.changes}, settings.root)
    _require_own_root(found, settings.root)
    now = _compared(jobs, found, filled)
    require_same_state(saved, now)
    require_unchanged(saved, now)
    return must_upload(workspace.connection, wheel)


def deployment_of(databricks: DatabricksSettings) -> str:
    """Return the deployment's name.

    Raises:
        SettingsInvalid: there is none.
    """
    if databricks.name is None:
        raise SettingsInvalid(
            "databricks.name is not set, so there is no deployment in a workspace.",
            "Set databricks.name, or run the games on this machine by `demux run`.",
        )
    return databricks.name


def _compared(jobs: Sequence[Job], deployed_jobs: DeploymentJobs, filled: Filled) -> WorkspacePlan:
    """Return the plan, which mentions a foreign job only where one of ours has its name."""
    names = {*(job.settings.get("name") for job in jobs), *(job.settings.get("name") for job in deployed_jobs.jobs)}
    deployed = [replace(job, filled=filled.get(job.job_id)) for job in deployed_jobs.jobs]
    return compare(jobs, deployed, [job for job in deployed_jobs.foreign if job.name in names])


def _written(plan: WorkspacePlan) -> frozenset[int]:
    """Return the ids of the jobs whose settings the plan writes, or that it removes."""
    changed = (each.job_id for each in plan.changes if {JobCall.RESET, JobCall.DELETE} & {*each.calls})
    return frozenset(job_id for job_id in changed if job_id is not None)


def _filled(workspace: Workspace, plan: WorkspacePlan, ids: Mapping[str, int], known: Filled) -> Filled:
    """Return the fields that the server added to each job; asks for jobs that were just written."""
    result = {}
    for change in plan.changes:
        if change.job is None:
            continue
        job_id = ids[change.part]
        if job_id in known:
            result[job_id] = known[job_id]
        elif (settings := workspace.settings_of(job_id)) is not None:
            result[job_id] = filled_in(comparable(settings), comparable(change.job.settings))
    return result


def _keeping(lock: DeploymentLock, report: Report) -> Callable[[JobStep], None]:
    """Return a callback that renews our claim before each call, and passes its argument on."""

    def report_step(step: JobStep) -> None:
        if step.moment is CallMoment.BEFORE:
            lock.keep()
        report(step)

    return report_step


def _places_now(workspace: Workspace, lock: DeploymentLock, known: Iterable[str]) -> Places:
    return deployed_places(workspace.find(lock.deployment, ()).jobs, known)


def _require_catalog(workspace: Workspace, catalog: str | None) -> None:
    if catalog is not None:
        GrantsApi(workspace.connection).require(catalog)


def _require_own_root(deployed_jobs: DeploymentJobs, root: str) -> None:
    if deployed_jobs.sharing:
        named = ", ".join(f"{job.deployment} (job {job.job_id})" for job in deployed_jobs.sharing)
        raise PlanRefused(
            f"There are jobs of other deployments on the root {root}, which would run the same checkpoints: {named}.",
            "Name another root, or destroy the other deployment first.",
            jobs=tuple(job.job_id for job in deployed_jobs.sharing),
        )


def _names(deployment: str) -> frozenset[str]:
    """Every name that a job of the deployment can have: which ones it needs is known only after its jobs are."""
    numbered = (f"{kind}{number:03d}" for kind in ("", "n") for number in range(1, _MAX_PARTS + 1))
    return frozenset(job_name(deployment, part) for part in (ALL, CONTINUOUS, MAINTAIN, *numbered))
