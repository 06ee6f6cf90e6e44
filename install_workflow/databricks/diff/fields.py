"""Every field of a job as the Jobs API has it: whose value it holds, and how two values compare. Pure data.

Sources: the docstrings of databricks-sdk's types, and what databricks/cli measured in a workspace
(`bundle/direct/dresources/configs/jobs.yml`). A test compares the table with the types of databricks-sdk.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from install_workflow.databricks.jobs.job import JobJson


class FieldOrigin(Enum):
    """The origin of a field's value where our settings leave it open.

    Attributes:
        OURS: no one else: we send it where the settings say so, and else it must be empty.
        SERVER: the server. `defaults` are the values that it is known to choose; without any it may choose every value.
        HAND: no one: we never send it, the server never fills it in, so a person or another program set it.
        WRITE_ONLY: it is accepted and not returned, or returned and not accepted: it is never compared.
    """

    OURS = "ours"
    SERVER = "server"
    HAND = "hand"
    WRITE_ONLY = "write-only"


class ValueComparison(Enum):
    """How the values of a field compare.

    Attributes:
        VALUE: as a whole.
        OBJECT: field by field, by the table of `of`.
        KEYED: a list whose entries have a name, the field `key`; compared by name, then as OBJECT.
        SET: a list without an order.
        MAP: names and values of the user; nothing in it is a default.
    """

    VALUE = "value"
    OBJECT = "object"
    KEYED = "keyed"
    SET = "set"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class JobField:
    """One field.

    Attributes:
        origin: who gives it its value where our settings leave it open.
        of: the type of the object, or of the list's entries; "" where the value is not taken apart.
        defaults: what the value is known to be where none is given, beside empty values.
        same_as: a field of the same object whose value the server takes.
        counts_empty: whether an empty value has a meaning of its own.
    """

    origin: FieldOrigin
    form: ValueComparison = ValueComparison.VALUE
    of: str = ""
    key: str = ""
    defaults: tuple[Any, ...] = ()
    same_as: str = ""
    counts_empty: bool = False


_OURS, _HAND, _SERVER = JobField(FieldOrigin.OURS), JobField(FieldOrigin.HAND), JobField(FieldOrigin.SERVER)
_OUR_SET, _HANDS_SET = JobField(FieldOrigin.OURS, ValueComparison.SET), JobField(FieldOrigin.HAND, ValueComparison.SET)
_WRITE_ONLY = JobField(FieldOrigin.WRITE_ONLY)


def _ours(default: Any) -> JobField:
    return JobField(FieldOrigin.OURS, defaults=(default,))


def _server(*defaults: Any) -> JobField:
    return JobField(FieldOrigin.SERVER, defaults=defaults)


def _object(of: str, origin: FieldOrigin = FieldOrigin.OURS) -> JobField:
    return JobField(origin, ValueComparison.OBJECT, of)


def _hands(names: str) -> dict[str, JobField]:
    return dict.fromkeys(names.split(), _HAND)


_EVENTS = {
    **dict.fromkeys(
        (
            "on_start",
            "on_success",
            "on_failure",
            "on_duration_warning_threshold_exceeded",
            "on_streaming_backlog_exceeded",
        ),
        _OUR_SET,
    ),
    **dict.fromkeys(("on_maintenance_complete", "on_maintenance_start"), _HANDS_SET),
}
_PAUSE = {"pause_status": _ours("UNPAUSED")}
_WAITS = {"min_time_between_triggers_seconds": _OURS, "wait_after_last_change_seconds": _OURS}

JOB, CLUSTER = "JobSettings", "ClusterSpec"

# by the name of the type in databricks-sdk, then by the name of the field in JSON
FIELDS: Mapping[str, Mapping[str, JobField]] = {
    JOB: {
        "name": _OURS,
        "description": _OURS,
        "tags": JobField(FieldOrigin.OURS, ValueComparison.MAP),
        # an answer names the principal also where none was set; `changes.py` compares it with the owner
        "run_as": _OURS,
        "max_concurrent_runs": JobField(FieldOrigin.OURS, defaults=(1,), counts_empty=True),
        "timeout_seconds": _OURS,
        "queue": _object("QueueSettings"),
        "schedule": _object("CronSchedule"),
        "continuous": JobField(FieldOrigin.OURS, ValueComparison.OBJECT, "Continuous", counts_empty=True),
        "trigger": _object("TriggerSettings"),
        "email_notifications": _object("JobEmailNotifications"),
        "webhook_notifications": _object("WebhookNotifications"),
        "job_clusters": JobField(FieldOrigin.OURS, ValueComparison.KEYED, "JobCluster", "job_cluster_key"),
        "tasks": JobField(FieldOrigin.OURS, ValueComparison.KEYED, "Task", "task_key"),
        # a workspace may have a default policy, and puts a job into a folder by itself
        "budget_policy_id": _SERVER,
        "usage_policy_id": _SERVER,
        "performance_target": _SERVER,
        "parent_path": _SERVER,
        "edit_mode": _server("EDITABLE"),
        "format": _WRITE_ONLY,
        "parameters": JobField(FieldOrigin.HAND, ValueComparison.KEYED, key="name"),
        "environments": JobField(FieldOrigin.OURS, ValueComparison.KEYED, "JobEnvironment", "environment_key"),
        "health": _object("JobsHealthRules"),
        **_hands("deployment duration_target environment_variables git_source notification_settings triggers"),
    },
    "JobsHealthRules": {"rules": _OUR_SET},
    "JobEnvironment": {"environment_key": _OURS, "spec": _object("Environment")},
    "Environment": {
        "environment_version": _OURS,
        "dependencies": _OUR_SET,
        # the earlier name of the version, which an answer may still have
        "client": JobField(FieldOrigin.SERVER, same_as="environment_version"),
        **_hands("base_environment java_dependencies project_environment"),
    },
    "QueueSettings": {"enabled": _OURS},
    "CronSchedule": {"quartz_cron_expression": _OURS, "timezone_id": _OURS, **_PAUSE, "sql_condition": _HAND},
    "Continuous": {**_PAUSE, "task_retry_mode": _server("NEVER"), "maintenance_window": _HAND},
    "TriggerSettings": {
        **_PAUSE,
        "file_arrival": _object("FileArrivalTriggerConfiguration"),
        "periodic": _object("PeriodicTriggerConfiguration"),
        "table_update": _object("TableUpdateTriggerConfiguration"),
        **_hands("model sql_condition"),
    },
    "FileArrivalTriggerConfiguration": {"url": _OURS, **_WAITS},
    "PeriodicTriggerConfiguration": {"interval": _OURS, "unit": _OURS},
    "TableUpdateTriggerConfiguration": {"table_names": _OUR_SET, "condition": _WRITE_ONLY, **_WAITS},
    "JobEmailNotifications": {**_EVENTS, "no_alert_for_skipped_runs": _HAND},
    "TaskEmailNotifications": {**dict.fromkeys(_EVENTS, _HANDS_SET), "no_alert_for_skipped_runs": _HAND},
    "WebhookNotifications": _EVENTS,
    "JobCluster": {
        "job_cluster_key": _OURS,
        "new_cluster": _object(CLUSTER),
        "serverless_compute_id": _HAND,
    },
    CLUSTER: {
        "spark_version": _OURS,
        "node_type_id": _OURS,
        "num_workers": _OURS,
        "autoscale": _object("AutoScale"),
        "data_security_mode": _server("SINGLE_USER"),
        "policy_id": _OURS,
        "apply_policy_default_values": _WRITE_ONLY,
        "spark_conf": JobField(FieldOrigin.OURS, ValueComparison.MAP),
        "custom_tags": JobField(FieldOrigin.OURS, ValueComparison.MAP),
        "spark_env_vars": JobField(FieldOrigin.OURS, ValueComparison.MAP),
        "instance_pool_id": _OURS,
        # they run in this order
        "init_scripts": _OURS,
        "cluster_log_conf": _OURS,
        "driver_node_type_id": JobField(FieldOrigin.SERVER, same_as="node_type_id"),
        # the values depend on the cloud or on a pool, and no document lists them
        "driver_instance_pool_id": JobField(FieldOrigin.SERVER, same_as="instance_pool_id"),
        "enable_elastic_disk": _SERVER,
        "enable_local_disk_encryption": _SERVER,
        "single_user_name": _SERVER,
        # documented as what an open field means, except for the legacy -photon- runtimes
        "runtime_engine": _server("STANDARD"),
        "aws_attributes": _object("AwsAttributes", FieldOrigin.SERVER),
        "azure_attributes": _object("AzureAttributes", FieldOrigin.SERVER),
        "gcp_attributes": _object("GcpAttributes", FieldOrigin.SERVER),
        "workload_type": _object("WorkloadType", FieldOrigin.SERVER),
        **_hands(
            "autotermination_minutes cluster_name dependency_mode docker_image "
            "driver_node_type_flexibility is_single_node kind remote_disk_throughput "
            "ssh_public_keys total_initial_remote_disk_size use_ml_runtime worker_node_type_flexibility"
        ),
    },
    "AutoScale": {"min_workers": _OURS, "max_workers": _OURS},
    "AwsAttributes": {
        "availability": _server("SPOT_WITH_FALLBACK"),
        "spot_bid_price_percent": _server(100),
        "zone_id": _SERVER,
        **_hands("ebs_volume_count ebs_volume_iops ebs_volume_size ebs_volume_throughput ebs_volume_type"),
        "first_on_demand": _OURS,
        "instance_profile_arn": _OURS,
    },
    "AzureAttributes": {
        "availability": _server("ON_DEMAND_AZURE"),
        "first_on_demand": _server(1),
        "spot_bid_max_price": _server(-1),
        **_hands("capacity_reservation_group log_analytics_info"),
    },
    "GcpAttributes": {
        "availability": _server("ON_DEMAND_GCP"),
        "zone_id": _SERVER,
        "boot_disk_size": _SERVER,
        "first_on_demand": _server(1),
        "google_service_account": _OURS,
        **_hands("confidential_compute_type local_ssd_count use_preemptible_executors"),
    },
    "WorkloadType": {"clients": _object("ClientsTypes", FieldOrigin.SERVER)},
    "ClientsTypes": {"jobs": _server(True), "notebooks": _server(True)},
    "Task": {
        "task_key": _OURS,
        "depends_on": _OUR_SET,
        "run_if": _ours("ALL_SUCCESS"),
        "job_cluster_key": _OURS,
        "environment_key": _OURS,
        "python_wheel_task": _object("PythonWheelTask"),
        "run_job_task": _object("RunJobTask"),
        "libraries": _OUR_SET,
        "max_retries": _OURS,
        "min_retry_interval_millis": _OURS,
        "retry_on_timeout": _OURS,
        "timeout_seconds": _OURS,
        "email_notifications": _object("TaskEmailNotifications", FieldOrigin.HAND),
        "webhook_notifications": _object("WebhookNotifications", FieldOrigin.HAND),
        **_hands(
            "ai_runtime_task alert_task clean_rooms_notebook_task compute condition_task dashboard_task dbt_cloud_task "
            "dbt_platform_task dbt_task description disable_auto_optimization disabled "
            "environment_variables_key existing_cluster_id for_each_task gen_ai_compute_task health new_cluster "
            "notebook_task notification_settings pipeline_task power_bi_task python_operator_task spark_jar_task "
            "spark_python_task spark_submit_task sql_task"
        ),
    },
    "PythonWheelTask": {
        "package_name": _OURS,
        "entry_point": _OURS,
        "parameters": _OURS,
        "named_parameters": JobField(FieldOrigin.HAND, ValueComparison.MAP),
    },
    "RunJobTask": {
        "job_id": _OURS,
        **_hands("dbt_commands jar_params job_parameters notebook_params pipeline_params python_named_params"),
        **_hands("python_params spark_submit_params sql_params"),
    },
}

_UNKNOWN = _SERVER


def field_of(kind: str, name: str) -> JobField:
    """Return the entry of a field; one that the table does not have is the server's, with any value."""
    return FIELDS.get(kind, {}).get(name, _UNKNOWN)


def comparable(settings: JobJson) -> dict[str, Any]:
    """Return the settings with defaults left out and lists without an order sorted, as `fields.py` has it.

    `tasks`, `job_clusters`, `environments` and `parameters` become objects by key, `run_as` the principal's name.
    """
    result = _comparable_object(JOB, settings)
    if isinstance(result.get("run_as"), Mapping):
        result["run_as"] = next(iter(result["run_as"].values()))
    return result


def _comparable_object(kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    table = {name: field_of(kind, name) for name in fields}
    values = {name: _value(field, fields[name]) for name, field in table.items()}
    return {name: value for name, value in values.items() if not _is_default(table[name], value)}


def _value(field: JobField, value: Any) -> Any:
    match field.form:
        case ValueComparison.OBJECT if isinstance(value, Mapping):
            return _comparable_object(field.of, value)
        case ValueComparison.KEYED if isinstance(value, list | tuple):
            return _by_key((_comparable_object(field.of, entry) for entry in value), field.key)
        case ValueComparison.SET if isinstance(value, list | tuple):
            return sorted((_whole(entry) for entry in value), key=_text)
        case ValueComparison.MAP if isinstance(value, Mapping):
            return dict(value)
        case _:
            return _whole(value)


def _whole(value: Any) -> Any:
    """Return a value that is not taken apart, empty values in it left out."""
    if isinstance(value, Mapping):
        inner = {name: _whole(each) for name, each in value.items()}
        return {name: each for name, each in inner.items() if each}
    return [_whole(each) for each in value] if isinstance(value, list | tuple) else value


def _by_key(entries: Iterable[dict[str, Any]], key: str) -> dict[str, dict[str, Any]]:
    return {entry[key]: {name: value for name, value in entry.items() if name != key} for entry in entries}


def _is_default(field: JobField, value: Any) -> bool:
    if field.origin is FieldOrigin.WRITE_ONLY or value is None:
        return True
    if not value:
        return not field.counts_empty
    # what the server chooses may be another value tomorrow: that is compared in `drift.py`
    return field.origin is FieldOrigin.OURS and value in field.defaults


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
