"""What was set by hand is told from what the server or a policy filled in: by the record, and by the table without."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.http.client import Tries
from demux.core.settings.databricks.access import PrincipalKind
from install_workflow.databricks.api.client import WorkspaceConnection
from install_workflow.databricks.apply.apply_jobs import apply
from install_workflow.databricks.diff.changes import WorkspacePlan, compare
from install_workflow.databricks.diff.details import Detail
from install_workflow.databricks.diff.drift import filled_in, sides
from install_workflow.databricks.diff.fields import comparable
from install_workflow.databricks.diff.render import as_text, content_of
from install_workflow.databricks.jobs.job import DeployedJob, Job
from install_workflow.databricks.jobs.jobs_api import Workspace
from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.client import client_of
from tests.fakes.workspace.http.server import serving
from tests.fakes.workspace.jobs.cluster_rules import Compute
from tests.fakes.workspace.jobs.job_defaults import kept
from tests.support.databricks.jobs import DEPLOYMENT, changed, cluster_named, job

ONE = job("001", {"c": ["chess"]})
POLICY: Mapping[str, Mapping[str, Any]] = {
    "spark_conf.spark.speculation": {"type": "fixed", "value": "true"},
    "custom_tags.team": {"type": "fixed", "value": "games"},
    "aws_attributes.availability": {"type": "unlimited", "defaultValue": "ON_DEMAND"},
    "runtime_engine": {"type": "unlimited", "defaultValue": "PHOTON"},
    "autotermination_minutes": {"type": "unlimited", "defaultValue": 20},
}


def with_cluster(**fields: Any) -> Job:
    cluster = cluster_named("c")
    return changed(ONE, job_clusters=[{**cluster, "new_cluster": {**cluster["new_cluster"], **fields}}])


WITH_POLICY = with_cluster(policy_id="p", apply_policy_default_values=True, spark_conf={"spark.a": "1"})


def edited(settings: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The settings with one value set by hand; None takes it away."""
    result = copy.deepcopy(settings)
    holder: Any = result
    for name in path[:-1]:
        holder = holder[name] if isinstance(name, int) else holder.setdefault(name, {})
    if value is None:
        holder.pop(path[-1])
    else:
        holder[path[-1]] = value
    return result


def cluster(*path: Any) -> tuple[Any, ...]:
    return ("job_clusters", 0, "new_cluster", *path)


def details(wanted: Job, settings: dict[str, Any], filled: dict[str, Any] | None = None) -> list[Detail]:
    now = DeployedJob(7, wanted.part, settings, filled=filled)
    return [detail for change in compare([wanted], [now]).changes for detail in change.details]


def said(found: list[Detail]) -> list[tuple[str, str, str, Any, Any, str]]:
    return [(each.difference.value, each.subject, each.field, each.before, each.after, each.reason) for each in found]


# a hand that is seen without any record
BY_HAND = [
    (cluster("runtime_engine"), "PHOTON", "cluster c", "runtime_engine"),
    (cluster("aws_attributes", "availability"), "SPOT", "cluster c", "aws_attributes.availability"),
    (cluster("aws_attributes", "ebs_volume_count"), 1, "cluster c", "aws_attributes.ebs_volume_count"),
    (cluster("aws_attributes", "spot_bid_price_percent"), 50, "cluster c", "aws_attributes.spot_bid_price_percent"),
    (cluster("azure_attributes", "availability"), "SPOT_AZURE", "cluster c", "azure_attributes.availability"),
    (cluster("azure_attributes", "spot_bid_max_price"), 0.5, "cluster c", "azure_attributes.spot_bid_max_price"),
    (cluster("gcp_attributes", "availability"), "PREEMPTIBLE_GCP", "cluster c", "gcp_attributes.availability"),
    (cluster("driver_node_type_id"), "r5.8xlarge", "cluster c", "driver_node_type_id"),
    (cluster("ssh_public_keys"), ["ssh-rsa A"], "cluster c", "ssh_public_keys"),
    (cluster("cluster_name"), "mine", "cluster c", "cluster_name"),
    (cluster("data_security_mode"), "USER_ISOLATION", "cluster c", "data_security_mode"),
    (("tasks", 0, "disabled"), True, "task deserialize_chess", "disabled"),
    (("tasks", 0, "description"), "mine", "task deserialize_chess", "description"),
    (("edit_mode",), "UI_LOCKED", "job", "edit_mode"),
    (("git_source",), {"git_url": "https://a", "git_provider": "gitHub"}, "job", "git_source"),
]


@pytest.mark.parametrize(("path", "value", "subject", "field"), BY_HAND, ids=lambda value: str(value)[-30:])
def test_what_a_hand_sets_in_a_field_that_we_never_send_is_taken_back(
    path: tuple[Any, ...], value: Any, subject: str, field: str
) -> None:
    found = details(ONE, edited(kept(ONE.settings), path, value))
    assert [(each.difference.value, each.subject, each.field, each.reason) for each in found] == [
        ("removed", subject, field, "set by hand")
    ]


@pytest.mark.parametrize("cloud", ["aws", "azure", "unknown"])
@pytest.mark.parametrize("wanted", [ONE, WITH_POLICY], ids=["plain", "policy"])
def test_what_the_server_filled_in_is_known_from_the_record_whatever_it_is(cloud: str, wanted: Job) -> None:
    compute = Compute(policies={"p": POLICY}, cloud=cloud)
    settings = kept(wanted.settings, compute)
    filled = filled_in(comparable(settings), comparable(wanted.settings))
    assert details(wanted, settings, filled) == []
    # another zone, and no more disks by themselves
    for path, value in ((cluster("gcp_attributes", "zone_id"), "b"), (cluster("enable_local_disk_encryption"), True)):
        (found,) = details(wanted, edited(settings, path, value), filled)
        assert found.reason in {"changed by hand", "set by hand"}
        assert found.before == value


def test_what_the_server_had_chosen_is_what_a_change_by_hand_goes_back_to() -> None:
    settings = kept(ONE.settings)
    filled = filled_in(comparable(settings), comparable(ONE.settings))
    aws = {"availability": "SPOT_WITH_FALLBACK", "zone_id": "us-east-1c"}
    chosen = {"aws_attributes": aws, "data_security_mode": "SINGLE_USER", "driver_node_type_id": "m6g.xlarge"}
    assert filled == {"job_clusters": {"c": {"new_cluster": chosen}}}
    moved = edited(settings, cluster("aws_attributes", "zone_id"), "us-east-1f")
    assert said(details(ONE, moved, filled)) == [
        ("changed", "cluster c", "aws_attributes.zone_id", "us-east-1f", "us-east-1c", "changed by hand")
    ]
    # without a record nobody knows who chose the zone
    assert details(ONE, moved) == []
    gone = edited(settings, cluster("aws_attributes", "zone_id"), None)
    assert said(details(ONE, gone, filled)) == [
        ("added", "cluster c", "aws_attributes.zone_id", None, "us-east-1c", "removed by hand")
    ]


def test_what_a_policy_fills_in_is_no_difference_and_a_hand_beside_it_is_known_by_the_record() -> None:
    settings = kept(WITH_POLICY.settings, Compute(policies={"p": POLICY}))
    new = settings["job_clusters"][0]["new_cluster"]
    assert new["spark_conf"] == {"spark.a": "1", "spark.speculation": "true"}
    assert (new["runtime_engine"], new["aws_attributes"]["availability"]) == ("PHOTON", "ON_DEMAND")
    assert details(WITH_POLICY, settings) == []
    filled = filled_in(comparable(settings), comparable(WITH_POLICY.settings))
    by_hand = edited(settings, cluster("spark_conf", "spark.speculation"), "false")
    by_hand = edited(by_hand, cluster("spark_conf", "spark.b"), "2")
    by_hand = edited(by_hand, cluster("runtime_engine"), None)
    assert said(details(WITH_POLICY, by_hand, filled)) == [
        ("added", "cluster c", "runtime_engine", None, "PHOTON", "removed by hand"),
        ("removed", "cluster c", "spark_conf.spark.b", "2", None, ""),
        ("changed", "cluster c", "spark_conf.spark.speculation", "false", "true", "changed by hand"),
    ]
    # our own values under a policy are compared with or without a record
    assert [each.field for each in details(WITH_POLICY, edited(settings, cluster("spark_conf", "spark.a"), "9"))] == [
        "spark_conf.spark.a"
    ]


def test_what_is_gone_from_the_settings_goes_from_the_job_and_nobody_says_that_a_hand_set_it() -> None:
    before = changed(ONE, timeout_seconds=60, schedule={"quartz_cron_expression": "0 0 * * * ?", "timezone_id": "UTC"})
    settings = kept(before.settings)
    filled = filled_in(comparable(settings), comparable(before.settings))
    assert {(each.field, each.reason) for each in details(ONE, settings, filled)} == {
        ("schedule", ""),
        ("timeout_seconds", ""),
    }


names = st.sampled_from(["availability", "zone_id", "first_on_demand", "ebs_volume_count"])
values = st.sampled_from([0, 1, "a", "SPOT", "auto"])


@given(st.dictionaries(names, values), st.dictionaries(names, values), st.booleans())
def test_after_an_apply_whatever_the_server_says_is_no_difference(
    chosen: dict[str, Any], by_hand: dict[str, Any], policy: bool
) -> None:
    wanted = comparable((WITH_POLICY if policy else ONE).settings)
    now = edited(kept((WITH_POLICY if policy else ONE).settings), cluster("aws_attributes"), chosen)
    filled = filled_in(comparable(now), wanted)
    same = sides(comparable(now), wanted, filled)
    assert same.before == same.after
    other = sides(comparable(edited(now, cluster("aws_attributes"), by_hand)), wanted, filled)
    assert (other.before == other.after) == (
        comparable(edited(now, cluster("aws_attributes"), by_hand)) == comparable(now)
    )


@pytest.fixture
def fake() -> Iterator[FakeWorkspace]:
    with serving(FakeWorkspace()) as workspace:
        yield workspace


@pytest.fixture
def workspace(fake: FakeWorkspace) -> Workspace:
    return Workspace(WorkspaceConnection({"host": fake.url, "token": fake.token, "auth_type": "pat"}, Tries(retries=0)))


def plan_of(workspace: Workspace, wanted: Job) -> WorkspacePlan:
    return compare([wanted], workspace.find(DEPLOYMENT, set()).jobs)


ROBOT = {"run_as": {"service_principal_name": "robot"}}


@pytest.mark.parametrize("how", ["by hand", "gone from the settings"])
def test_without_run_as_a_job_runs_as_its_owner_and_a_plan_says_where_it_does_not(
    fake: FakeWorkspace, workspace: Workspace, how: str
) -> None:
    sdk = client_of(fake)
    apply(workspace, plan_of(workspace, ONE if how == "by hand" else changed(ONE, **ROBOT)))
    if how == "by hand":
        sdk.api_client.do("POST", "/api/2.2/jobs/update", body={"job_id": 1001, "new_settings": ROBOT})
    assert sdk.jobs.get(1001).run_as_user_name == "robot"
    plan = plan_of(workspace, ONE)
    assert said([*plan.changes[0].details]) == [("changed", "job", "run_as", "robot", "ann@example.org", "")]
    assert "job: run_as changed from robot to ann@example.org" in as_text(plan)
    apply(workspace, plan)
    assert sdk.jobs.get(1001).run_as_user_name == "ann@example.org"
    assert plan_of(workspace, ONE).is_empty


def test_a_job_that_was_given_to_another_owner_runs_as_that_one(fake: FakeWorkspace, workspace: Workspace) -> None:
    apply(workspace, plan_of(workspace, ONE))
    fake.jobs.held[1001].acl = {("user_name", "bob@example.org"): "IS_OWNER"}
    (found,) = workspace.find(DEPLOYMENT, set()).jobs
    assert (found.owner, found.settings["run_as"]) == (
        (PrincipalKind.USER, "bob@example.org"),
        {"user_name": "bob@example.org"},
    )
    assert plan_of(workspace, ONE).is_empty


def test_a_hand_is_said_in_text_and_json_and_undone_by_one_call(fake: FakeWorkspace, workspace: Workspace) -> None:
    apply(workspace, plan_of(workspace, ONE))
    new = fake.jobs.held[1001].settings["job_clusters"][0]["new_cluster"]
    new |= {"runtime_engine": "PHOTON", "aws_attributes": {**new["aws_attributes"], "availability": "SPOT"}}
    plan = plan_of(workspace, ONE)
    assert as_text(plan).splitlines()[1:3] == [
        "    - cluster c: aws_attributes.availability SPOT removed: set by hand",
        "    - cluster c: runtime_engine PHOTON removed: set by hand",
    ]
    assert '"reason": "set by hand"' in json.dumps(content_of(plan), indent=2)
    apply(workspace, plan)
    assert "runtime_engine" not in fake.jobs.held[1001].settings["job_clusters"][0]["new_cluster"]
    assert plan_of(workspace, ONE).is_empty


def test_a_policys_values_are_no_difference_after_an_apply(fake: FakeWorkspace, workspace: Workspace) -> None:
    fake.jobs.compute.policies["p"] = POLICY
    apply(workspace, plan_of(workspace, WITH_POLICY))
    assert fake.jobs.held[1001].settings["job_clusters"][0]["new_cluster"]["custom_tags"] == {"team": "games"}
    assert plan_of(workspace, WITH_POLICY).is_empty
