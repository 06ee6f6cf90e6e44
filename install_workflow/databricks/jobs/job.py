"""A job as it should be, and as the workspace has it. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from demux.core.errors import PlanRefused
from demux.core.settings.databricks.access import AccessLevel, PrincipalKind

# a job's settings as JSON of the Jobs API 2.2
JobJson = Mapping[str, Any]

# tag with the deployment's name: whose job it is
OWNER_TAG = "protobuf_demux"
# tag with the job's part: `all`, `bronze`, `001`, …
PART_TAG = "protobuf_demux_part"
# tag with what `root_tag` makes of the root: whose checkpoints it runs
ROOT_TAG = "protobuf_demux_root"


def root_tag(root: str) -> str:
    """Return 12 hex digits that identify a root: a tag has no room for a path."""
    return hashlib.sha256(root.rstrip("/").encode()).hexdigest()[:12]


# kind and name
Principal = tuple[PrincipalKind, str]


@dataclass(frozen=True, slots=True)
class Permission:
    """The permission of one principal on a job.

    Attributes:
        kind: what the principal is; the value is the field of the Permissions API.
        principal: its name there (for a service principal, the application id).
    """

    kind: PrincipalKind
    principal: str
    level: AccessLevel

    @property
    def sort_key(self) -> tuple[str, str, str]:
        """The sort key of permissions."""
        return self.kind.value, self.principal, self.level.value


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it should be.

    Attributes:
        part: which of the deployment's jobs it is, unique in a deployment.
        settings: `JobSettings` of the Jobs API as JSON; a reference to another part's job is `${part:<part>}`.
        permissions: sorted, beside the owner's.
    """

    part: str
    settings: JobJson
    permissions: tuple[Permission, ...] = ()


@dataclass(frozen=True, slots=True)
class DeployedJob:
    """A job as the workspace has it.

    Attributes:
        settings: as the server gives them, its defaults included.
        permissions: beside the owner's, and without inherited ones.
        owner: who owns it; None where we may not see that.
        filled: what the server had added after our last write, from `filled_in`; None where that is not known.
    """

    job_id: int
    part: str
    settings: JobJson
    permissions: tuple[Permission, ...] = ()
    owner: Principal | None = None
    filled: JobJson | None = None


@dataclass(frozen=True, slots=True)
class ForeignJob:
    """A job with a name of ours that is not ours, and that is left alone.

    Attributes:
        deployment: whose it is by its tag; "" without a tag of ours.
    """

    job_id: int
    name: str
    deployment: str = ""


def wheel_folder(wheel_path: str, deployment: str) -> str:
    """Return the folder of one deployment's wheels: what is in it is ours to remove."""
    return f"{wheel_path.rstrip('/')}/{deployment}"


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
