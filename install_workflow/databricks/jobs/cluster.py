"""The job clusters: one for bronze, and those that the plan puts the games on. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from demux.core.errors import PlanRefused
from demux.core.settings.databricks import ClusterSettings, SecurityMode
from demux.core.settings.spark_conf import TABLE_CONF
from install_workflow.planning.plan import Task

BRONZE = "bronze"
MAX_CONTEXTS = 150
MAX_CLUSTERS_PER_JOB = 100

_DEFAULT_WORKERS = 1
# `deserialize_` before it must fit into the 100 characters of a task's key
_KEY = re.compile(r"[A-Za-z0-9_-]{1,88}")
# how the Clusters API says that there is no worker
_SINGLE_NODE_CONF: Mapping[str, str] = {"spark.databricks.cluster.profile": "singleNode", "spark.master": "local[*]"}
_SINGLE_NODE_TAGS: Mapping[str, str] = {"ResourceClass": "SingleNode"}


def job_clusters(keys: Iterable[str], settings: ClusterSettings) -> list[dict[str, Any]]:
    """Return the job clusters of these keys as the Jobs API has them, sorted by key."""
    return [{"job_cluster_key": key, "new_cluster": _new_cluster(settings)} for key in sorted(keys)]


def _new_cluster(settings: ClusterSettings) -> dict[str, Any]:
    cluster: dict[str, Any] = {
        "data_security_mode": _mode(settings.security_mode),
        "spark_version": settings.spark_version,
        **_size(settings),
    }
    # a cluster's session has other defaults, and is not ours to make
    conf = {**settings.spark_conf, **TABLE_CONF}
    if cluster.get("num_workers") == 0:
        conf |= _SINGLE_NODE_CONF
        cluster["custom_tags"] = dict(_SINGLE_NODE_TAGS)
    if settings.node_type is not None:
        cluster["node_type_id"] = settings.node_type
    if settings.policy_id is not None:
        cluster |= {"policy_id": settings.policy_id, "apply_policy_default_values": True}
    return {**cluster, "spark_conf": dict(sorted(conf.items()))}


def _mode(mode: SecurityMode) -> str:
    match mode:
        case SecurityMode.DEDICATED:
            return "SINGLE_USER"


def _size(settings: ClusterSettings) -> dict[str, Any]:
    if settings.min_workers is not None:
        return {"autoscale": {"min_workers": settings.min_workers, "max_workers": settings.max_workers}}
    return {"num_workers": _DEFAULT_WORKERS if settings.workers is None else settings.workers}


def by_cluster(tasks: Iterable[Task]) -> dict[str, list[Task]]:
    """Return the tasks of each cluster, by game name, the clusters sorted.

    Raises:
        PlanRefused: a cluster has a name that a job cannot give it.
    """
    clusters: dict[str, list[Task]] = {}
    for task in sorted(tasks, key=lambda task: (task.cluster, task.game)):
        clusters.setdefault(task.cluster, []).append(task)
    for name in clusters:
        _require_legal(name)
    return clusters


def _require_legal(name: str) -> None:
    if name == BRONZE or not _KEY.fullmatch(name):
        raise PlanRefused(
            f"A job cannot have a cluster {name!r} for games.",
            f"Give it up to 88 letters, digits, `-` and `_`, and not the name {BRONZE}.",
            cluster=name,
        )
