"""Two ways to write the same job are the same job; a real difference stays one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from install_workflow.databricks.diff.drift import sides
from install_workflow.databricks.diff.fields import comparable
from tests.fakes.workspace.jobs.job_defaults import kept
from tests.support.databricks.jobs import job

JOB = job("001", {"cluster_001": ["chess", "go"], "cluster_002": ["ludo"]}, run_as={"user_name": "ann@example.org"})

names = st.sampled_from(["chess", "go", "ludo", "tag", "shogi"])


def same(left: dict[str, Any], right: dict[str, Any]) -> bool:
    """Whether a job with these settings and one deployed with those are the same."""
    found = sides(comparable(right), comparable(left))
    return found.before == found.after


@given(st.dictionaries(st.sampled_from(["c1", "c2", "c3"]), st.sets(names, min_size=1), min_size=1))
def test_a_job_equals_what_the_server_keeps_of_it(clusters: dict[str, set[str]]) -> None:
    settings = dict(job("001", {cluster: sorted(games) for cluster, games in clusters.items()}).settings)
    assert same(settings, kept(settings))


@given(st.permutations(list(JOB.settings["tasks"])))
def test_the_order_of_tasks_does_not_count(tasks: list[dict[str, Any]]) -> None:
    assert comparable({**JOB.settings, "tasks": tasks}) == comparable(JOB.settings)


@pytest.mark.parametrize(
    "filled_in",
    [
        {"email_notifications": {}},
        {"email_notifications": {"no_alert_for_skipped_runs": False}},
        {"webhook_notifications": {}},
        {"timeout_seconds": 0},
        {"max_concurrent_runs": 1},
        {"format": "MULTI_TASK"},
        {"queue": {"enabled": False}},
        {"health": {"rules": []}},
        {"description": ""},
    ],
)
def test_what_the_server_fills_in_is_no_difference(filled_in: dict[str, Any]) -> None:
    assert comparable({**JOB.settings, **filled_in}) == comparable(JOB.settings)


@pytest.mark.parametrize(
    "wanted",
    [
        {"max_concurrent_runs": 0},
        {"max_concurrent_runs": 2},
        {"timeout_seconds": 60},
        {"queue": {"enabled": True}},
        {"email_notifications": {"on_failure": ["a@example.org"]}},
        {"schedule": {"quartz_cron_expression": "0 0 * * * ?", "timezone_id": "UTC", "pause_status": "PAUSED"}},
        {"tags": {**JOB.settings["tags"], "empty": ""}},
        {"run_as": {"user_name": "bob@example.org"}},
    ],
)
def test_what_somebody_set_is_a_difference(wanted: dict[str, Any]) -> None:
    assert comparable({**JOB.settings, **wanted}) != comparable(JOB.settings)


def test_dependencies_addresses_and_libraries_have_no_order() -> None:
    def settings(order: int) -> dict[str, Any]:
        return {
            "email_notifications": {"on_failure": ["a@example.org", "b@example.org"][::order]},
            "tasks": [
                {
                    "task_key": "control",
                    "depends_on": [{"task_key": "deserialize_go"}, {"task_key": "deserialize_chess"}][::order],
                    "libraries": [{"whl": "/a.whl"}, {"pypi": {"package": "ptars==0.0.25"}}][::order],
                }
            ],
        }

    assert comparable(settings(1)) == comparable(settings(-1))


def test_the_order_of_parameters_counts() -> None:
    tasks = [{"task_key": "a", "python_wheel_task": {"parameters": ["deserialize", "--game", "chess"]}}]
    other = [{"task_key": "a", "python_wheel_task": {"parameters": ["--game", "chess", "deserialize"]}}]
    assert comparable({"tasks": tasks}) != comparable({"tasks": other})


def test_the_condition_of_a_table_update_is_never_given_back_and_no_difference() -> None:
    update = {"table_names": ["main.demux.source"]}
    asked = {"trigger": {"table_update": {**update, "condition": "ANY_UPDATED"}}}
    assert same(asked, {"trigger": {"table_update": update, "pause_status": "UNPAUSED"}})


def test_job_parameters_are_known_by_name() -> None:
    parameters = [{"name": "a", "default": "1"}, {"name": "b", "default": ""}]
    assert comparable({"parameters": parameters}) == {"parameters": {"a": {"default": "1"}, "b": {}}}


def cluster(**fields: object) -> dict[str, Any]:
    return {"job_clusters": [{"job_cluster_key": "c", "new_cluster": {"spark_version": "17.3", **fields}}]}


@pytest.mark.parametrize(
    "chosen",
    [
        {"aws_attributes": {"zone_id": "us-east-1c"}},
        {"enable_elastic_disk": True},
        {"data_security_mode": "SINGLE_USER"},
        {"runtime_engine": "STANDARD"},
        {"driver_node_type_id": "m6g.xlarge"},
    ],
)
def test_what_the_server_chooses_for_a_cluster_counts_only_where_we_say_it(chosen: dict[str, Any]) -> None:
    assert same(cluster(), cluster(**chosen))
    assert not same(cluster(**chosen), cluster())


def test_what_the_server_chooses_for_a_job_is_no_difference() -> None:
    assert same({"name": "a"}, {"name": "a", "edit_mode": "EDITABLE", "parent_path": "/Users/ann"})
    assert not same({"name": "a"}, {"name": "a", "edit_mode": "UI_LOCKED"})


def test_what_the_cloud_adds_to_our_attributes_is_no_difference_and_what_it_changes_is() -> None:
    wanted = cluster(aws_attributes={"availability": "SPOT"})
    assert same(wanted, cluster(aws_attributes={"availability": "SPOT", "zone_id": "us-east-1c"}))
    assert not same(wanted, cluster(aws_attributes={"availability": "ON_DEMAND"}))


def test_a_policy_may_fill_in_anything_and_a_hand_only_without_one() -> None:
    by_hand = {"spark_conf": {"spark.sql.shuffle.partitions": "7"}}
    assert same(cluster(policy_id="p"), cluster(policy_id="p", **by_hand))
    assert not same(cluster(), cluster(**by_hand))


def test_a_job_that_is_no_more_continuous_is_a_difference_though_the_field_is_empty() -> None:
    assert same({"continuous": {"pause_status": "UNPAUSED"}}, {"continuous": {}})
    assert not same({"continuous": {"pause_status": "UNPAUSED"}}, {})
    assert not same({}, {"continuous": {"pause_status": "UNPAUSED"}})
