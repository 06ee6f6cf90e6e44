"""The compute of the jobs: clusters, one for bronze and those of the plan, or serverless environments. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from demux.core.errors import PlanRefused
from demux.core.settings.databricks.cluster import IDENTITIES, SINGLE_NODE_CONF, ClusterSettings, NodeSettings
from demux.core.settings.databricks.compute import Compute
from demux.core.settings.databricks.deployment import DatabricksSettings
from demux.core.tables import TABLE_CONF
from install_workflow.planning.plan import Task

BRONZE = "bronze"
MAX_CONTEXTS = 150
MAX_CLUSTERS_PER_JOB = 100

_DEFAULT_WORKERS = 1
# `deserialize_` before it must fit into the 100 characters of a task's key
_KEY = re.compile(r"[A-Za-z0-9_-]{1,88}")
# what a further task of a cluster's games ends in
_PART = re.compile(r"_PART\d+$")
_SINGLE_NODE_TAGS: Mapping[str, str] = {"ResourceClass": "SingleNode"}
_SIZE = frozenset({"workers", "min_workers", "max_workers"})
_MACHINES = frozenset({"node_type", "driver_node_type", "instance_pool_id", "driver_instance_pool_id"})
# of each cloud: the names of its settings in the Clusters API
_BOUGHT: Mapping[str, Mapping[str, str]] = {
    "aws": {
        "spot_price_percent": "spot_bid_price_percent",
        "zone": "zone_id",
        "instance_profile": "instance_profile_arn",
    },
    "azure": {"spot_price": "spot_bid_max_price"},
    "gcp": {"zone": "zone_id", "service_account": "google_service_account"},
}
_KIND_OF_PLACE = {
    "/Volumes": "volumes",
    "/Workspace": "workspace",
    "dbfs:": "dbfs",
    "s3:": "s3",
    "abfss:": "abfss",
    "gs:": "gcs",
}


def job_clusters(keys: Iterable[str], databricks: DatabricksSettings) -> list[dict[str, Any]]:
    """Return the job clusters of these keys as the Jobs API has them, sorted by key."""
    return [{"job_cluster_key": key, "new_cluster": _new_cluster(key, databricks)} for key in sorted(keys)]


def _new_cluster(key: str, databricks: DatabricksSettings) -> dict[str, Any]:
    settings = databricks.cluster
    nodes = _nodes(settings, databricks.clusters.get(key))
    size = _size(nodes)
    # a cluster's session has other defaults, and is not ours to make
    conf, tags = {**settings.spark_conf, **TABLE_CONF}, dict(settings.tags)
    if size.get("num_workers") == 0:
        conf |= SINGLE_NODE_CONF
        tags |= _SINGLE_NODE_TAGS
    fields = {
        "data_security_mode": _mode(databricks.compute_kind),
        "spark_version": settings.spark_version,
        **size,
        "custom_tags": dict(sorted(tags.items())),
        "node_type_id": nodes.node_type,
        "driver_node_type_id": nodes.driver_node_type,
        "instance_pool_id": nodes.instance_pool_id,
        "driver_instance_pool_id": nodes.driver_instance_pool_id,
        "runtime_engine": None if nodes.photon is None else "PHOTON" if nodes.photon else "STANDARD",
        "policy_id": settings.policy_id,
        "apply_policy_default_values": settings.policy_id is not None,
        "single_user_name": settings.single_user,
        **{f"{cloud}_attributes": _bought(settings, nodes, cloud) for cloud in _BOUGHT},
        "spark_env_vars": dict(sorted(settings.environment.items())),
        "init_scripts": [_place(script, settings.s3_region) for script in settings.init_scripts],
        "cluster_log_conf": {} if settings.log_path is None else _place(settings.log_path, settings.s3_region),
        "spark_conf": dict(sorted(conf.items())),
    }
    # 0 workers is a number of workers, all else that is empty is not said
    return {name: value for name, value in fields.items() if value or name == "num_workers"}


def _nodes(settings: ClusterSettings, own: NodeSettings | None) -> NodeSettings:
    """Return the machines of a cluster: its own, and what those leave out as all clusters have it."""
    usual = {name: getattr(settings, name) for name in NodeSettings.model_fields}
    given = {} if own is None else {name: value for name, value in own if value is not None}
    for group in (_SIZE, _MACHINES):
        if group & given.keys():
            usual = {name: value for name, value in usual.items() if name not in group}
    return NodeSettings(**{**usual, **given})


def _mode(compute: Compute) -> str:
    return "USER_ISOLATION" if compute is Compute.STANDARD else "SINGLE_USER"


def _size(nodes: NodeSettings) -> dict[str, Any]:
    if nodes.min_workers is not None:
        return {"autoscale": {"min_workers": nodes.min_workers, "max_workers": nodes.max_workers}}
    return {"num_workers": _DEFAULT_WORKERS if nodes.workers is None else nodes.workers}


def _bought(settings: ClusterSettings, nodes: NodeSettings, cloud: str) -> dict[str, Any]:
    given = getattr(settings, cloud).model_dump(mode="json", exclude_none=True)
    # how a pool's machines are bought, the pool says
    kept = given.keys() & IDENTITIES if nodes.instance_pool_id is not None else given.keys()
    return {_BOUGHT[cloud].get(name, name): value for name, value in given.items() if name in kept}


def _place(path: str, region: str | None) -> dict[str, Any]:
    """Return a file or folder as the Clusters API has it: by the kind of its storage, in S3 with its region."""
    kind = next(kind for begin, kind in _KIND_OF_PLACE.items() if path.startswith(begin))
    return {kind: {"destination": path, **({"region": region} if kind == "s3" else {})}}


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
    if name == BRONZE or not _KEY.fullmatch(name) or _PART.search(name):
        raise PlanRefused(
            f"A job cannot have a cluster {name!r} for games.",
            f"Give it up to 88 letters, digits, `-` and `_`, not the name {BRONZE}, and no end such as _PART2.",
            cluster=name,
        )


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
    """Return the fields of a job that describe what its tasks run on."""
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
    """Return the compute of the tasks of these jobs of the Jobs API; None where they do not say it."""
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
    """Return the dependencies that the environments of a job of the Jobs API install."""
    specs = [each.get("spec", {}) for each in job.get("environments", [])]
    return [requirement for spec in specs for requirement in spec.get("dependencies", [])]
