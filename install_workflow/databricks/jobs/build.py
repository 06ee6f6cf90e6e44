"""The plan as jobs of a Databricks workspace. Pure, and the same for the same plan, settings and wheel."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from demux.core.errors import PlanRefused, SettingsInvalid
from demux.core.settings.databricks.access import PermissionSettings, PrincipalKind
from demux.core.settings.databricks.compute import Compute
from demux.core.settings.databricks.deployment import MAX_TASKS_PER_JOB, DatabricksSettings, Granularity
from demux.core.settings.databricks.schedule import ScheduleKind
from demux.core.settings.settings import Engine, Settings
from install_workflow.databricks.jobs.compute import (
    BRONZE,
    MAX_CLUSTERS_PER_JOB,
    MAX_CONTEXTS,
    by_cluster,
    compute_json,
)
from install_workflow.databricks.jobs.job import OWNER_TAG, PART_TAG, ROOT_TAG, Job, Permission, root_tag
from install_workflow.databricks.jobs.schedule import (
    OF_RUNS,
    OF_STREAMS,
    notification_fields,
    run_as,
    start_fields,
    started_every,
)
from install_workflow.databricks.jobs.task import (
    KAFKA_CLIENT,
    MAINTAIN,
    TaskJson,
    TaskMaker,
    cluster_tasks,
    maker,
    run_job,
)
from install_workflow.planning.plan import Task

ALL = "all"
CONTINUOUS = "continuous"
_PREFIX = "Game_Protobufs_wrapper"
# a run of these has the name of the deployment itself
_MAIN = frozenset({ALL, BRONZE})


def make_jobs(tasks: Iterable[Task], settings: Settings, wheel: str) -> tuple[Job, ...]:
    """Return the jobs that run the plan's tasks, each job behind those that it runs.

    One job has bronze, and behind it the games' tasks. What is too much for one job (`databricks.tasks_per_job` tasks,
    100 clusters) goes into jobs of its own, which bronze's job then runs. A continuous job may have no task that waits
    for another: it is one more job, which runs the first one. Maintenance is a job of its own, with a cluster and a
    schedule of its own (`maintain.every`).

    Raises:
        SettingsInvalid: no name, a path that no cluster reaches, or a value that the workspace would replace.
        PlanRefused: a cluster has more tasks than the platform allows, or a name that it does not.
    """
    databricks = settings.databricks
    if databricks.name is None:
        raise SettingsInvalid(
            "databricks.name is not set, so there is no deployment.",
            "Set databricks.name, or run the games on this machine by `demux run`.",
        )
    make, clusters = maker(settings, wheel), by_cluster(tasks)
    require_contexts(clusters, settings)
    others = 2 if databricks.auto_apply else 1
    if fits(clusters, settings, others):
        jobs = [_whole(make, clusters)]
    else:
        parts = split(clusters, settings)
        _require_room(len(parts) + others, settings)
        chosen = {part: {name: clusters[name] for name in names} for part, names in parts.items()}
        jobs = [*(_part(make, part, games) for part, games in chosen.items()), _bronze(make, sorted(parts))]
    if databricks.schedule.kind is ScheduleKind.CONTINUOUS:
        jobs.append(_continuous(settings, jobs[-1].part))
    if (interval := settings.maintain.interval) is not None:
        jobs.append(_maintain(make, interval))
    return tuple(jobs)


def job_name(deployment: str, part: str) -> str:
    """Return the name of a part's job."""
    return f"{_PREFIX}_{deployment}" if part in _MAIN else f"{_PREFIX}_{deployment}_{part}"


def _whole(make: TaskMaker, clusters: Mapping[str, Sequence[Task]]) -> Job:
    games = [task for name, tasks in clusters.items() for task in make.games(name, tasks, [BRONZE])]
    return _main(make, ALL, games, [BRONZE, *clusters])


def _bronze(make: TaskMaker, parts: Iterable[str]) -> Job:
    return _main(make, BRONZE, [run_job(f"run_{part}", part, [BRONZE]) for part in parts], [BRONZE])


def _main(make: TaskMaker, part: str, after_bronze: Sequence[TaskJson], clusters: Iterable[str]) -> Job:
    databricks = make.settings.databricks
    tasks = [make.ingest(), *after_bronze]
    if databricks.auto_apply:
        tasks.append(make.discovered([task["task_key"] for task in tasks]))
    starts = {} if databricks.schedule.kind is ScheduleKind.CONTINUOUS else start_fields(databricks.schedule)
    # who gets notifications of the games' own jobs would get two
    body = {**starts, **_timeout(databricks), **notification_fields(databricks)}
    return _job(make.settings, part, {**_queue(databricks), **body, **_compute(make, clusters, tasks), "tasks": tasks})


def _part(make: TaskMaker, part: str, clusters: Mapping[str, Sequence[Task]]) -> Job:
    databricks = make.settings.databricks
    tasks = [task for name, games in clusters.items() for task in make.games(name, games, [])]
    return _job(
        make.settings,
        part,
        {
            **_queue(databricks),
            **notification_fields(databricks, OF_STREAMS),
            **_compute(make, clusters, tasks),
            "tasks": tasks,
        },
    )


def _continuous(settings: Settings, main: str) -> Job:
    starts = start_fields(settings.databricks.schedule)
    return _job(settings, CONTINUOUS, {**starts, "tasks": [run_job("run", main, [])]})


def _maintain(make: TaskMaker, interval: timedelta) -> Job:
    databricks = make.settings.databricks
    starts = started_every(interval, databricks.schedule)
    body = {**_queue(databricks), **starts, **_timeout(databricks), **notification_fields(databricks, OF_RUNS)}
    tasks = [make.maintain()]
    return _job(make.settings, MAINTAIN, {**body, **_compute(make, [MAINTAIN], tasks), "tasks": tasks})


def _job(settings: Settings, part: str, body: Mapping[str, Any]) -> Job:
    databricks = settings.databricks
    assert databricks.name is not None
    ours = {OWNER_TAG: databricks.name, PART_TAG: part, ROOT_TAG: root_tag(settings.root)}
    made = {
        "name": job_name(databricks.name, part),
        "description": _description(settings),
        "tags": dict(sorted({**databricks.tags, **ours}.items())),
        "max_concurrent_runs": 1,
        **run_as(databricks.run_as),
        **body,
    }
    return Job(part, made, permissions(databricks.permissions))


def _description(settings: Settings) -> str:
    by = ", engine fleet" if settings.task_engine is Engine.FLEET else ""
    return f"Made by protobuf-demux, deployment {settings.databricks.name}{by}. The next apply undoes changes by hand."


def permissions(settings: PermissionSettings) -> tuple[Permission, ...]:
    """Return the permissions on each job, sorted."""
    by_kind = {
        PrincipalKind.GROUP: settings.groups,
        PrincipalKind.SERVICE_PRINCIPAL: settings.service_principals,
        PrincipalKind.USER: settings.users,
    }
    found = [Permission(kind, name, level) for kind, levels in by_kind.items() for name, level in levels.items()]
    return tuple(sorted(found, key=lambda permission: permission.sort_key))


def _timeout(databricks: DatabricksSettings) -> dict[str, Any]:
    return {"timeout_seconds": databricks.job_timeout_s} if databricks.job_timeout_s else {}


def _queue(databricks: DatabricksSettings) -> dict[str, Any]:
    return {"queue": {"enabled": databricks.queue}}


def _compute(make: TaskMaker, clusters: Iterable[str], tasks: Iterable[TaskJson]) -> dict[str, Any]:
    return compute_json(make.settings.databricks, clusters, tasks, make.wheel, KAFKA_CLIENT)


def _require_room(tasks: int, settings: Settings) -> None:
    per_job = settings.databricks.tasks_per_job
    if tasks > per_job:
        raise PlanRefused(
            f"Bronze's job would have {tasks} tasks, and databricks.tasks_per_job is {per_job}.",
            _more_room(settings),
            tasks=tasks,
        )


def _more_room(settings: Settings) -> str:
    most = "" if settings.databricks.tasks_per_job == MAX_TASKS_PER_JOB else "Raise databricks.tasks_per_job, or "
    match settings.granularity:
        case Granularity.GAME:
            other = "set databricks.granularity to cluster."
        case Granularity.CLUSTER:
            other = f"raise {settings.run.per_cluster_key}, so that there are fewer clusters."
    return f"{most}{other}" if most else other[0].upper() + other[1:]


_NUMBERED = re.compile(r"cluster_(\d+)")


def require_contexts(clusters: Mapping[str, Sequence[Task]], settings: Settings) -> None:
    """Let clusters pass that have a context for each of their tasks.

    Raises:
        PlanRefused: one has more tasks.
    """
    if settings.databricks.compute_kind is Compute.SERVERLESS:
        return
    for cluster, games in clusters.items():
        if (tasks := _weight(games, settings.granularity)) > MAX_CONTEXTS:
            raise PlanRefused(
                f"The cluster {cluster} would have {tasks} tasks; it has room for {MAX_CONTEXTS}.",
                f"Lower {settings.run.per_cluster_key}, or pin fewer games to it.",
                cluster=cluster,
                tasks=tasks,
            )


def fits(clusters: Mapping[str, Sequence[Task]], settings: Settings, others: int) -> bool:
    """Return whether one job has room for all games and the `others` tasks, which need one more cluster."""
    tasks = sum(_weight(games, settings.granularity) for games in clusters.values())
    return tasks + others <= settings.databricks.tasks_per_job and len(clusters) < _most_clusters(settings)


def _most_clusters(settings: Settings) -> int:
    is_serverless = settings.databricks.compute_kind is Compute.SERVERLESS
    return MAX_TASKS_PER_JOB if is_serverless else MAX_CLUSTERS_PER_JOB


def split(clusters: Mapping[str, Sequence[Task]], settings: Settings) -> dict[str, tuple[str, ...]]:
    """Return the clusters of each part, both sorted; a part has `tasks_per_job` tasks and 100 clusters at most.

    The plan's own clusters go by their number, so that a cluster that comes or goes moves no other. Those that were
    named by hand have parts of their own, by order of name.

    Raises:
        PlanRefused: a cluster has more tasks than a job may have.
    """
    granularity, tasks_per_job = settings.granularity, settings.databricks.tasks_per_job
    most = max((_weight(games, granularity) for games in clusters.values()), default=1)
    if most > tasks_per_job:
        raise PlanRefused(
            f"A cluster would have {most} tasks, and databricks.tasks_per_job is {tasks_per_job}.",
            f"Raise databricks.tasks_per_job, or lower {settings.run.per_cluster_key}.",
            tasks=most,
        )
    usual = 1 if granularity is Granularity.CLUSTER else settings.run.per_cluster
    room = max(1, min(_most_clusters(settings), tasks_per_job // max(most, usual)))
    parts: dict[str, list[str]] = {}
    for cluster, part in _part_of(sorted(clusters), room).items():
        parts.setdefault(part, []).append(cluster)
    return {part: tuple(parts[part]) for part in sorted(parts)}


def _part_of(clusters: Sequence[str], room: int) -> dict[str, str]:
    numbers = {cluster: number for cluster in clusters if (number := _number(cluster)) is not None}
    named = [cluster for cluster in clusters if cluster not in numbers]
    return {
        **{cluster: f"{(number - 1) // room + 1:03d}" for cluster, number in numbers.items()},
        **{cluster: f"n{rank // room + 1:03d}" for rank, cluster in enumerate(named)},
    }


def _number(cluster: str) -> int | None:
    found = _NUMBERED.fullmatch(cluster)
    number = int(found[1]) if found else 0
    # `cluster_1` is not the plan's own name of the first one
    return number if number and cluster == f"cluster_{number:03d}" else None


def _weight(games: Sequence[Task], granularity: Granularity) -> int:
    match granularity:
        case Granularity.GAME:
            return len(games)
        case Granularity.CLUSTER:
            return len(cluster_tasks("", [task.game for task in games]))
