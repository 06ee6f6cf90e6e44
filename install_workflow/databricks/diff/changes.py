"""The difference between wanted and deployed jobs as data: one change each, with a reason. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from demux.core.errors import PlanRefused
from demux.core.settings.databricks.compute import Compute
from demux.core.text import count_text
from install_workflow.databricks.diff.details import (
    SERVERLESS,
    Detail,
    DifferenceKind,
    Places,
    permission_details,
    places,
    settings_details,
    task_details,
)
from install_workflow.databricks.diff.drift import sides
from install_workflow.databricks.diff.fields import comparable
from install_workflow.databricks.jobs.compute import compute_in, is_serverless
from install_workflow.databricks.jobs.job import (
    OWNER_TAG,
    PART_TAG,
    DeployedJob,
    ForeignJob,
    Job,
    called_first,
    parts_called,
    with_parts,
)
from install_workflow.databricks.jobs.task_arguments import engine_of
from install_workflow.planning.plan import digest

MAX_REMOVED_SHARE = 0.25

_OTHERS = {
    "cluster": "cluster setting",
    "environment": "environment setting",
    "job": "job setting",
    "permission": "permission",
}


class JobAction(Enum):
    """The action of a change on a job."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    REMOVE_DOUBLE = "remove double"
    KEEP = "keep"


class JobCall(Enum):
    """A call that a change takes; a create sets the permissions too."""

    CREATE = "create"
    RESET = "reset"
    PERMIT = "permit"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class JobChange:
    """The action on one job, and the reason.

    Attributes:
        calls: what applying it takes, in order.
        details: what differs, tasks first.
        job: as it should be; None when it goes.
    """

    action: JobAction
    part: str
    name: str
    job_id: int | None
    calls: tuple[JobCall, ...]
    reason: str
    details: tuple[Detail, ...] = ()
    job: Job | None = None


@dataclass(frozen=True, slots=True)
class WorkspacePlan:
    """All changes that lead from the deployed to the wanted jobs.

    Attributes:
        changes: in the order in which they are applied: who is called comes before who calls, who goes comes last.
        foreign: jobs that look like ours and are not, by id.
        state_id: 16 hex digits that depend on the compared state of the workspace alone.
        removed_games: how many of them would run no more.
    """

    changes: tuple[JobChange, ...]
    foreign: tuple[ForeignJob, ...]
    state_id: str
    deployed_games: int
    removed_games: int

    @property
    def plan_id(self) -> str:
        """12 hex digits that depend on the content alone."""
        content = [
            [each.part, each.job_id, [call.value for call in each.calls], _job_content(each.job)]
            for each in self.changes
        ]
        return digest([self.state_id, content])[:12]

    @property
    def is_empty(self) -> bool:
        """Whether applying the plan would change nothing."""
        return not any(change.calls for change in self.changes)

    @property
    def engine(self) -> str | None:
        """By which engine the games are decoded once the plan is applied; None where there are no games."""
        jobs = (comparable(change.job.settings) for change in self.changes if change.job is not None)
        return _engine(jobs)

    @property
    def compute(self) -> str | None:
        """The compute of the tasks once the plan is applied, as in `databricks.compute`; None without such tasks."""
        found = compute_in(change.job.settings for change in self.changes if change.job is not None)
        return None if found is None else found.value

    @property
    def paid_tasks(self) -> int:
        """How many tasks of the plan run on serverless compute, each paid for by itself."""
        jobs = (change.job.settings for change in self.changes if change.job is not None)
        return sum(is_serverless(task) for job in jobs for task in job.get("tasks", ()))


def compare(
    desired: Sequence[Job], deployed: Sequence[DeployedJob], foreign: Sequence[ForeignJob] = ()
) -> WorkspacePlan:
    """Return the plan that leads from the deployed to the desired jobs.

    Args:
        desired: the jobs as they should be, one of each part; () takes all of ours away.
        deployed: the jobs with the deployment's tag; the lowest id of a part stays, the others are doubles.
        foreign: jobs of other owners with a name of ours.
    """
    kept, doubles = _by_part(desired, deployed)
    ids = {job.job_id: part for part, job in kept.items()}
    now = {part: with_parts(comparable(job.settings), ids) for part, job in kept.items()}
    wanted = {job.part: comparable(job.settings) for job in sorted(desired, key=lambda job: job.part)}
    were, will_be = (places((part, side[part].get("tasks", {})) for part in side) for side in (now, wanted))
    jobs = {job.part: job for job in desired}
    why = _engine_changes(now.values(), wanted.values()) + _compute_changes(
        compute_in(job.settings for job in kept.values()), compute_in(job.settings for job in desired)
    )
    stay = [
        _change(jobs[part], kept.get(part), now.get(part, {}), wanted[part], were, will_be, why)
        for part in called_first({part: parts_called(settings) for part, settings in wanted.items()})
    ]
    gone = [part for part in called_first({part: parts_called(now[part]) for part in now}) if part not in wanted]
    leave = [_deletion(kept[part], now[part], were, will_be, jobs) for part in reversed(gone)]
    return WorkspacePlan(
        (*stay, *leave, *map(_double, doubles)),
        tuple(sorted(foreign, key=lambda job: job.job_id)),
        _state_id(deployed, foreign),
        len(were),
        len(were.keys() - will_be.keys()),
    )


def require_modest(plan: WorkspacePlan, max_removed_share: float = MAX_REMOVED_SHARE) -> None:
    """Let a plan pass that keeps enough of the games that run now.

    Raises:
        PlanRefused: it would remove more than this share of them.
    """
    if plan.removed_games > max_removed_share * plan.deployed_games:
        raise PlanRefused(
            f"The plan would remove {plan.removed_games} of {plan.deployed_games} games, "
            f"more than {max_removed_share:.0%} of them.",
            "Look at the plan; if that is meant, apply it with --force.",
            removed=plan.removed_games,
            deployed=plan.deployed_games,
        )


def require_no_twin(plan: WorkspacePlan) -> None:
    """Let a plan pass that makes no job beside one of its name that no tag claims.

    Such a job most likely is ours and lost its tag; the two would run on the same checkpoints.

    Raises:
        PlanRefused: it would.
    """
    made = {change.name for change in plan.changes if JobCall.CREATE in change.calls}
    if twins := [job for job in plan.foreign if not job.deployment and job.name in made]:
        named = ", ".join(f"{job.job_id} ({job.name})" for job in twins)
        raise PlanRefused(
            f"There are jobs without our tag whose names the plan would give once more: {named}.",
            f"Give it its tag {OWNER_TAG} back, rename or delete it; or, if it is not ours, apply with --force.",
            jobs=tuple(job.job_id for job in twins),
        )


def _by_part(
    desired: Sequence[Job], deployed: Sequence[DeployedJob]
) -> tuple[dict[str, DeployedJob], list[DeployedJob]]:
    """Return the job of each part, and the doubles by id.

    A job whose part is not wanted, or whose tag with it is gone, becomes the part with its name, if there is one.
    """
    named = {job.settings.get("name"): job.part for job in desired}
    wanted = {job.part for job in desired}
    kept: dict[str, DeployedJob] = {}
    doubles = []
    # a job that has its part's tag comes first
    for job in sorted(deployed, key=lambda job: (job.part not in wanted, job.job_id)):
        part = job.part if job.part in wanted else named.get(job.settings.get("name"), job.part)
        if part in kept:
            doubles.append(replace(job, part=part))
        else:
            kept[part] = replace(job, part=part)
    return kept, sorted(doubles, key=lambda job: job.job_id)


def _change(
    job: Job,
    deployed: DeployedJob | None,
    now: Mapping[str, Any],
    wanted: Mapping[str, Any],
    were: Places,
    will_be: Places,
    why: str,
) -> JobChange:
    name = str(job.settings.get("name", ""))
    if deployed is None:
        added = tuple(task_details(job.part, {}, wanted, were, will_be))
        reason = f"no such job yet: {count_text(len(added), 'task')} on {_where(wanted)}"
        return JobChange(JobAction.CREATE, job.part, name, None, (JobCall.CREATE,), reason, added, job)
    job, wanted = _run_by_owner(job, deployed, now, wanted)
    both = sides(now, wanted, deployed.filled)
    differing = settings_details(job.part, both.before, both.after, were, will_be)
    settings = tuple(_explained(each, both.by_hand) for each in differing)
    permissions = tuple(permission_details(deployed.permissions, job.permissions))
    calls = (*((JobCall.RESET,) if settings else ()), *((JobCall.PERMIT,) if permissions else ()))
    action = JobAction.UPDATE if calls else JobAction.KEEP
    details = (*settings, *permissions)
    reason = f"{why}{_summary(details)}" if settings else _summary(details)
    return JobChange(action, job.part, name, deployed.job_id, calls, reason, details, job)


def _where(wanted: Mapping[str, Any]) -> str:
    return SERVERLESS if wanted.get("environments") else count_text(len(wanted.get("job_clusters", {})), "cluster")


def _run_by_owner(
    job: Job, deployed: DeployedJob, now: Mapping[str, Any], wanted: Mapping[str, Any]
) -> tuple[Job, Mapping[str, Any]]:
    """Return the job to be sent, and what to compare: where no principal is named to run the job as, it is the owner.

    A reset without `run_as` changes nothing, so the owner is named where the job runs as another.
    """
    runs_as = now.get("run_as")
    if "run_as" in wanted or runs_as is None:
        return job, wanted
    if deployed.owner is None or runs_as == deployed.owner[1]:
        return job, {**wanted, "run_as": runs_as}
    kind, name = deployed.owner
    return replace(job, settings={**job.settings, "run_as": {kind.value: name}}), {**wanted, "run_as": name}


def _explained(detail: Detail, by_hand: Collection[tuple[str, str]]) -> Detail:
    """Return the detail, with the reason where a hand made the difference."""
    if detail.reason or (detail.subject, detail.field) not in by_hand:
        return detail
    match detail.difference:
        case DifferenceKind.REMOVED:
            return replace(detail, reason="set by hand")
        case DifferenceKind.ADDED:
            return replace(detail, reason="removed by hand")
        case _:
            return replace(detail, reason="changed by hand")


def _deletion(
    job: DeployedJob, now: Mapping[str, Any], were: Places, will_be: Places, wanted: Collection[str]
) -> JobChange:
    details = tuple(task_details(job.part, now, {}, were, will_be))
    if not wanted:
        reason = "the whole deployment goes"
    elif job.part:
        reason = "the plan has no such job any more"
    else:
        reason = f"its tag {PART_TAG} is gone, so its part is unknown"
    return _going(JobAction.DELETE, job, reason, details)


def _double(job: DeployedJob) -> JobChange:
    return _going(JobAction.REMOVE_DOUBLE, job, f"another job is part {job.part} already")


def _going(action: JobAction, job: DeployedJob, reason: str, details: tuple[Detail, ...] = ()) -> JobChange:
    name = str(job.settings.get("name", ""))
    return JobChange(action, job.part, name, job.job_id, (JobCall.DELETE,), reason, details)


def _engine_changes(now: Iterable[Mapping[str, Any]], wanted: Iterable[Mapping[str, Any]]) -> str:
    """Return the beginning of the reason of what changes with the engine; "" where that stays."""
    before, after = _engine(now), _engine(wanted)
    return f"engine {before} becomes {after}: " if before and after and before != after else ""


def _compute_changes(before: Compute | None, after: Compute | None) -> str:
    """Return the beginning of the reason of what changes with the compute; "" where that stays."""
    return f"compute {before.value} becomes {after.value}: " if before and after and before is not after else ""


def _engine(jobs: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the engine in the parameters of these jobs' tasks, from `comparable`; where they differ, all of them."""
    found = {engine_of(key, task) for job in jobs for key, task in job.get("tasks", {}).items()} - {None}
    return " and ".join(sorted(filter(None, found))) or None


def _summary(details: Iterable[Detail]) -> str:
    """Return how many tasks come, go, move and change, and how much else does."""
    tasks: dict[str, DifferenceKind] = {}
    others: Counter[str] = Counter()
    for detail in details:
        kind = "permission" if detail.field == "permission" else detail.subject.partition(" ")[0]
        if kind != "task":
            others[kind] += 1
        elif not detail.field or detail.difference is DifferenceKind.MOVED:
            tasks[detail.subject] = detail.difference
        else:
            tasks.setdefault(detail.subject, DifferenceKind.CHANGED)
    kinds = Counter(tasks.values())
    parts = [f"{count_text(kinds[kind], 'task')} {kind.value}" for kind in DifferenceKind if kinds[kind]]
    parts += [f"{count_text(others[kind], word)} changed" for kind, word in _OTHERS.items() if others[kind]]
    return ", ".join(parts) or "nothing changed"


def _state_id(deployed: Iterable[DeployedJob], foreign: Iterable[ForeignJob]) -> str:
    jobs = [
        [job.job_id, job.part, comparable(job.settings), sorted(each.sort_key for each in job.permissions)]
        for job in sorted(deployed, key=lambda job: job.job_id)
    ]
    return digest([jobs, sorted([job.job_id, job.name, job.deployment] for job in foreign)])[:16]


def _job_content(job: Job | None) -> object:
    return job and [job.settings, [permission.sort_key for permission in job.permissions]]
