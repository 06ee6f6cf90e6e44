"""Applies a plan to a workspace's jobs: one call for each job that changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Protocol

from install_workflow.databricks.diff.changes import JobCall, JobChange, WorkspacePlan
from install_workflow.databricks.jobs.job import Job, JobJson, Permission, with_ids


class Jobs(Protocol):
    """The calls that change jobs, as `Workspace` has them."""

    def create(self, settings: JobJson, permissions: Sequence[Permission], again: Callable[[], None]) -> int:
        """Return the id of the new job; `again` is called before a create that is repeated."""
        ...

    def reset(self, job_id: int, settings: JobJson) -> None:
        """Replace all settings."""
        ...

    def permit(self, job_id: int, permissions: Sequence[Permission]) -> None:
        """Replace all permissions but the owner's."""
        ...

    def delete(self, job_id: int) -> None:
        """Delete the job if it is there."""
        ...


class CallMoment(Enum):
    """On which side of a call."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class JobStep:
    """One call, about to be made or made.

    Attributes:
        job_id: the job's id; None before it is created.
    """

    moment: CallMoment
    call: JobCall
    part: str
    name: str
    job_id: int | None


def apply(jobs: Jobs, plan: WorkspacePlan, report: Callable[[JobStep], None] = lambda _: None) -> dict[str, int]:
    """Apply the plan, and return the id of each part's job.

    Stops at the first call that fails; what was done stays. Planned again and applied again, the end is the same.

    Args:
        plan: made from the state that the workspace is in.
        report: called before and after each call, and before a create that is repeated.

    Raises:
        DemuxError: as the calls of `Workspace` do.
    """
    ids = {change.part: change.job_id for change in plan.changes if change.job and change.job_id is not None}
    for change in plan.changes:
        for call in change.calls:
            before = partial(report, _step(CallMoment.BEFORE, call, change, change.job_id))
            before()
            job_id = _made(jobs, call, change, ids, before)
            report(_step(CallMoment.AFTER, call, change, job_id))
    return ids


def _made(jobs: Jobs, call: JobCall, change: JobChange, ids: dict[str, int], again: Callable[[], None]) -> int:
    """Return the id of the job that the call was about."""
    if call is JobCall.CREATE:
        job = _wanted(change)
        ids[job.part] = jobs.create(with_ids(job.settings, ids), job.permissions, again)
        return ids[job.part]
    assert change.job_id is not None, "only a job that is created has no id"
    match call:
        case JobCall.RESET:
            jobs.reset(change.job_id, with_ids(_wanted(change).settings, ids))
        case JobCall.PERMIT:
            jobs.permit(change.job_id, _wanted(change).permissions)
        case JobCall.DELETE:
            jobs.delete(change.job_id)
    return change.job_id


def _wanted(change: JobChange) -> Job:
    assert change.job is not None, "only a job that goes is not wanted"
    return change.job


def _step(moment: CallMoment, call: JobCall, change: JobChange, job_id: int | None) -> JobStep:
    return JobStep(moment, call, change.part, change.name, job_id)
