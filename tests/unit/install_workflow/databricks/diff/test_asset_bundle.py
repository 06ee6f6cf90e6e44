"""The bundle: the same jobs as `apply` installs."""

from __future__ import annotations

import re
from typing import Any

import pytest
from databricks.sdk.service.jobs import JobSettings
from ruamel.yaml import YAML

from demux.core.errors import SettingsInvalid
from demux.core.settings.loading.loader import load
from demux.core.settings.settings import Settings
from install_workflow.databricks.diff.asset_bundle import bundle_files
from install_workflow.databricks.jobs.build import make_jobs
from install_workflow.databricks.jobs.job import Job, root_tag
from install_workflow.planning.plan import Task
from tests.conftest import Golden
from tests.support.databricks.sdk_types import wrong_fields

WHEEL = "/Volumes/main/ops/wheels/protobuf_demux-0.1.0+abc-py3-none-any.whl"
SMALL = {
    "root": "s3://lake/demux",
    "databricks.name": "prod",
    "databricks.cluster.node_type": "i3.xlarge",
    "databricks.wheel_path": "/Volumes/main/ops/wheels",
    "tables.catalog": "main",
    "databricks.permissions.groups": "{data team: CAN_VIEW}",
    "databricks.tags": "{country: no, since: 2026-01-31, size: 1e3}",
    "databricks.schedule.kind": "cron",
    "databricks.schedule.cron": "0 0 5 * * ?",
    "archive.path": "s3://bucket/in",
    "archive.clean": "delete",
}
SPLIT = {
    **SMALL,
    "maintain.every": "never",
    "run.streams_per_cluster": "2",
    "databricks.tasks_per_job": "4",
    "databricks.schedule.kind": "continuous",
    "databricks.schedule.cron": None,
}
HOSTILE = ["chess", "${var.wheel}", "{{job.id}}", "'\"\\:#- ", "---", "null", "将棋", "\ufffe", "i3.xlarge"]


def deployment(changes: dict[str, Any], games: list[str]) -> tuple[tuple[Job, ...], Settings]:
    """The jobs of these games, two on a cluster, and the settings that they were made from."""
    settings = load(None, {}, changes)
    tasks = [Task(game, f"deserialize_g{n}", f"cluster_{n // 2 + 1:03d}") for n, game in enumerate(games)]
    return make_jobs(tasks, settings, WHEEL), settings


def read(text: str) -> Any:
    """The content of a file of the bundle."""
    return YAML(typ="safe", pure=True).load(text)


def installed(files: dict[str, str], target: str) -> dict[str, Any]:
    """The jobs by their key in the bundle, as the target has them: variables replaced, references left."""
    main = read(files["databricks.yml"])
    values = {name: each["default"] for name, each in main["variables"].items()}
    values |= main["targets"][target].get("variables", {})

    def replaced(value: Any) -> Any:
        match value:
            case dict():
                return {key: replaced(each) for key, each in value.items()}
            case list():
                return [replaced(each) for each in value]
            case str():
                return re.sub(r"\$\{var\.(\w+)\}", lambda found: values[found[1]], value)
            case _:
                return value

    resources = [replaced(read(text)) for path, text in files.items() if path.startswith("resources/")]
    return {key: job for each in resources for key, job in each["resources"]["jobs"].items()}


@pytest.mark.parametrize(
    "changes", [SMALL, SPLIT, {**SMALL, "databricks.name": "name", "databricks.cluster.node_type": "root"}]
)
def test_the_target_prod_is_what_apply_installs(changes: dict[str, Any]) -> None:
    jobs, settings = deployment(changes, HOSTILE)
    found = installed(bundle_files(jobs, settings, WHEEL), "prod")
    name = settings.databricks.name
    assert set(found) == {f"{name}_{job.part}" for job in jobs}
    for job in jobs:
        made = found[f"{name}_{job.part}"]
        assert made.pop("permissions") == [{"group_name": "data team", "level": "CAN_VIEW"}]
        assert _with_references(made) == job.settings


def _with_references(job: dict[str, Any]) -> dict[str, Any]:
    for task in job["tasks"]:
        if "run_job_task" in task:
            called = task["run_job_task"]["job_id"]
            task["run_job_task"]["job_id"] = re.sub(r"\$\{resources\.jobs\.prod_(\w+)\.id\}", r"${part:\1}", called)
    return job


def test_the_jobs_of_a_bundle_call_each_other_by_their_keys() -> None:
    jobs, settings = deployment(SPLIT, ["a", "b", "c", "d"])
    found = installed(bundle_files(jobs, settings, WHEEL), "prod")
    called = {
        key: [task["run_job_task"]["job_id"] for task in job["tasks"] if "run_job_task" in task]
        for key, job in found.items()
    }
    assert called == {
        "prod_001": [],
        "prod_bronze": ["${resources.jobs.prod_001.id}"],
        "prod_continuous": ["${resources.jobs.prod_bronze.id}"],
    }


def test_the_target_dev_touches_nothing_of_prod() -> None:
    jobs, settings = deployment(SMALL, ["chess"])
    files = bundle_files(jobs, settings, WHEEL)
    found = installed(files, "dev")
    job = found["prod_all"]
    (maintain,) = found["prod_maintain"]["tasks"]
    assert "root=s3://lake/demux_dev" in maintain["python_wheel_task"]["parameters"]
    parameters = {part for task in job["tasks"] for part in task["python_wheel_task"]["parameters"]}
    assert {"root=s3://lake/demux_dev", "tables.catalog=main_dev", "archive.clean=keep"} < parameters
    assert not {"root=s3://lake/demux", "tables.catalog=main", "databricks.name=prod"} & parameters
    assert job["tags"]["protobuf_demux"] == "prod-dev"
    assert job["tags"]["protobuf_demux_root"] == root_tag("s3://lake/demux_dev")
    assert "/Volumes/main/ops/wheels/deployment.prod-dev" in parameters
    assert read(files["databricks.yml"])["targets"]["dev"]["presets"] == {"jobs_max_concurrent_runs": 1}


def test_the_development_name_of_a_long_one_is_a_name_still() -> None:
    jobs, settings = deployment({**SMALL, "databricks.name": "n" * 40}, [])
    dev = installed(bundle_files(jobs, settings, WHEEL), "dev")
    name = dev["n" * 40 + "_all"]["tags"]["protobuf_demux"]
    assert name == "n" * 36 + "-dev"
    assert load(None, {}, {**SMALL, "databricks.name": name}).databricks.name == name


def test_a_bundle_is_taken_by_the_api_and_read_by_people(golden: Golden) -> None:
    jobs, settings = deployment(SMALL, ["chess", "将棋"])
    files = bundle_files(jobs, settings, WHEEL)
    for job in installed(files, "prod").values():
        del job["permissions"]
        assert JobSettings.from_dict(job).as_dict() == job
    assert list(files) == ["databricks.yml", "resources/all.yml", "resources/maintain.yml"]
    golden("databricks/bundle.yml", "\n".join(f"==== {path}\n{text}" for path, text in files.items()))


SERVERLESS = {key: value for key, value in SMALL.items() if key != "databricks.cluster.node_type"}
COMPUTES: dict[str, dict[str, Any]] = {
    "serverless": {
        **SERVERLESS,
        "source.kind": "kafka",
        "kafka.bootstrap_servers": "broker:9092",
        "kafka.topics": "events",
        "databricks.serverless.performance": "STANDARD",
        "databricks.serverless.budget_policy_id": "b-1",
        "databricks.health.duration_s": "3600",
        "databricks.notifications.webhooks_on_slow": "a-1",
    },
    "standard": {**SMALL, "databricks.compute": "standard", "databricks.cluster.aws.availability": "SPOT"},
    "dedicated": {
        **SMALL,
        "databricks.compute": "dedicated",
        "databricks.cluster.azure.spot_price": "-1",
        "databricks.cluster.init_scripts": "[/Volumes/main/ops/scripts/a.sh]",
        "databricks.cluster.log_path": "/Volumes/main/ops/logs/demux",
        "databricks.clusters": "{bronze: {workers: 0}}",
    },
}
# the fields of a bundle's main file that are used here; what a target may have
MAIN = {"bundle", "include", "variables", "targets"}
TARGET = {"mode", "default", "presets", "variables", "workspace"}


@pytest.mark.parametrize("compute", COMPUTES)
def test_each_field_of_a_bundle_is_one_of_the_sdks_types_and_its_targets_are_dev_and_prod(
    compute: str, golden: Golden
) -> None:
    jobs, settings = deployment(COMPUTES[compute], ["chess", "将棋", "go"])
    files = bundle_files(jobs, settings, WHEEL)
    main = read(files["databricks.yml"])
    assert set(main) == MAIN
    assert {name: target["mode"] for name, target in main["targets"].items()} == {
        "dev": "development",
        "prod": "production",
    }
    assert all(set(target) <= TARGET for target in main["targets"].values())
    for path, text in files.items():
        for job in read(text).get("resources", {}).get("jobs", {}).values():
            granted = job.pop("permissions")
            assert [set(each) for each in granted] == [{"group_name", "level"}]
            assert list(wrong_fields(JobSettings, job, path)) == []
    for target in ("dev", "prod"):
        for job in installed(files, target).values():
            del job["permissions"]
            assert list(wrong_fields(JobSettings, job, target)) == []
            assert JobSettings.from_dict(job).as_dict() == job
    if compute == "serverless":
        golden("databricks/bundle_serverless.yml", "\n".join(f"==== {path}\n{text}" for path, text in files.items()))


def test_a_bundle_on_serverless_compute_has_its_wheel_as_a_variable_and_no_node_type() -> None:
    jobs, settings = deployment(COMPUTES["serverless"], ["chess"])
    files = bundle_files(jobs, settings, WHEEL)
    specs = [each["spec"] for each in read(files["resources/all.yml"])["resources"]["jobs"]["prod_all"]["environments"]]
    assert [spec["dependencies"][0] for spec in specs] == ["${var.wheel}", "${var.wheel}"]
    assert "node_type" not in read(files["databricks.yml"])["variables"]
    assert not any("cluster" in text for text in (files["resources/maintain.yml"],))


def test_a_field_that_the_sdk_does_not_know_is_seen() -> None:
    wrong = {
        "name": 1,
        "tasks": [{"task_kez": "a"}],
        "performance_target": "FAST",
        "queue": {"enabled": "${var.queue}"},
        "tags": ["a"],
    }
    assert list(wrong_fields(JobSettings, wrong, "job")) == [
        "job.name: expected str, not 1",
        "job.tasks.0: Task has no field task_kez",
        "job.tasks.0: Task needs task_key",
        "job.performance_target: 'FAST' is none of PerformanceTarget",
        "job.tags: expected dict, not ['a']",
    ]


def test_a_bundle_of_a_fleet_says_so_and_its_targets_tell_the_tasks() -> None:
    jobs, settings = deployment({**SMALL, "run.engine": "fleet"}, ["chess", "go"])
    files = bundle_files(jobs, settings, WHEEL)
    for target in ("dev", "prod"):
        job = installed(files, target)["prod_all"]
        tasks = {task["task_key"]: task for task in job["tasks"]}
        parameters = tasks["deserialize_cluster_001"]["python_wheel_task"]["parameters"]
        assert parameters[:3] == ["deserialize", "--game=chess", "--game=go"]
        assert "run.engine=fleet" in parameters
        assert ", engine fleet. " in job["description"]


def test_a_value_that_a_bundle_would_replace_is_refused() -> None:
    jobs, settings = deployment({**SMALL, "databricks.cluster.spark_conf": "{spark.a: '${var.x}'}"}, [])
    with pytest.raises(SettingsInvalid, match=r"\$\{var\.x\}"):
        bundle_files(jobs, settings, WHEEL)


def test_a_bundle_has_no_task_that_changes_its_own_jobs() -> None:
    jobs, settings = deployment({**SMALL, "databricks.auto_apply": "true"}, ["chess"])
    with pytest.raises(SettingsInvalid, match=r"A bundle cannot have databricks\.auto_apply") as refused:
        bundle_files(jobs, settings, WHEEL)
    assert "`demux export bundle --discovered`" in refused.value.remedy
    assert "`demux apply`" in refused.value.remedy


@pytest.mark.parametrize(
    ("root", "dev"),
    [
        ("s3://bucket/demux", "s3://bucket/demux_dev"),
        ("s3://bucket/a/b/", "s3://bucket/a/b_dev"),
        ("abfss://box@account.dfs.core.windows.net/demux", "abfss://box@account.dfs.core.windows.net/demux_dev"),
    ],
)
def test_the_roots_of_the_two_targets_are_beside_each_other(root: str, dev: str) -> None:
    jobs, settings = deployment({**SMALL, "root": root}, [])
    variables = read(bundle_files(jobs, settings, WHEEL)["databricks.yml"])["targets"]["dev"]["variables"]
    assert (variables["root"], variables["root_tag"]) == (dev, root_tag(dev))


@pytest.mark.parametrize("root", ["s3://bucket", "s3://bucket/", "abfss://box@account.dfs.core.windows.net/"])
def test_a_root_with_nothing_beside_it_is_refused(root: str) -> None:
    jobs, settings = deployment({**SMALL, "root": root}, [])
    with pytest.raises(SettingsInvalid, match="is all of its storage"):
        bundle_files(jobs, settings, WHEEL)
