"""The table of fields is complete: each field of databricks-sdk's types is in it, and each of it is one of theirs."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from databricks.sdk.service import jobs

from demux.core.names import names_of
from demux.core.settings.loading.loader import load
from install_workflow.databricks.diff.fields import FIELDS, JOB, FieldOrigin, ValueComparison, field_of
from install_workflow.databricks.jobs.build import make_jobs
from install_workflow.planning.plan import Task


def below(section: str, **values: str) -> dict[str, Any]:
    return {f"{section}.{name}": value for name, value in values.items()}


EVENTS = ("start", "success", "failure", "slow", "backlog")
# what a cluster may have beside its machines
EVERYTHING = {
    "instance_pool_id": "p",
    "driver_instance_pool_id": "q",
    "photon": "true",
    "single_user": "analysts",
    "environment": "{A: b}",
    "init_scripts": "[/Volumes/a/b/c/d.sh]",
    "log_path": "/Volumes/a/b/c/logs",
    "tags": "{team: games}",
    "aws.instance_profile": "arn:aws:iam::1:instance-profile/x",
}
VARIANTS: list[dict[str, Any]] = [
    {},
    {"run.engine": "fleet", "databricks.schedule.kind": "continuous", "databricks.tasks_per_job": "3"},
    {"databricks.schedule.kind": "cron", "databricks.schedule.cron": "0 0 5 * * ?", "databricks.auto_apply": "true"},
    {
        "databricks.schedule.kind": "file_arrival",
        "databricks.schedule.url": "s3://bucket/in/",
        "databricks.schedule.quiet_s": "60",
        "databricks.schedule.min_interval_s": "60",
    },
    {
        "databricks.schedule.kind": "table_update",
        "databricks.schedule.tables": "[a.b.c]",
        "databricks.schedule.quiet_s": "60",
        "databricks.schedule.min_interval_s": "60",
    },
    {"databricks.cluster.workers": "0", "databricks.cluster.policy_id": "p"},
    {**{f"databricks.cluster.{name}": text for name, text in EVERYTHING.items()}, "databricks.cluster.node_type": None},
    below("databricks.cluster.aws", availability="SPOT", first_on_demand="1", spot_price_percent="9", zone="a"),
    below("databricks.cluster.azure", availability="SPOT_AZURE", first_on_demand="1", spot_price="1"),
    below("databricks.cluster.gcp", availability="PREEMPTIBLE_GCP", first_on_demand="1", zone="HA")
    | below("databricks.cluster.gcp", service_account="a@b"),
    {
        "databricks.cluster.node_type": None,
        **below("databricks.serverless", performance="STANDARD", budget_policy_id="b"),
    },
    {"databricks.cluster.min_workers": "1", "databricks.cluster.max_workers": "4"},
    {
        **{f"databricks.notifications.emails_on_{event}": "[a@b.org]" for event in EVENTS},
        **{f"databricks.notifications.webhooks_on_{event}": "[a-1]" for event in EVENTS},
        **below("databricks.health", duration_s="60", backlog_s="5"),
        "databricks.run_as.service_principal": "692bc6d0-ffa3-11ed-be56-0242ac120002",
        "databricks.job_timeout_s": "9",
        "databricks.task_timeout_s": "9",
    },
]


def type_in(hint: object) -> type | None:
    """The SDK's type that an annotation such as `Optional[List[Task]]` is about."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return hint
    return next((found for each in typing.get_args(hint) if (found := type_in(each))), None)


def types_below(kind: type, seen: dict[str, type]) -> dict[str, type]:
    """The SDK's types that a value of this one is made of, by name."""
    if kind.__name__ not in seen:
        seen[kind.__name__] = kind
        for inner in filter(None, map(type_in, typing.get_type_hints(kind).values())):
            types_below(inner, seen)
    return seen


TYPES = types_below(jobs.JobSettings, {})


def reached(kind: str = JOB, seen: set[str] | None = None) -> set[str]:
    """The types that a job is made of, as far as their values are taken apart."""
    seen = set() if seen is None else seen
    if kind not in seen:
        seen.add(kind)
        for field in FIELDS[kind].values():
            if field.of:
                reached(field.of, seen)
    return seen


def sent(kind: str, value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Type and name of each field that is sent, those of inner objects too."""
    for name, inner in value.items():
        yield kind, name
        field = field_of(kind, name)
        if field.of:
            for each in inner if field.form is ValueComparison.KEYED else [inner]:
                yield from sent(field.of, each)


def test_the_table_has_the_types_that_it_takes_apart_and_no_other() -> None:
    assert reached() == set(FIELDS)


@pytest.mark.parametrize("kind", FIELDS)
def test_every_field_of_the_sdk_is_classified_and_every_entry_is_one(kind: str) -> None:
    assert set(FIELDS[kind]) == {field.name for field in dataclasses.fields(TYPES[kind])}


@pytest.mark.parametrize("kind", FIELDS)
def test_what_is_taken_apart_is_of_that_type_and_what_may_be_ours_is_taken_apart(kind: str) -> None:
    hints = typing.get_type_hints(TYPES[kind])
    whole = {(JOB, "run_as"), ("ClusterSpec", "init_scripts"), ("ClusterSpec", "cluster_log_conf")}
    for name, field in FIELDS[kind].items():
        inner = type_in(hints[name])
        if field.of:
            assert TYPES[field.of] is inner, name
        elif inner is not None and (kind, name) not in whole:
            # a change inside of it is shown as one of the whole value
            assert field.origin is FieldOrigin.HAND or field.form is ValueComparison.SET, name


def test_the_sdk_has_not_added_a_type_of_task_that_nobody_classified() -> None:
    kinds = {field.name for field in dataclasses.fields(jobs.Task) if field.name.endswith("_task")}
    ours = {name for name in kinds if field_of("Task", name).origin is FieldOrigin.OURS}
    assert ours == {"python_wheel_task", "run_job_task"}


def all_sent() -> set[tuple[str, str]]:
    base = {"root": "s3://b/r", "databricks.name": "prod", "databricks.wheel_path": "/Volumes/a/b/c"}
    tasks = [Task(game, names_of(game).task_key, "cluster_001") for game in ("chess", "go", "ludo")]
    found = set()
    for changes in VARIANTS:
        settings = load(None, {}, {**base, "databricks.cluster.node_type": "i3.xlarge", **changes})
        for each in make_jobs(tasks, settings, "/Volumes/a/b/c/w.whl"):
            found |= {*sent(JOB, each.settings)}
    return found


def test_what_we_send_is_what_the_table_calls_ours() -> None:
    # write-only, or the server has a value where nobody says any
    sent_too = {("ClusterSpec", "apply_policy_default_values"), ("TableUpdateTriggerConfiguration", "condition")}
    sent_too |= {("JobSettings", name) for name in ("budget_policy_id", "performance_target")}
    sent_too |= {
        ("ClusterSpec", name)
        for name in ("data_security_mode", "driver_instance_pool_id", "runtime_engine", "single_user_name")
    }
    sent_too |= {("ClusterSpec", f"{cloud}_attributes") for cloud in ("aws", "azure", "gcp")}
    sent_too |= {("AwsAttributes", name) for name in ("availability", "spot_bid_price_percent", "zone_id")}
    sent_too |= {("AzureAttributes", name) for name in ("availability", "first_on_demand", "spot_bid_max_price")}
    sent_too |= {("GcpAttributes", name) for name in ("availability", "first_on_demand", "zone_id")}
    ours = {
        (kind, name)
        for kind, fields in FIELDS.items()
        for name, each in fields.items()
        if each.origin is FieldOrigin.OURS
    }
    assert all_sent() == ours | sent_too
