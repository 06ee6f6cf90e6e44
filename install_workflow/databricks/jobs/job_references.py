"""A job's calls of another job of the deployment: by part where we write them, by id in the workspace. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from demux.core.errors import PlanRefused
from install_workflow.databricks.jobs.job import JobJson

_REFERENCE = re.compile(r"\$\{part:(.+)\}")
_TASK = "run_job_task"


def with_parts(settings: Mapping[str, Any], parts: Mapping[int, str]) -> dict[str, Any]:
    """Return comparable settings with the ids of our own jobs written as `${part:<part>}`; other ids stay."""
    tasks = {
        key: _calling(task, f"${{part:{parts[_called(task)]}}}") if _called(task) in parts else task
        for key, task in settings.get("tasks", {}).items()
    }
    return {**settings, "tasks": tasks} if tasks else dict(settings)


def with_ids(settings: JobJson, ids: Mapping[str, int]) -> dict[str, Any]:
    """Return settings for the Jobs API, each `${part:<part>}` replaced by the id of the part's job.

    Raises:
        PlanRefused: a part that is called has no job.
    """
    result = dict(settings)
    if "tasks" in result:
        result["tasks"] = [_with_id(task, ids) for task in result["tasks"]]
    return result


def parts_called(settings: Mapping[str, Any]) -> frozenset[str]:
    """Return the parts that comparable settings call by `${part:<part>}`."""
    found = (_part(_called(task)) for task in settings.get("tasks", {}).values())
    return frozenset(part for part in found if part is not None)


def called_first(calls: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """Return the parts so that each comes behind those that it calls, else sorted; of a circle, any comes first."""
    order: dict[str, None] = {}
    begun: set[str] = set()

    def visit(part: str) -> Iterator[str]:
        if part in calls and part not in begun:
            begun.add(part)
            for called in sorted(calls[part]):
                yield from visit(called)
            yield part

    for part in sorted(calls):
        order.update(dict.fromkeys(visit(part)))
    return tuple(order)


def _with_id(task: Mapping[str, Any], ids: Mapping[str, int]) -> Mapping[str, Any]:
    part = _part(_called(task))
    if part is None:
        return task
    if part not in ids:
        raise PlanRefused(
            f"The task {task.get('task_key')} runs the job of part {part}, and there is none.",
            "Make the plan again: `demux plan`.",
            part=part,
        )
    return _calling(task, ids[part])


def _calling(task: Mapping[str, Any], job: int | str) -> dict[str, Any]:
    return {**task, _TASK: {**task[_TASK], "job_id": job}}


def _called(task: Mapping[str, Any]) -> Any:
    return task.get(_TASK, {}).get("job_id")


def _part(called: object) -> str | None:
    found = _REFERENCE.fullmatch(called) if isinstance(called, str) else None
    return found[1] if found else None
