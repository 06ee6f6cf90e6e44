"""What a deployment runs on, as a user sees it: the plan, what a workspace refuses, and the way from one to another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from demux.core.errors import PlanRefused, SettingsInvalid, WorkspaceRefused
from tests.conftest import Golden
from tests.fakes.workspace.fake import FakeWorkspace
from tests.support.databricks.deployments import Demux, small_wheel, write_serverless

FORBIDS = "The cluster policy at the workspace"
POLICY: dict[str, Any] = {"policy_id": "P1"}
POOL: dict[str, Any] = {"instance_pool_id": "pool-1"}


def job(fake: FakeWorkspace) -> dict[str, Any]:
    """The settings of the job."""
    return fake.jobs.held[1001].settings


def test_the_shortest_settings_make_serverless_jobs_and_the_plan_says_so(
    here: Path, fake: FakeWorkspace, demux: Demux, golden: Golden
) -> None:
    write_serverless(here, every="1d")
    golden("deploy/plan_serverless.txt", demux("plan"))
    demux("apply", "--yes")
    assert "job_clusters" not in job(fake)
    assert [(task["task_key"], task["environment_key"]) for task in job(fake)["tasks"]] == [
        ("bronze", "default"),
        ("deserialize_cluster_001", "default"),
    ]
    golden("deploy/plan_serverless_again.txt", demux("plan"))


def test_a_new_game_joins_a_pack_that_has_room_and_the_others_stay(
    here: Path, fake: FakeWorkspace, demux: Demux
) -> None:
    write_serverless(here)
    demux("apply", "--yes", "--set", "run.streams_per_cluster=2")
    before = [task["python_wheel_task"]["parameters"] for task in job(fake)["tasks"]]
    said = demux("plan", "--set", "run.streams_per_cluster=2", "--set", "games.allow=[chess, go, ludo, shogi]")
    assert "+ task deserialize_cluster_002: game shogi added: new game" in said
    assert before[1][:3] == ["deserialize", "--game=chess", "--game=go"]
    assert "moved from" not in said


def test_games_go_from_clusters_to_serverless_compute_and_back_and_none_is_lost(
    here: Path, fake: FakeWorkspace, demux: Demux, golden: Golden
) -> None:
    write_serverless(here, cluster={"node_type": "i3.xlarge"})
    demux("apply", "--yes")
    assert job(fake)["job_clusters"][0]["new_cluster"]["data_security_mode"] == "SINGLE_USER"
    write_serverless(here)
    golden("deploy/plan_to_serverless.txt", demux("plan"))
    demux("apply", "--yes")
    assert ("job_clusters" in job(fake), "environments" in job(fake)) == (False, True)
    write_serverless(here, compute="standard", cluster={"node_type": "i3.xlarge"})
    assert "0 of 3 games removed" in demux("plan")
    demux("apply", "--yes")
    assert {each["new_cluster"]["data_security_mode"] for each in job(fake)["job_clusters"]} == {"USER_ISOLATION"}
    assert "compute standard." in demux("plan")


def test_a_saved_plan_of_serverless_jobs_is_applied_with_its_wheel_and_with_no_other(
    here: Path, fake: FakeWorkspace, demux: Demux
) -> None:
    write_serverless(here)
    demux("plan", "--out", "plan.json")
    small_wheel(here, "another")
    with pytest.raises(PlanRefused, match="was saved for the wheel"):
        demux("apply", "--plan", "plan.json", "--yes")
    small_wheel(here)
    demux("apply", "--plan", "plan.json", "--yes")
    assert "1 to keep" in demux("plan")


def test_a_changed_environment_is_one_line_and_one_call(here: Path, fake: FakeWorkspace, demux: Demux) -> None:
    write_serverless(here)
    demux("apply", "--yes")
    small_wheel(here, "another")
    write_serverless(here, serverless={"environment_version": "5"})
    said = demux("plan")
    assert "~ environment default: spec.environment_version changed" not in said
    assert "~ environment default: environment_version changed from 4 to 5" in said
    assert "~ environment default: dependencies changed from /Volumes/main/ops/wheels/prod/protobuf_demux" in said
    demux("apply", "--yes")
    assert fake.counted()["POST /api/2.2/jobs/reset"] == 1
    # by hand: it is seen, and taken back
    job(fake)["environments"][0]["spec"]["base_environment"] = "/Workspace/base.yaml"
    assert "- environment default: base_environment /Workspace/base.yaml removed: set by hand" in demux("plan")


def test_a_workspace_without_serverless_compute_says_which_setting_to_change(
    here: Path, fake: FakeWorkspace, demux: Demux
) -> None:
    fake.jobs.compute.serverless = False
    write_serverless(here)
    with pytest.raises(SettingsInvalid, match=r"has no serverless compute, or not for us: .*is not enabled") as refused:
        demux("apply", "--yes")
    assert refused.value.remedy.startswith("Set databricks.compute to standard or dedicated, with databricks.cluster")
    assert fake.jobs.held == {}


def test_a_workspace_with_nothing_but_serverless_compute_says_which_setting_to_change(
    here: Path, fake: FakeWorkspace, demux: Demux
) -> None:
    fake.jobs.compute.classic = False
    write_serverless(here, cluster={"node_type": "i3.xlarge"})
    with pytest.raises(SettingsInvalid, match="has serverless compute alone") as refused:
        demux("apply", "--yes")
    assert refused.value.remedy.startswith("Set databricks.compute to serverless, and take out databricks.cluster")


@pytest.mark.parametrize(
    ("path", "element", "settings", "remedy"),
    [
        ("node_type_id", {"type": "fixed", "value": "m5.large"}, {"node_type": "i3.xlarge"}, "node_type as"),
        ("instance_pool_id", {"type": "forbidden"}, {"instance_pool_id": "x"}, "instance_pool_id as"),
        ("runtime_engine", {"type": "allowlist", "values": ["STANDARD"]}, {"photon": True}, "photon as"),
        ("spark_conf.spark.a", {"type": "fixed", "value": "1"}, {"spark_conf": {"spark.a": "2"}}, "spark_conf, there"),
        ("aws_attributes.availability", {"type": "forbidden"}, {"aws": {"availability": "SPOT"}}, "aws, there avail"),
    ],
)
def test_a_policy_that_forbids_a_value_is_a_sentence_with_the_setting(
    here: Path,
    fake: FakeWorkspace,
    demux: Demux,
    path: str,
    element: dict[str, Any],
    settings: dict[str, Any],
    remedy: str,
) -> None:
    fake.jobs.compute.policies["P1"] = {path: element}
    write_serverless(here, cluster={**POLICY, **settings})
    with pytest.raises(SettingsInvalid, match=f"{FORBIDS} .* forbids what the settings say: .*{path}") as refused:
        demux("apply", "--yes")
    assert refused.value.remedy.startswith(f"Set databricks.cluster.{remedy}")


def test_a_policy_that_forbids_an_access_mode_names_the_setting_for_it(
    here: Path, fake: FakeWorkspace, demux: Demux
) -> None:
    fake.jobs.compute.policies["P1"] = {"data_security_mode": {"type": "fixed", "value": "USER_ISOLATION"}}
    write_serverless(here, cluster=POLICY)
    with pytest.raises(SettingsInvalid, match="must be USER_ISOLATION") as refused:
        demux("apply", "--yes")
    assert refused.value.remedy.startswith("Set databricks.compute to standard or dedicated as the policy says")


@pytest.mark.parametrize(
    ("known", "databricks", "what", "remedy"),
    [
        ("pools", {"cluster": POOL}, "does not take the instance pool", "Correct databricks.cluster.instance_pool_id"),
        (
            "budget_policies",
            {"serverless": {"budget_policy_id": "b"}},
            "does not let us use the budget policy",
            "Correct databricks.serverless.budget_policy_id",
        ),
        ("spark_versions", {"cluster": {"node_type": "a"}}, "has not the runtime", "Set databricks.cluster.spark_ver"),
    ],
)
def test_what_the_workspace_does_not_have_is_a_sentence_with_the_setting(
    here: Path, fake: FakeWorkspace, demux: Demux, known: str, databricks: dict[str, Any], what: str, remedy: str
) -> None:
    setattr(fake.jobs.compute, known, frozenset())
    write_serverless(here, **databricks)
    with pytest.raises(SettingsInvalid, match=what) as refused:
        demux("apply", "--yes")
    assert refused.value.remedy.startswith(remedy)


def test_a_service_principal_logs_in_by_oauth_with_its_secret(
    here: Path, fake: FakeWorkspace, demux: Demux, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a token that is there too is not taken
    monkeypatch.setenv("DATABRICKS_TOKEN", "another")
    monkeypatch.setenv("ROBOT", "s3cret")
    fake.oauth.secrets["robot"] = "s3cret"
    write_serverless(here, login={"client_id": "robot", "client_secret": "secret:env/ROBOT"})
    demux("apply", "--yes")
    assert fake.oauth.given == {"client_credentials": 1}
    assert "login" not in str(job(fake)), "a task has the login of whom the job runs as"
    monkeypatch.setenv("ROBOT", "wrong")
    with pytest.raises(WorkspaceRefused, match="does not accept our login") as refused:
        demux("plan")
    assert "wrong" not in str(refused.value)


def test_a_service_principal_logs_in_by_workload_identity(
    here: Path, fake: FakeWorkspace, demux: Demux, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATABRICKS_TOKEN")
    monkeypatch.setenv("DATABRICKS_OIDC_TOKEN", "of-the-build")
    fake.oauth.subjects["robot"] = "of-the-build"
    write_serverless(here, login={"client_id": "robot", "auth_type": "env-oidc"})
    assert "1 to create" in demux("plan")
    assert list(fake.oauth.given) == ["urn:ietf:params:oauth:grant-type:token-exchange"]
