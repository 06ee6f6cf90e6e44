"""A job's settings as comparable data: without what the server fills in, re-sorts or never returns. Pure.

Which fields the server fills in is what databricks/cli writes down in `bundle/direct/dresources/configs/jobs.yml`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from install_workflow.databricks.job import JobJson

# what an answer says where nothing was set, beside "", 0, false, and empty lists and objects
_DEFAULTS = {
    "max_concurrent_runs": 1,
    "run_if": "ALL_SUCCESS",
    "pause_status": "UNPAUSED",
    "edit_mode": "EDITABLE",
    "task_retry_mode": "NEVER",
}
# zero is no default here: it means that the job never runs
_ZERO_COUNTS = frozenset({"max_concurrent_runs"})
# taken by the server and never given back, or the other way round
_ONE_WAY = frozenset({"format", "apply_policy_default_values"})
_KEYED = {"tasks": "task_key", "job_clusters": "job_cluster_key", "environments": "environment_key"}
_UNORDERED = frozenset(
    {
        "depends_on",
        "libraries",
        "on_start",
        "on_success",
        "on_failure",
        "on_duration_warning_threshold_exceeded",
        "on_streaming_backlog_exceeded",
        "rules",
        "table_names",
    }
)
# the user's own names and texts: nothing in them is a default
_FREE = frozenset({"tags", "custom_tags", "spark_conf", "spark_env_vars", "named_parameters", "job_parameters"})

# the server chooses where the job does not say: run_as even stays after a reset without it
_CHOSEN = frozenset({"run_as", "budget_policy_id", "usage_policy_id", "performance_target", "parent_path"})
_CHOSEN_OF_CLUSTER = frozenset(
    {
        "enable_elastic_disk",
        "enable_local_disk_encryption",
        "node_type_id",
        "driver_node_type_id",
        "driver_instance_pool_id",
        "data_security_mode",
        "runtime_engine",
    }
)
_CLOUD = frozenset({"aws_attributes", "azure_attributes", "gcp_attributes"})


def comparable(settings: JobJson) -> dict[str, Any]:
    """Return the settings with defaults left out and lists without an order sorted.

    `tasks`, `job_clusters`, `environments` and `parameters` become objects by key, `run_as` the principal's name.
    Normalising twice is as good as once, unless a list became an object.
    """
    result = _object(settings)
    if isinstance(result.get("parameters"), list):
        result["parameters"] = _by_key(result["parameters"], "name")
    if isinstance(result.get("run_as"), Mapping):
        result["run_as"] = next(iter(result["run_as"].values()))
    update = result.get("trigger", {}).get("table_update")
    if isinstance(update, dict):
        # taken, and not given back
        update.pop("condition", None)
    return result


def without_choices(deployed: Mapping[str, Any], desired: Mapping[str, Any]) -> dict[str, Any]:
    """Return the deployed settings without what the server chose because the desired ones leave it open.

    Args:
        deployed: from `comparable`.
        desired: from `comparable`.
    """
    result = {field: value for field, value in deployed.items() if field not in _CHOSEN or field in desired}
    for keyed in ("tasks", "job_clusters"):
        if keyed in result:
            wanted = desired.get(keyed, {})
            result[keyed] = {key: _cluster_owner(value, wanted.get(key, {})) for key, value in result[keyed].items()}
    return result


def _cluster_owner(deployed: Mapping[str, Any], desired: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a task or job cluster, the server's choices for its new cluster left out."""
    if "new_cluster" not in deployed or "new_cluster" not in desired:
        return deployed
    return {**deployed, "new_cluster": _cluster(deployed["new_cluster"], desired["new_cluster"])}


def _cluster(deployed: Mapping[str, Any], desired: Mapping[str, Any]) -> dict[str, Any]:
    if "policy_id" in desired:
        # the policy may fill in anything
        return {field: value for field, value in deployed.items() if field in desired}
    result = {
        field: value
        for field, value in deployed.items()
        if field in desired or field not in _CHOSEN_OF_CLUSTER | _CLOUD
    }
    for cloud in _CLOUD & result.keys():
        result[cloud] = {field: value for field, value in result[cloud].items() if field in desired[cloud]}
    return result


def _object(fields: Mapping[str, Any]) -> dict[str, Any]:
    values = {field: _value(field, value) for field, value in fields.items() if field not in _ONE_WAY}
    return {field: value for field, value in values.items() if not _is_default(field, value)}


def _value(field: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value) if field in _FREE else _object(value)
    if not isinstance(value, list | tuple):
        return value
    if field in _KEYED:
        return _by_key((_object(entry) for entry in value), _KEYED[field])
    entries = [_object(entry) if isinstance(entry, Mapping) else entry for entry in value]
    return sorted(entries, key=_text) if field in _UNORDERED else entries


def _by_key(entries: Iterable[dict[str, Any]], key: str) -> dict[str, dict[str, Any]]:
    return {entry[key]: {field: value for field, value in entry.items() if field != key} for entry in entries}


def _is_default(field: str, value: Any) -> bool:
    if value is None or value == _DEFAULTS.get(field):
        return True
    return not value and field not in _ZERO_COUNTS


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
