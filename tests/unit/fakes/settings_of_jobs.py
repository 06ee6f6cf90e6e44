"""Settings of jobs, as JSON and as the client takes them."""

from __future__ import annotations

from typing import Any

from databricks.sdk.service.jobs import JobSettings

CLUSTER: dict[str, Any] = {"spark_version": "15.4.x-scala2.12", "node_type_id": "m5d.large", "num_workers": 1}


def task(key: str, **more: Any) -> dict[str, Any]:
    """A task of a wheel on the job cluster `a`."""
    wheel = {"package_name": "protobuf_demux", "entry_point": "demux"}
    return {"task_key": key, "job_cluster_key": "a", "python_wheel_task": wheel, **more}


def job(*tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A job with these tasks, one that is called `bronze` without any, and the job cluster `a`."""
    clusters = [{"job_cluster_key": "a", "new_cluster": dict(CLUSTER)}]
    return {"name": "demux", "job_clusters": clusters, "tasks": list(tasks or [task("bronze")]), **more}


def typed(settings: dict[str, Any]) -> JobSettings:
    """The settings as the client takes them."""
    return JobSettings.from_dict(settings)
