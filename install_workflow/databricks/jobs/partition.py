"""Which job a cluster's tasks are in, when one job has no room for all. Pure, and stable."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from demux.core.errors import PlanRefused
from demux.core.settings.databricks import Granularity
from demux.core.settings.settings import Settings
from install_workflow.databricks.jobs.cluster import MAX_CLUSTERS_PER_JOB, MAX_CONTEXTS
from install_workflow.databricks.jobs.task import cluster_tasks
from install_workflow.planning.plan import Task

_NUMBERED = re.compile(r"cluster_(\d+)")


def require_contexts(clusters: Mapping[str, Sequence[Task]], settings: Settings) -> None:
    """Let clusters pass that have a context for each of their tasks.

    Raises:
        PlanRefused: one has more tasks.
    """
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
    return tasks + others <= settings.databricks.tasks_per_job and len(clusters) < MAX_CLUSTERS_PER_JOB


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
    room = max(1, min(MAX_CLUSTERS_PER_JOB, tasks_per_job // max(most, usual)))
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
