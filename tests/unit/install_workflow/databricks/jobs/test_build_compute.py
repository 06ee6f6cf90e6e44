"""What jobs run on, in the words of the Jobs API: serverless compute, standard and dedicated clusters."""

from __future__ import annotations

from typing import Any

import pytest
from databricks.sdk.service import compute, jobs
from hypothesis import given
from hypothesis import strategies as st

from demux.core.errors import PlanRefused
from demux.core.settings.databricks.cluster import AwsAvailability, AzureAvailability, GcpAvailability
from demux.core.settings.databricks.compute import Performance
from demux.core.settings.loading.loader import load
from demux.core.settings.settings import Settings
from install_workflow.databricks.jobs.build import make_jobs
from install_workflow.databricks.jobs.compute import cluster_of, requirements_of
from install_workflow.databricks.jobs.job import Job
from install_workflow.databricks.jobs.schedule import _METRICS
from install_workflow.databricks.jobs.task import KAFKA_CLIENT
from install_workflow.planning.plan import Task
from install_workflow.planning.rebalance import pack
from tests.conftest import Golden
from tests.unit.install_workflow.databricks.jobs.test_build import (
    WHEEL,
    games,
    games_in,
    named,
    require_taken,
    tasks_in,
    tasks_of,
    text_of,
)

LEAST = {"root": "s3://bucket/demux", "databricks.name": "prod", "databricks.wheel_path": "/Volumes/main/ops/wheels"}
KAFKA = {"source.kind": "kafka", "kafka.bootstrap_servers": "broker:9092", "kafka.topics": "events"}
WATCHED = {
    "databricks.health.duration_s": "3600",
    "databricks.health.backlog_records": "1000000",
    "databricks.health.backlog_s": "900",
    "databricks.notifications.emails_on_slow": "ops@example.com",
    "databricks.notifications.webhooks_on_backlog": "0481e838-0a59-4eff-9541-a4ca6f149574",
}
# what a platform team asks of clusters
TEAM = {
    "databricks.cluster.node_type": "m6gd.xlarge",
    "databricks.cluster.driver_node_type": "r6gd.2xlarge",
    "databricks.cluster.min_workers": "1",
    "databricks.cluster.max_workers": "4",
    "databricks.cluster.photon": "true",
    "databricks.cluster.policy_id": "A1B2C3",
    "databricks.cluster.init_scripts": "[/Volumes/main/ops/scripts/certificates.sh, s3://bucket/init/agent.sh]",
    "databricks.cluster.s3_region": "eu-west-1",
    "databricks.cluster.log_path": "/Volumes/main/ops/logs/demux",
    "databricks.cluster.environment": "{STAGE: prod, AGENT_TOKEN: '{{secrets/ops/agent}}'}",
    "databricks.cluster.tags": "{cost_center: '42'}",
    "databricks.cluster.aws.availability": "SPOT_WITH_FALLBACK",
    "databricks.cluster.aws.first_on_demand": "1",
    "databricks.cluster.aws.zone": "auto",
    "games.pinned": "{go: big}",
    "databricks.clusters": "{big: {node_type: r6gd.8xlarge, workers: 8}, bronze: {workers: 0, photon: false}}",
}


def settings(**changes: Any) -> Settings:
    """The settings of a deployment; dots of a key as `__`."""
    return load(None, {}, {**LEAST, **{key.replace("__", "."): value for key, value in changes.items()}})


def of(changes: dict[str, Any], names: list[str], **pinned: str) -> tuple[Job, ...]:
    made = make_jobs(tasks_of(names, pinned=pinned), load(None, {}, {**LEAST, **changes}), WHEEL)
    require_taken(made)
    return made


def clusters_of(job: Job) -> dict[str, dict[str, Any]]:
    return {each["job_cluster_key"]: each["new_cluster"] for each in job.settings["job_clusters"]}


def test_a_job_on_serverless_compute(golden: Golden) -> None:
    more = {"databricks.serverless.performance": "STANDARD", "databricks.serverless.budget_policy_id": "b-1"}
    golden("databricks/serverless.json", text_of(of({**KAFKA, **WATCHED, **more}, ["chess", "go"])))


def test_a_job_on_standard_clusters_of_pools_when_files_arrive(golden: Golden) -> None:
    changes = {
        "databricks.compute": "standard",
        "databricks.cluster.instance_pool_id": "0101-120000-brick1-pool-ABCD1234",
        "databricks.cluster.driver_instance_pool_id": "0101-120000-brick2-pool-ABCD1234",
        "databricks.schedule.kind": "file_arrival",
        "databricks.schedule.url": "s3://bucket/landing",
        "databricks.schedule.quiet_s": "120",
        "maintain.every": "never",
    }
    golden("databricks/standard.json", text_of(of(changes, ["chess", "go"])))


def test_a_job_on_dedicated_clusters_as_platform_teams_write_it(golden: Golden) -> None:
    changes = {**TEAM, "databricks.compute": "dedicated", "databricks.cluster.single_user": "games-jobs"}
    golden("databricks/dedicated.json", text_of(of({**changes, "maintain.every": "never"}, ["chess", "go"], go="big")))


def test_without_clusters_a_pack_of_games_is_a_task_and_the_kafka_client_is_bronzes_alone() -> None:
    names = [f"g{number:02}" for number in range(45)]
    job, maintain = make_jobs(tasks_of(names), load(None, {}, {**LEAST, **KAFKA}), WHEEL)
    assert {key: task["environment_key"] for key, task in tasks_in(job).items()} == {
        "bronze": "kafka",
        **{f"deserialize_cluster_00{number}": "default" for number in (1, 2, 3)},
    }
    assert requirements_of(job.settings) == [WHEEL, WHEEL, KAFKA_CLIENT]
    assert [each["environment_key"] for each in maintain.settings["environments"]] == ["default"]
    assert not any("libraries" in task or "job_cluster_key" in task for task in job.settings["tasks"])


@given(games, st.integers(1, 6), st.integers(0, 12))
def test_every_game_is_in_one_task_with_an_environment_and_the_next_plan_finds_its_pack(
    names: set[str], per_pack: int, more: int
) -> None:
    chosen = settings(
        run__streams_per_cluster=per_pack, databricks__tasks_per_job=max(3, per_pack) + more, maintain__every="never"
    )
    packed = tasks_of(names, per_pack)
    try:
        made = make_jobs(packed, chosen, WHEEL)
    except PlanRefused as refused:
        # bronze's own job has no room for as many jobs
        if refused.fields["tasks"] in range(chosen.databricks.tasks_per_job + 1):
            raise
        return
    require_taken(made)
    found: dict[str, str | None] = {}
    for job in made:
        environments = {each["environment_key"] for each in job.settings.get("environments", ())}
        for key, task in tasks_in(job).items():
            assert "run_job_task" in task or task["environment_key"] in environments
            found |= dict.fromkeys(games_in(task), cluster_of(key, task))
    assert found == {named(task.game): task.cluster for task in packed}


def test_a_task_says_which_pack_it_has_also_where_it_is_a_further_part() -> None:
    long = [f"{number:05}{'X' * 75}" for number in range(140)]
    chosen = settings(run__streams_per_cluster="140", maintain__every="never")
    (job,) = make_jobs(tasks_of(long, 140), chosen, WHEEL)
    keys = [key for key in tasks_in(job) if key != "bronze"]
    assert keys[1] == "deserialize_cluster_001_PART2"
    assert {cluster_of(key, tasks_in(job)[key]) for key in keys} == {"cluster_001"}
    assert cluster_of("bronze", tasks_in(job)["bronze"]) is None


def test_a_job_without_clusters_has_more_than_a_hundred_packs() -> None:
    tasks = [Task(game, f"deserialize_{game}", cluster) for game, cluster in pack(map(str, range(150)), {}, 1).items()]
    (job,) = make_jobs(tasks, settings(run__streams_per_cluster="1", maintain__every="never"), WHEEL)
    assert len(job.settings["tasks"]) == 151


@pytest.mark.parametrize(
    ("changes", "credentials"),
    [
        ({}, ["store.credentials=unity-catalog"]),
        (
            {"databricks__compute": "standard", "databricks__cluster__node_type": "a"},
            ["store.credentials=unity-catalog"],
        ),
        ({"databricks__cluster__node_type": "a"}, []),
        ({"root": "/Volumes/main/demux/data"}, []),
        ({"store__access_key": "secret:databricks/a/b", "store__secret_key": "secret:databricks/a/c"}, []),
    ],
)
def test_a_task_whose_machine_has_no_identity_reaches_the_root_by_unity_catalog(
    changes: dict[str, Any], credentials: list[str]
) -> None:
    job = make_jobs(tasks_of(["chess"]), settings(**changes), WHEEL)[0]
    for task in job.settings["tasks"]:
        words = task["python_wheel_task"]["parameters"]
        assert [word for word in words if word.startswith("store.credentials")] == credentials


def test_a_single_cluster_has_what_is_its_own_and_else_what_all_have() -> None:
    (job,) = of({**TEAM, "maintain.every": "never"}, ["chess", "go"], go="big")
    made = clusters_of(job)
    assert (made["big"]["node_type_id"], made["big"]["num_workers"], "autoscale" in made["big"]) == (
        "r6gd.8xlarge",
        8,
        False,
    )
    assert "driver_node_type_id" not in made["big"], "the driver of other machines would be none of these"
    assert (made["big"]["runtime_engine"], made["bronze"]["runtime_engine"]) == ("PHOTON", "STANDARD")
    assert (made["bronze"]["num_workers"], made["bronze"]["node_type_id"]) == (0, "m6gd.xlarge")
    assert made["cluster_001"]["autoscale"] == {"min_workers": 1, "max_workers": 4}


def test_a_pool_has_the_machines_and_a_single_cluster_may_have_others() -> None:
    changes = {
        "databricks.cluster.instance_pool_id": "pool-1",
        "databricks.cluster.driver_instance_pool_id": "pool-2",
        "databricks.clusters": "{bronze: {node_type: c6g.large}}",
    }
    made = clusters_of(of(changes, ["chess"])[0])
    assert (made["cluster_001"]["instance_pool_id"], made["cluster_001"]["driver_instance_pool_id"]) == (
        "pool-1",
        "pool-2",
    )
    assert (made["bronze"]["node_type_id"], "instance_pool_id" in made["bronze"]) == ("c6g.large", False)


def test_a_single_cluster_of_a_pool_has_its_machines_as_the_pool_buys_them_and_their_identity_as_ours() -> None:
    arn = "arn:aws:iam::123456789012:instance-profile/demux"
    changes = {
        "databricks.cluster.node_type": "c6g.large",
        "databricks.cluster.aws.availability": "SPOT",
        "databricks.cluster.aws.instance_profile": arn,
        "databricks.clusters": "{bronze: {instance_pool_id: pool-1}}",
    }
    made = clusters_of(of(changes, ["chess"])[0])
    assert made["bronze"]["aws_attributes"] == {"instance_profile_arn": arn}
    assert made["cluster_001"]["aws_attributes"] == {"availability": "SPOT", "instance_profile_arn": arn}


@pytest.mark.parametrize(
    ("path", "region", "destination"),
    [
        ("dbfs:/logs", None, {"dbfs": {"destination": "dbfs:/logs"}}),
        ("s3://bucket/logs/", "eu-west-1", {"s3": {"destination": "s3://bucket/logs", "region": "eu-west-1"}}),
    ],
)
def test_logs_go_to_a_folder_of_a_kind_that_the_api_knows(path: str, region: str, destination: dict[str, Any]) -> None:
    changes = {"databricks.cluster.node_type": "a", "databricks.cluster.log_path": path}
    (job, _) = of({**changes, "databricks.cluster.s3_region": region}, [])
    assert clusters_of(job)["bronze"]["cluster_log_conf"] == destination


def test_health_is_watched_where_it_is_measured() -> None:
    split = {"databricks.tasks_per_job": "4", "run.streams_per_cluster": "1"}
    tasks = tasks_of(["chess", "go", "ludo", "shogi"], 1)
    *parts, bronze, maintain = make_jobs(tasks, load(None, {}, {**LEAST, **WATCHED, **split}), WHEEL)

    def metrics(job: Job) -> list[str]:
        return [rule["metric"] for rule in job.settings.get("health", {"rules": []})["rules"]]

    # bronze's job starts those of the games: it sees how long a run takes, they see their own streams
    assert metrics(bronze) == ["RUN_DURATION_SECONDS", "STREAMING_BACKLOG_RECORDS", "STREAMING_BACKLOG_SECONDS"]
    assert [metrics(job) for job in parts] == [["STREAMING_BACKLOG_RECORDS", "STREAMING_BACKLOG_SECONDS"]]
    assert ("email_notifications" in parts[0].settings, "webhook_notifications" in parts[0].settings) == (False, True)
    assert metrics(maintain) == []


def test_the_values_that_we_have_are_those_of_the_api() -> None:
    pairs: list[tuple[Any, Any]] = [
        (AwsAvailability, compute.AwsAvailability),
        (AzureAvailability, compute.AzureAvailability),
        (GcpAvailability, compute.GcpAvailability),
        (Performance, jobs.PerformanceTarget),
    ]
    for ours, theirs in pairs:
        assert {each.value for each in ours} == {each.value for each in theirs}
    assert {metric for metric, _ in _METRICS.values()} == {each.value for each in jobs.JobsHealthMetric}
