"""Which job a cluster's tasks are in, when one job has no room for all. Pure, and stable."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from demux.errors import PlanRefused
from demux.settings_databricks import Granularity
from install_workflow.databricks.cluster import MAX_CLUSTERS_PER_JOB
from install_workflow.databricks.task import cluster_tasks
from install_workflow.plan import Task

_NUMBERED = re.compile(r"cluster_(\d+)")


def fits(clusters: Mapping[str, Sequence[Task]], granularity: Granularity, tasks_per_job: int, others: int) -> bool:
    """Return whether one job has room for all games and the `others` tasks, which need one more cluster."""
    tasks = sum(_weight(games, granularity) for games in clusters.values())
    return tasks + others <= tasks_per_job and len(clusters) < MAX_CLUSTERS_PER_JOB


def split(
    clusters: Mapping[str, Sequence[Task]], granularity: Granularity, tasks_per_job: int, per_cluster: int
) -> dict[str, tuple[str, ...]]:
    """Return the clusters of each part, both sorted; a part has at most `tasks_per_job` tasks and 100 clusters.

    The plan's own clusters go by their number, so that a cluster that comes or goes moves no other. Those that were
    named by hand have parts of their own, by order of name.

    Raises:
        PlanRefused: a cluster has more tasks than a job may have.
    """
    most = max((_weight(games, granularity) for games in clusters.values()), default=1)
    if most > tasks_per_job:
        raise PlanRefused(
            f"A cluster would have {most} tasks, and databricks.tasks_per_job is {tasks_per_job}.",
            "Raise databricks.tasks_per_job, or lower run.streams_per_cluster.",
            tasks=most,
        )
    usual = 1 if granularity is Granularity.CLUSTER else per_cluster
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
