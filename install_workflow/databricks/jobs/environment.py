"""What the tasks run on, as the Jobs API has it: job clusters, or environments of serverless compute. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from demux.core.settings.databricks.compute import Compute
from demux.core.settings.databricks.deployment import DatabricksSettings
from install_workflow.databricks.jobs.cluster import BRONZE, job_clusters

# a task of games on serverless compute, by the key that `cluster_tasks` gives it
_PACK = re.compile(r"deserialize_([A-Za-z0-9_-]+?)(?:_PART\d+)?")
_MODES = {
    "USER_ISOLATION": Compute.STANDARD,
    "DATA_SECURITY_MODE_STANDARD": Compute.STANDARD,
    "SINGLE_USER": Compute.DEDICATED,
    "DATA_SECURITY_MODE_DEDICATED": Compute.DEDICATED,
}
# environments of a job: of all tasks, and of the bronze task where it needs a client of Kafka
DEFAULT, KAFKA = "default", "kafka"


def place_json(databricks: DatabricksSettings, cluster: str, wheel: str, more: Sequence[str] = ()) -> dict[str, Any]:
    """Return the fields of a task that say where it runs, and what is installed there.

    Args:
        cluster: the key of its cluster; without meaning on serverless compute.
        more: requirements of the task beside the wheel, as pip has them.
    """
    if databricks.compute_kind is Compute.SERVERLESS:
        return {"environment_key": KAFKA if more else DEFAULT}
    libraries = [{"whl": wheel}, *({"pypi": {"package": each}} for each in more)]
    return {"job_cluster_key": cluster, "libraries": libraries}


def compute_json(
    databricks: DatabricksSettings, clusters: Iterable[str], tasks: Iterable[Mapping[str, Any]], wheel: str, kafka: str
) -> dict[str, Any]:
    """Return the fields of a job that describe what its tasks run on.

    Args:
        kafka: the requirement that brings a client of Kafka.
    """
    if databricks.compute_kind is not Compute.SERVERLESS:
        return {"job_clusters": job_clusters(clusters, databricks)}
    serverless, needed = databricks.serverless, {DEFAULT: [wheel], KAFKA: [wheel, kafka]}
    keys = sorted({task["environment_key"] for task in tasks if "environment_key" in task})
    fields = {
        "performance_target": None if serverless.performance is None else serverless.performance.value,
        "budget_policy_id": serverless.budget_policy_id,
        "environments": [
            {
                "environment_key": key,
                "spec": {"environment_version": serverless.environment_version, "dependencies": needed[key]},
            }
            for key in keys
        ],
    }
    return {name: value for name, value in fields.items() if value}


def is_serverless(task: Mapping[str, Any]) -> bool:
    """Return whether a task of the Jobs API that runs our wheel runs on serverless compute."""
    return "environment_key" in task and "job_cluster_key" not in task


def compute_in(jobs: Iterable[Mapping[str, Any]]) -> Compute | None:
    """Return what the tasks of these jobs of the Jobs API run on; None where they do not say it."""
    jobs = list(jobs)
    if any(is_serverless(task) for job in jobs for task in job.get("tasks", ())):
        return Compute.SERVERLESS
    clusters = [each.get("new_cluster", {}) for job in jobs for each in job.get("job_clusters", ())]
    modes = {cluster.get("data_security_mode") for cluster in clusters}
    return next((compute for mode, compute in _MODES.items() if mode in modes), None)


def cluster_of(task_key: str, task: Mapping[str, Any]) -> str | None:
    """Return the cluster of a task of games, or on serverless compute the pack; None where no game may be put."""
    key = task.get("job_cluster_key")
    if key is None and is_serverless(task) and (found := _PACK.fullmatch(task_key)):
        key = found[1]
    return None if key in {None, BRONZE} else str(key)


def requirements_of(job: Mapping[str, Any]) -> list[str]:
    """Return what the environments of a job of the Jobs API install."""
    specs = [each.get("spec", {}) for each in job.get("environments", [])]
    return [requirement for spec in specs for requirement in spec.get("dependencies", [])]
