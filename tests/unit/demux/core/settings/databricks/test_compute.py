"""What the jobs run on: which compute the settings mean, and what each refuses, with the setting to change."""

from __future__ import annotations

import inspect
import typing
from typing import Any

import pytest
from databricks.sdk.service import jobs

from demux.core.errors import SettingsInvalid
from demux.core.settings.databricks.access import LoginSettings
from demux.core.settings.databricks.cluster import ClusterSettings, NodeSettings
from demux.core.settings.databricks.compute import Compute
from demux.core.settings.databricks.deployment import DatabricksSettings, Granularity
from demux.core.settings.databricks.schedule import HealthSettings, NotificationSettings
from demux.core.settings.loading.loader import load
from demux.core.settings.settings import Settings
from demux.core.settings.types import Section

LEAST = {"root": "s3://bucket/demux", "databricks.name": "prod", "databricks.wheel_path": "/Volumes/main/ops/wheels"}
ARN = "arn:aws:iam::123456789012:instance-profile/demux"


def loaded(**databricks: Any) -> Settings:
    """The settings with these keys below `databricks`, dots as `__`; a key that begins with `_` is one of its own."""
    given = {
        key[1:].replace("__", ".") if key.startswith("_") else f"databricks.{key.replace('__', '.')}": value
        for key, value in databricks.items()
    }
    return load(None, {}, {**LEAST, **given})


def mistake(**databricks: Any) -> str:
    """What is said of them, the place of a rule left out."""
    with pytest.raises(SettingsInvalid) as caught:
        loaded(**databricks)
    return caught.value.message.partition(": ")[2]


@pytest.mark.parametrize(
    ("databricks", "compute"),
    [
        ({}, Compute.SERVERLESS),
        ({"cluster__node_type": "i3.xlarge"}, Compute.DEDICATED),
        ({"cluster__policy_id": "A1"}, Compute.DEDICATED),
        ({"cluster__instance_pool_id": "p"}, Compute.DEDICATED),
        ({"cluster__policy_id": "A1", "cluster__photon": "false"}, Compute.DEDICATED),
        ({"compute": "standard", "cluster__node_type": "i3.xlarge"}, Compute.STANDARD),
        ({"compute": "dedicated", "cluster__aws__zone": "auto", "cluster__node_type": "a"}, Compute.DEDICATED),
        ({"cluster__spark_version": "17.3.x-scala2.13"}, Compute.SERVERLESS),
    ],
)
def test_the_compute_is_the_one_asked_for_else_dedicated_where_a_cluster_is_described_else_serverless(
    databricks: dict[str, str], compute: Compute
) -> None:
    assert loaded(**databricks).databricks.compute_kind is compute


def test_half_a_description_of_a_cluster_is_no_serverless_job() -> None:
    said = mistake(cluster__photon="true")
    assert said == (
        "databricks: a job cluster needs cluster.node_type, cluster.instance_pool_id or cluster.policy_id; for no "
        "cluster at all set compute: serverless, and take out cluster"
    )


def test_serverless_compute_refuses_each_setting_of_a_cluster_by_its_name() -> None:
    described = {"cluster__node_type": "a", "cluster__init_scripts": "[/Volumes/a/b/c/d.sh]", "cluster__aws__zone": "z"}
    assert mistake(compute="serverless", clusters="{bronze: {workers: 2}}", **described) == (
        "databricks: compute is serverless, which has no clusters: take out cluster.node_type, cluster.init_scripts, "
        "cluster.aws.zone, clusters.bronze, or set compute: dedicated or standard"
    )


def test_on_serverless_compute_a_task_has_a_pack_of_games_and_one_of_each_game_is_a_pack_of_one() -> None:
    assert loaded().granularity is Granularity.CLUSTER
    assert loaded(cluster__node_type="a").granularity is Granularity.GAME
    assert "set run.streams_per_cluster: 1 for a task of each game" in mistake(granularity="game")


@pytest.mark.parametrize(
    ("databricks", "said"),
    [
        (
            {"_run__sink": "files"},
            "run.sink: files is not for databricks.compute: serverless, where Spark's tasks reach",
        ),
        (
            {"_root": "gs://bucket/demux"},
            "root is in GCS, and on databricks.compute: serverless a task has no identity",
        ),
        (
            {"_run__engine": "fleet"},
            "run.engine: fleet is not for databricks.compute: serverless, where Spark's tasks reach no",
        ),
        ({"clusters": "{bigg: {workers: 2}}", "cluster__node_type": "a"}, "databricks.clusters.bigg: no such cluster"),
    ],
)
def test_what_other_sections_say_and_the_compute_cannot_do_is_refused(databricks: dict[str, str], said: str) -> None:
    assert mistake(**databricks).startswith(said)


def test_a_single_cluster_is_one_that_the_plan_makes_or_that_a_game_is_pinned_to() -> None:
    named = "{bronze: {workers: 2}, maintain: {workers: 1}, cluster_003: {workers: 4}, big: {workers: 8}}"
    found = loaded(clusters=named, cluster__node_type="a", _games__pinned="{chess: big}").databricks.clusters
    assert found["big"].workers == 8
    assert "node_type and driver_node_type, or instance_pool_id" in mistake(
        clusters="{bronze: {node_type: a, instance_pool_id: b}}", cluster__node_type="a"
    )


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        (
            {"spark_conf": "{spark.executor.extraJavaOptions: -Da=b}"},
            "cluster.spark_conf: standard access mode refuses",
        ),
        ({"spark_version": "17.3.x-cpu-ml-scala2.13"}, "cluster.spark_version: standard access mode has no runtime"),
        ({"spark_version": "17.3.x-gpu-ml-scala2.13"}, "cluster.spark_version: standard access mode has no runtime"),
        ({"init_scripts": "[/Workspace/Shared/a.sh]"}, "cluster.init_scripts: standard access mode takes them from"),
        ({"aws__instance_profile": ARN}, "cluster.aws.instance_profile: no code of a task reaches it"),
        ({"gcp__service_account": "a@b.iam"}, "cluster.gcp.service_account: no code of a task reaches it"),
        ({"single_user": "analysts"}, "cluster.single_user is for compute: dedicated"),
    ],
)
def test_standard_clusters_refuse_what_their_access_mode_cannot_do_and_dedicated_ones_take_it(
    cluster: dict[str, str], said: str
) -> None:
    given = {"cluster__node_type": "a", **{f"cluster__{name}": value for name, value in cluster.items()}}
    assert mistake(compute="standard", **given).startswith(f"databricks: {said}")
    assert loaded(compute="dedicated", **given).databricks.compute_kind is Compute.DEDICATED


def test_settings_of_serverless_compute_are_for_it_alone() -> None:
    assert mistake(cluster__node_type="a", serverless__budget_policy_id="b", serverless__environment_version="3") == (
        "databricks: serverless.environment_version, serverless.budget_policy_id: for compute: serverless alone; take "
        "them out where there are clusters"
    )


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ({"instance_pool_id": "p", "node_type": "a"}, "node_type and driver_node_type, or instance_pool_id, not both"),
        ({"driver_instance_pool_id": "p", "node_type": "a"}, "driver_instance_pool_id needs instance_pool_id"),
        (
            {"instance_pool_id": "p", "aws__availability": "SPOT"},
            "aws.availability: not for instance_pool_id, as the pool says",
        ),
        ({"node_type": "a", "aws__zone": "a", "gcp__zone": "b"}, "aws and gcp: a workspace is in one cloud"),
        ({"log_path": "s3://b/logs"}, "log_path and init_scripts of s3:// need s3_region, and no others do"),
        ({"init_scripts": "[s3://b/a.sh]"}, "log_path and init_scripts of s3:// need s3_region"),
        ({"log_path": "/Volumes/a/b/c/d", "s3_region": "x"}, "log_path and init_scripts of s3:// need s3_region"),
    ],
)
def test_what_the_clusters_api_would_refuse_is_said_first(cluster: dict[str, str], said: str) -> None:
    given = {f"cluster__{name}": value for name, value in cluster.items()}
    assert mistake(**given).startswith(f"databricks.cluster: {said}")


@pytest.mark.parametrize(
    ("databricks", "said"),
    [
        (
            {"cluster__aws__availability": "ON_DEMAND", "cluster__aws__spot_price_percent": "50"},
            "databricks.cluster.aws: spot_price_percent is for availability SPOT or SPOT_WITH_FALLBACK",
        ),
        (
            {"cluster__azure__availability": "ON_DEMAND_AZURE", "cluster__azure__spot_price": "1"},
            "databricks.cluster.azure: spot_price is for availability SPOT_AZURE or SPOT_WITH_FALLBACK_AZURE",
        ),
        (
            {"clusters": "{bronze: {driver_node_type: b}}"},
            "databricks: clusters.bronze.driver_node_type needs clusters.bronze.node_type",
        ),
        (
            {"cluster__single_user": "ann@x.org", "run_as__user": "bob@x.org"},
            "databricks: cluster.single_user is ann@x.org, and the jobs run as bob@x.org: set it to that, to a group, "
            "or leave it out",
        ),
        (
            {
                "tags": {f"a{number}": "x" for number in range(22)},
                "cluster__tags": {f"b{number}": "x" for number in range(22)},
            },
            "databricks: tags and cluster.tags: a cluster would have 44; take out 3",
        ),
        (
            {"login__client_id": "a", "login__client_secret": "secret:env/A", "login__auth_type": "github-oidc"},
            "databricks.login: client_secret is for auth_type oauth-m2m, not github-oidc; take out one of the two",
        ),
    ],
)
def test_two_settings_that_the_workspace_would_not_take_together_are_refused(
    databricks: dict[str, Any], said: str
) -> None:
    assert mistake(**{"cluster__node_type": "a", **databricks}) == said


def test_spot_machines_without_a_kind_of_machine_are_no_cluster() -> None:
    assert mistake(cluster__aws__availability="SPOT").startswith("databricks: a job cluster needs cluster.node_type")


@pytest.mark.parametrize(
    "single_user",
    [{"run_as__user": "Ann@x.org"}, {"cluster__single_user": "analysts", "run_as__user": "bob@x.org"}, {}],
)
def test_a_cluster_of_one_user_is_whom_the_jobs_run_as_or_a_group(single_user: dict[str, str]) -> None:
    given = {"cluster__single_user": "ann@x.org", **single_user}
    assert loaded(cluster__node_type="a", **given).databricks.cluster.single_user == given["cluster__single_user"]


def test_tags_of_the_jobs_and_of_the_clusters_are_counted_once_where_they_have_the_same_name() -> None:
    tags = {f"a{number}": "x" for number in range(22)}
    assert loaded(cluster__node_type="a", tags=tags, cluster__tags=tags).databricks.tags == tags


def test_with_a_policy_a_single_cluster_may_set_its_driver_alone() -> None:
    clusters = loaded(cluster__policy_id="p", clusters="{bronze: {driver_node_type: b}}").databricks.clusters
    assert clusters["bronze"].driver_node_type == "b"


@pytest.mark.parametrize(
    ("key", "instead"),
    [
        ("cluster__num_workers", "it is workers here"),
        ("cluster__autoscale", "it is min_workers and max_workers here"),
        ("cluster__spark_env_vars", "it is environment here"),
        ("cluster__gcp_attributes", "it is gcp here"),
        ("trigger", "set schedule.kind: file_arrival or table_update"),
        ("performance_target", "it is serverless.performance here"),
        (
            "cluster__budget_policy_id",
            "it is for serverless compute, as serverless.budget_policy_id; clusters have tags",
        ),
        ("health__backlog_rows", "it is backlog_records here"),
        (
            "notifications__slack_on_failure",
            "it is webhooks_on_failure here, with the id of a notification destination for Slack",
        ),
        ("login__token", "a token comes from DATABRICKS_TOKEN or from a profile, never from settings"),
        (
            "git_source",
            "a job of wheels has no Git source, as that is for notebooks, Python files, dbt and SQL; check out the "
            "branch, tag or commit, and run `demux apply` there, which builds the wheel from it",
        ),
    ],
)
def test_a_name_of_the_api_is_refused_with_ours_or_with_what_to_do_instead(key: str, instead: str) -> None:
    assert mistake(**{key: {"a": "b"}}) == f"databricks.{key.replace('__', '.')}: unknown key; {instead}"


@pytest.mark.parametrize(
    ("key", "instead"),
    [
        ("num_workers", "it is workers here"),
        ("aws", "set it below databricks.cluster, for all clusters alike"),
        ("policy_id", "set it below databricks.cluster, for all clusters alike"),
    ],
)
def test_a_single_cluster_has_machines_alone(key: str, instead: str) -> None:
    said = mistake(cluster__node_type="a", clusters={"bronze": {key: "b"}})
    assert said == f"databricks.clusters.bronze.{key}: unknown key; {instead}"


def test_every_hint_is_about_a_key_that_there_is_not_and_a_single_cluster_sends_to_one_that_there_is() -> None:
    sections: tuple[type[Section], ...] = (
        *(DatabricksSettings, ClusterSettings, NodeSettings),
        *(LoginSettings, HealthSettings, NotificationSettings),
    )
    assert [name for section in sections for name in section.hints if name in section.model_fields] == []
    of_all = set(ClusterSettings.model_fields) - set(NodeSettings.model_fields)
    assert of_all <= NodeSettings.hints.keys()


def test_an_init_script_without_a_destination_is_refused_with_the_places_that_there_are() -> None:
    scripts: tuple[object, ...] = ("", {"volumes": {}}, None, "/Volumes/a/b/c/../d.sh")
    for script in scripts:
        said = mistake(cluster__node_type="a", cluster__init_scripts=[script])
        assert "expected a file below /Volumes or /Workspace, or s3://bucket/…" in said


def test_a_git_source_is_for_none_of_the_tasks_that_we_make() -> None:
    said = inspect.getdoc(jobs.GitSource) or ""
    assert "supported by notebook, dbt, Python script, and SQL File tasks" in " ".join(said.split())
    tasks = {
        name: typing.get_args(hint)[0]
        for name, hint in typing.get_type_hints(jobs.Task).items()
        if name.endswith("_task")
    }
    reads_git = {name for name, kind in tasks.items() if "source" in typing.get_type_hints(kind)}
    assert {"notebook_task", "spark_python_task"} <= reads_git
    assert not reads_git & {"python_wheel_task", "run_job_task"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cluster__init_scripts", "[dbfs:/a.sh]"),
        ("cluster__init_scripts", "[a.sh]"),
        ("cluster__init_scripts", "['']"),
        ("cluster__init_scripts", "[s3://bucket/folder/]"),
        ("cluster__init_scripts", "[abfss://bucket/a.sh]"),
        ("cluster__log_path", "dbfs:/Volumes/a/b/c/d"),
        ("cluster__log_path", "/Volumes/a/b/c/../d"),
        ("cluster__single_user", "${x}"),
        ("cluster__node_type", "i3 xlarge"),
        ("cluster__spark_version", "17.3"),
        ("cluster__spark_version", "17.3.x-photon-scala2.13"),
        ("cluster__spark_conf", "{spark.databricks.cluster.profile: singleNode}"),
        ("cluster__azure__spot_price", "0"),
        ("cluster__azure__spot_price", "-0.5"),
        ("cluster__gcp__service_account", "demux"),
        ("cluster__log_path", "/tmp/logs"),
        ("cluster__log_path", "/Volumes/a/b/c"),
        ("cluster__environment", "{A-B: c}"),
        ("cluster__environment", "{API_TOKEN: abc}"),
        ("cluster__aws__availability", "CHEAP"),
        ("cluster__aws__instance_profile", "demux"),
        ("cluster__azure__first_on_demand", "0"),
        ("serverless__environment_version", "four"),
        ("health__duration_s", "0"),
        ("serverless__performance", "COST_OPTIMIZED"),
        ("notifications__webhooks_on_failure", "https://hooks.slack.com/services/a"),
        ("run_as__service_principal", "my robot"),
        ("permissions__service_principals", "{robot: CAN_VIEW}"),
        ("login__host", "adb-1.azuredatabricks.net"),
        ("login__host", "https://adb-1.azuredatabricks.net/?o=1"),
        ("login__client_secret", "hunter2"),
    ],
)
def test_a_value_that_the_workspace_would_not_take_is_refused_at_its_key(key: str, value: str) -> None:
    said = mistake(**{key: value})
    assert said.startswith(f"databricks.{key.replace('__', '.')}")
    assert "hunter2" not in said
    assert "text that matches" not in said, "a pattern is no sentence"


def test_a_secret_of_an_environment_variable_is_a_reference_of_the_workspace() -> None:
    given = loaded(cluster__node_type="a", cluster__environment="{API_TOKEN: '{{secrets/ops/token}}'}")
    assert given.databricks.cluster.environment == {"API_TOKEN": "{{secrets/ops/token}}"}


def test_a_notification_that_nothing_would_send_is_refused_with_the_limit_that_is_missing() -> None:
    assert mistake(notifications__emails_on_slow="a@b.org", notifications__webhooks_on_backlog="x") == (
        "databricks: notifications.emails_on_slow needs health.duration_s; notifications.webhooks_on_backlog needs one "
        "of health.backlog_*"
    )
    assert loaded(notifications__emails_on_backlog="a@b.org", health__backlog_s="60").databricks.health.backlog_s == 60


def test_a_login_by_a_secret_needs_its_principal_and_a_secret_that_can_be_read_before_the_login() -> None:
    assert mistake(login__client_secret="secret:env/A") == "databricks.login: client_secret needs client_id"
    assert "a scope is read after the login" in mistake(
        login__client_id="robot", login__client_secret="secret:databricks/a/b"
    )
