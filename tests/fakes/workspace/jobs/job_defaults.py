"""A job's settings as the server keeps them: its own defaults filled in, some lists in its own order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.fakes.workspace.jobs.cluster_rules import Compute

_JOB = {
    "name": "Untitled",
    "email_notifications": {},
    "webhook_notifications": {},
    "timeout_seconds": 0,
    "max_concurrent_runs": 1,
    "format": "MULTI_TASK",
}
_TASK = {"run_if": "ALL_SUCCESS", "timeout_seconds": 0, "email_notifications": {}, "webhook_notifications": {}}
_CLOUDS: Mapping[str, dict[str, Any]] = {
    "aws": {
        "aws_attributes": {"availability": "SPOT_WITH_FALLBACK", "zone_id": "us-east-1c"},
        "data_security_mode": "SINGLE_USER",
        "enable_elastic_disk": False,
    },
    "azure": {
        "azure_attributes": {"availability": "ON_DEMAND_AZURE", "first_on_demand": 1, "spot_bid_max_price": -1.0},
        "data_security_mode": "SINGLE_USER",
        "enable_elastic_disk": True,
        "runtime_engine": "STANDARD",
    },
    # its defaults are not known: these are none that we know either
    "unknown": {
        "gcp_attributes": {"availability": "PREEMPTIBLE_GCP", "zone_id": "HA", "local_ssd_count": 1},
        "data_security_mode": "SINGLE_USER",
        "cluster_name": "job",
    },
}
_ATTRIBUTES = frozenset({"aws_attributes", "azure_attributes", "gcp_attributes"})
_STARTERS = ("schedule", "continuous", "trigger")


_NO_POLICIES = Compute()


def kept(settings: Mapping[str, Any], compute: Compute = _NO_POLICIES) -> dict[str, Any]:
    """What `jobs/get` gives back for these settings."""
    result = {**_JOB, **settings}
    if "tasks" in result:
        result["tasks"] = [_kept_task(task, compute) for task in result["tasks"]]
    if "job_clusters" in result:
        result["job_clusters"] = [
            {**each, "new_cluster": _kept_cluster(each.get("new_cluster", {}), compute)}
            for each in result["job_clusters"]
        ]
    if "environments" in result:
        result["environments"] = [_kept_environment(each) for each in result["environments"]]
        result.setdefault("performance_target", "PERFORMANCE_OPTIMIZED")
    return {**result, **{name: _kept_starter(result[name]) for name in _STARTERS if name in result}}


def _kept_task(task: Mapping[str, Any], compute: Compute) -> dict[str, Any]:
    result = {**_TASK, **task}
    if "depends_on" in result:
        result["depends_on"] = sorted(result["depends_on"], key=lambda each: str(each["task_key"]))
    if "new_cluster" in result:
        result["new_cluster"] = _kept_cluster(result["new_cluster"], compute)
    return result


def _kept_cluster(cluster: Mapping[str, Any], compute: Compute) -> dict[str, Any]:
    # the policy's values are taken, the wish for them is forgotten
    given = compute.filled(cluster)
    given.pop("apply_policy_default_values", None)
    result = {**_CLOUDS[compute.cloud], **given}
    if "node_type_id" in cluster:
        result.setdefault("driver_node_type_id", cluster["node_type_id"])
    clouds = {name: {**value, **result[name]} for name, value in _CLOUDS[compute.cloud].items() if name in _ATTRIBUTES}
    return {**result, **clouds}


def _kept_environment(environment: Mapping[str, Any]) -> dict[str, Any]:
    spec = environment.get("spec", {})
    # the earlier name of the version is given back beside it
    version = {"client": spec["environment_version"]} if "environment_version" in spec else {}
    return {**environment, "spec": {**version, **spec}}


def _kept_starter(starter: Mapping[str, Any]) -> dict[str, Any]:
    result = {"pause_status": "UNPAUSED", **starter}
    if "table_update" in result:
        result["table_update"] = {name: value for name, value in result["table_update"].items() if name != "condition"}
    return result
