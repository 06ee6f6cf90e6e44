"""Jobs of a deployment, as an installer wants them: small ones for tests, of the shape that the real ones have."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from demux.core.settings.databricks.access import AccessLevel, PrincipalKind
from install_workflow.databricks.jobs.job import OWNER_TAG, PART_TAG, Job, Permission

DEPLOYMENT = "prod"
ANALYSTS = Permission(PrincipalKind.GROUP, "analysts", AccessLevel.CAN_VIEW)
OPERATORS = Permission(PrincipalKind.GROUP, "operators", AccessLevel.CAN_MANAGE_RUN)


def job(
    part: str,
    clusters: Mapping[str, Iterable[str]],
    *,
    calls: Sequence[str] = (),
    sets: Sequence[str] = ("games.limit=50",),
    permissions: tuple[Permission, ...] = (),
    **more: Any,
) -> Job:
    """A job with a task for each game on each cluster, and one for each part that it calls."""
    named = f"Game_Protobufs_wrapper_{DEPLOYMENT}_{part}"
    games = [(cluster, game) for cluster, its in clusters.items() for game in its]
    settings: dict[str, Any] = {
        "name": named,
        "tags": {OWNER_TAG: DEPLOYMENT, PART_TAG: part},
        "tasks": [
            *(task(f"deserialize_{game}", ["deserialize", "--game", game], cluster, sets) for cluster, game in games),
            *({"task_key": f"run_{called}", "run_job_task": {"job_id": f"${{part:{called}}}"}} for called in calls),
        ],
        "job_clusters": [cluster_named(cluster) for cluster in clusters],
        **more,
    }
    return Job(part, settings, permissions)


def task(key: str, command: Sequence[str], cluster: str, sets: Sequence[str] = ()) -> dict[str, Any]:
    """A task that runs our wheel."""
    parameters = [*command, *(word for each in sets for word in ("--set", each))]
    return {
        "task_key": key,
        "job_cluster_key": cluster,
        "python_wheel_task": {"package_name": "protobuf_demux", "entry_point": "demux", "parameters": parameters},
        "libraries": [{"whl": "/Volumes/main/demux/wheels/protobuf_demux-0.1.0-py3-none-any.whl"}],
        "max_retries": 2,
    }


def cluster_named(key: str, workers: int = 2) -> dict[str, Any]:
    """A job cluster."""
    cluster = {"spark_version": "17.3.x-scala2.13", "node_type_id": "m6g.xlarge", "num_workers": workers}
    return {"job_cluster_key": key, "new_cluster": cluster}


def changed(of: Job, **fields: Any) -> Job:
    """The same job with other fields at the top of its settings."""
    return Job(of.part, {**copy.deepcopy(dict(of.settings)), **fields}, of.permissions)
