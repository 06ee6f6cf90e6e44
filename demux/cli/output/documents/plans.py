"""JSON documents of plans: games, jobs, grants."""

from __future__ import annotations

from typing import Any

# pydantic takes none of `typing` before Python 3.12
from typing_extensions import NotRequired, TypedDict

from install_workflow.planning.sizing import SizedLoad, SizeEstimate


class PlanJson(TypedDict):
    """Which game runs where, and what changes; `action` is create, update, delete or keep."""

    plan_id: str
    changes: list[PlanChangeJson]
    waiting: list[WaitingGameJson]


class PlanChangeJson(TypedDict):
    """A game and its task."""

    action: str
    game: str
    task: str
    cluster: str
    reason: str


class WaitingGameJson(TypedDict):
    """A game that waits, and why."""

    game: str
    reason: str


class WorkspacePlanJson(TypedDict):
    """The changes in the workspace, where `databricks.name` is set."""

    plan_id: str
    state_id: str
    deployed_games: int
    removed_games: int
    engine: str | None
    compute: str | None
    changes: list[JobChangeJson]
    foreign: list[ForeignJobJson]
    wheel: WheelJson
    settings_files: list[str]
    waiting: list[WaitingGameJson]
    grants: GrantsJson | None


class JobChangeJson(TypedDict):
    """A job, the calls that change it, and the fields that differ."""

    action: str
    part: str
    name: str
    job_id: int | None
    calls: list[str]
    reason: str
    details: list[FieldChangeJson]


class FieldChangeJson(TypedDict):
    """A field of a job."""

    difference: str
    subject: str
    field: str
    before: Any
    after: Any
    reason: str


class ForeignJobJson(TypedDict):
    """A job of another deployment with a name of ours."""

    job_id: int
    name: str
    deployment: str | None


class WheelJson(TypedDict):
    """The wheel, and whether it is uploaded."""

    path: str
    upload: bool


class GrantsJson(TypedDict):
    """`done` and `failed` are of `grants apply` alone."""

    plan_id: str
    changes: list[GrantChangeJson]
    foreign: list[ForeignGrantsJson]
    waiting: list[WaitingGameJson]
    done: NotRequired[list[GrantJson]]
    failed: NotRequired[list[ErrorJson]]


class GrantJson(TypedDict):
    """A privilege of a principal on a catalog, schema or table."""

    kind: str
    on: str
    principal: str
    privilege: str


class GrantChangeJson(GrantJson):
    """A privilege, and the action on it."""

    action: str
    reason: str


class ForeignGrantsJson(TypedDict):
    """Privileges that others granted."""

    kind: str
    on: str
    principal: str
    privileges: list[str]
    reads: str
    wanted: bool


class ErrorJson(TypedDict):
    """An error of the runbook."""

    condition: str
    message: str
    remedy: str


class SizeJson(TypedDict):
    """What a load needs in a day, what it is, and what was assumed; `cpu_s` has the seconds of CPU of a round."""

    load: SizedLoad
    estimate: SizeEstimate
    assumptions: list[str]
