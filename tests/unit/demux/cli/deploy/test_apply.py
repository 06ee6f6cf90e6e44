"""`demux plan`, `apply` and `destroy` against a workspace over HTTP, as a user calls them."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from demux.core.errors import (
    DemuxError,
    ExitCode,
    PlanRefused,
    SettingsInvalid,
    StorageFailed,
    WorkspaceRefused,
)
from install_workflow.databricks.diff.changes import JobAction, JobCall, JobChange
from install_workflow.databricks.diff.render import from_text
from install_workflow.databricks.diff.render import to_text as plan_to_text
from install_workflow.databricks.jobs.job import OWNER_TAG
from tests.conftest import Golden
from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.client import client_of
from tests.fakes.workspace.http.faults import ALWAYS, Fault, Way
from tests.support.databricks.deployments import WHEEL_NAME, Demux, small_wheel, write_settings
from tests.support.terminal import on_terminal

CREATE, RESET, DELETE = (f"POST /api/2.2/jobs/{call}" for call in ("create", "reset", "delete"))
# what demux does unless the settings say otherwise
DAILY = {"every": "1d"}
WHEELS = "/Volumes/main/ops/wheels"
RECORD = f"{WHEELS}/deployment.prod"
CHANGING = ("POST", "PUT", "PATCH", "DELETE")


def allow(folder: Path, *games: str) -> None:
    write_settings(folder, games={"policy": "allow-list", "allow": list(games)})


def changing(fake: FakeWorkspace) -> list[str]:
    """The calls that may change something beside the record, since the calls were cleared."""
    calls = [call for call in fake.calls if call.method in CHANGING]
    return [f"{call.method} {call.path}" for call in calls if RECORD not in call.path]


def wheels(fake: FakeWorkspace) -> list[str]:
    """The paths of the wheels."""
    return sorted(path for path in fake.files.held if path.endswith(".whl"))


def tasks(fake: FakeWorkspace, job_id: int = 1001) -> list[str]:
    return [task["task_key"] for task in fake.jobs.held[job_id].settings["tasks"]]


def somebody_elses(fake: FakeWorkspace, name: str, **tags: str) -> int:
    """The id of a job that was made by somebody else."""
    task = {"task_key": "t", "existing_cluster_id": "0101-000000-x", "notebook_task": {"notebook_path": "/x"}}
    job = {"name": name, "tags": tags, "tasks": [task]}
    made = client_of(fake).api_client.do("POST", "/api/2.2/jobs/create", body=job)
    assert isinstance(made, dict)
    return int(made["job_id"])


def test_the_whole_life_of_a_deployment_reads_so(here: Path, fake: FakeWorkspace, demux: Demux, golden: Golden) -> None:
    write_settings(here, maintain=DAILY)
    golden("deploy/plan.txt", demux("plan"))
    assert changing(fake) == []
    golden("deploy/apply.txt", demux("apply", "--yes"))
    assert tasks(fake) == ["bronze", "deserialize_chess", "deserialize_go", "deserialize_ludo"]
    golden("deploy/plan_again.txt", demux("plan"))
    golden("deploy/destroy.txt", demux("destroy", "--yes"))
    assert fake.jobs.held == {}
    assert (fake.files.held, fake.files.folders & {f"{WHEELS}/prod", RECORD}) == ({}, set())
    golden("deploy/destroy_again.txt", demux("destroy", "--yes"))


def test_a_changed_wish_reads_so_and_is_one_call(here: Path, fake: FakeWorkspace, demux: Demux, golden: Golden) -> None:
    write_settings(here, maintain=DAILY)
    demux("apply")
    write_settings(here, games={"allow": ["chess", "go", "ludo", "将棋"], "pinned": {"go": "big"}}, maintain=DAILY)
    golden("deploy/plan_change.txt", demux("plan"))
    fake.calls.clear()
    demux("apply")
    assert changing(fake) == [RESET]


def test_another_engine_reads_so_is_one_call_and_there_is_a_way_back(
    here: Path, fake: FakeWorkspace, demux: Demux, golden: Golden
) -> None:
    demux("apply")
    streams = tasks(fake)
    write_settings(here, run={"engine": "fleet"})
    golden("deploy/plan_fleet.txt", demux("plan"))
    fake.calls.clear()
    demux("apply")
    assert (changing(fake), tasks(fake)) == ([RESET], ["bronze", "deserialize_cluster_001"])
    assert "1 to keep" in demux("plan")
    write_settings(here)
    golden("deploy/plan_from_fleet.txt", demux("plan"))
    demux("apply")
    assert tasks(fake) == streams


def test_a_saved_plan_to_the_fleet_is_applied_as_it_was_saved(here: Path, fake: FakeWorkspace, demux: Demux) -> None:
    demux("apply")
    write_settings(here, run={"engine": "fleet"})
    demux("plan", "--out", "plan.json")
    assert "engine stream becomes fleet" in demux("apply", "--plan", "plan.json")
    assert tasks(fake) == ["bronze", "deserialize_cluster_001"]


def test_a_task_for_each_game_is_not_the_fleets(here: Path, demux: Demux) -> None:
    write_settings(here, run={"engine": "fleet"}, databricks={"granularity": "game"})
    with pytest.raises(SettingsInvalid, match=r"leave that out, or set run\.engine: stream"):
        demux("plan")


def test_a_second_apply_changes_nothing_and_a_plan_after_it_is_empty(fake: FakeWorkspace, demux: Demux) -> None:
    demux("apply", "--yes")
    fake.calls.clear()
    assert "0 to create, 0 to update, 0 to delete, 1 to keep" in demux("apply", "--yes")
    assert changing(fake) == []
    assert [change["action"] for change in json.loads(demux("plan", "--json"))["changes"]] == ["keep"]
    assert "Game_Protobufs_wrapper_prod (job 1001)" in demux("plan", "--all")


def test_the_plan_as_json_has_the_wheel_and_who_waits(here: Path, fake: FakeWorkspace, demux: Demux) -> None:
    demux("apply")
    allow(here, "chess", "go")
    plan = json.loads(demux("plan", "--json"))
    assert plan["wheel"] == {"path": wheels(fake)[0], "upload": False}
    reason = "games.policy is allow-list and games.allow does not name it"
    assert plan["waiting"] == [{"game": "ludo", "reason": reason}]
    assert (plan["deployed_games"], plan["removed_games"]) == (3, 1)
    assert f"! waits  game ludo: {reason}" in demux("plan")


def test_the_plan_as_json_is_ascii_whatever_the_names_are(here: Path, demux: Demux) -> None:
    allow(here, "zero\u200bwidth", "将棋")
    text = demux("plan", "--json")
    assert text.isascii()
    assert "\\u200b" in text
    assert "将棋" in str(json.loads(text))


def test_a_game_that_nobody_names_any_more_stays_where_it_runs(here: Path, fake: FakeWorkspace, demux: Demux) -> None:
    demux("apply")
    write_settings(here, games={"allow": ["chess"]})
    assert "1 to keep" in demux("plan")


def test_another_wheel_is_uploaded_beside_the_old_one(here: Path, fake: FakeWorkspace, demux: Demux) -> None:
    demux("apply")
    small_wheel(here, "two")
    fake.calls.clear()
    text = demux("apply")
    assert text.count("+ upload /Volumes/main/ops/wheels/prod/protobuf_demux-0.1.0-0") == 2
    assert sum(call.method == "PUT" and call.path.endswith(".whl") for call in fake.calls) == 1
    assert len(wheels(fake)) == 2
    demux("destroy", "--yes")
    assert fake.files.held == {}


def test_the_same_files_packed_by_another_machine_are_not_uploaded_again(
    here: Path, fake: FakeWorkspace, demux: Demux
) -> None:
    small_wheel(here, "x" * 9999)
    demux("apply")
    small_wheel(here, "x" * 9999, zipfile.ZIP_DEFLATED)
    assert "upload" not in demux("plan")


def test_a_wheel_that_somebody_removed_comes_back(fake: FakeWorkspace, demux: Demux) -> None:
    demux("apply")
    del fake.files.held[wheels(fake)[0]]
    assert demux("plan").startswith("+ upload /Volumes/main/ops/wheels/prod/protobuf_demux-0.1.0-0")
    demux("apply")
    assert len(wheels(fake)) == 1


def test_the_wheel_may_be_below_workspace(here: Path, fake: FakeWorkspace, demux: Demux) -> None:
    write_settings(here, databricks={"wheel_path": "/Workspace/Shared/wheels"})
    demux("apply")
    assert len([path for path in fake.tree.held if path.endswith(".whl")]) == 1
    demux("destroy", "--yes")
    assert [path for path in fake.tree.held if path.startswith("/Workspace/Shared/wheels/")] == []


def test_a_wheel_that_is_in_the_workspace_is_taken_as_it_is(fake: FakeWorkspace, demux: Demux) -> None:
    path = f"/Volumes/main/ops/wheels/{WHEEL_NAME}"
    with pytest.raises(SettingsInvalid, match=f"There is no wheel {path} in the workspace"):
        demux("apply", "--wheel", path)
    assert fake.jobs.held == {}
    fake.files.held[path] = b"any"
    assert "upload" not in demux("apply", "--wheel", path)
    assert fake.jobs.held[1001].settings["tasks"][0]["libraries"] == [{"whl": path}]
    demux("destroy", "--yes")
    assert fake.files.held == {path: b"any"}


def test_a_saved_plan_is_applied_as_it_was_saved(here: Path, fake: FakeWorkspace, demux: Demux) -> None:
    assert demux("plan", "--out", "plan.json").endswith("saved to plan.json")
    write_settings(here, games={"allow": ["tag"]})
    demux("apply", "--plan", "plan.json")
    assert tasks(fake)[1:] == ["deserialize_chess", "deserialize_go", "deserialize_ludo"]


def test_a_saved_plan_is_refused_when_the_workspace_changed(here: Path, fake: FakeWorkspace, demux: Demux) -> None:
    demux("plan", "--out", "plan.json")
    demux("apply")
    fake.calls.clear()
    with pytest.raises(PlanRefused, match="The workspace changed since the plan") as refused:
        demux("apply", "--plan", "plan.json")
    assert refused.value.remedy == "Make the plan again, look at it, and apply that."
    assert changing(fake) == []


def test_a_saved_plan_is_refused_for_another_deployment_or_wheel(here: Path, fake: FakeWorkspace, demux: Demux) -> None:
    demux("plan", "--out", "plan.json")
    with pytest.raises(PlanRefused, match="was saved for the deployment prod, and this is dev"):
        demux("apply", "--plan", "plan.json", "--set", "databricks.name=dev")
    small_wheel(here, "two")
    with pytest.raises(PlanRefused, match="was saved for the wheel /Volumes/main/ops/wheels/prod/protobuf_demux"):
        demux("apply", "--plan", "plan.json")
    assert fake.jobs.held == {}


def test_a_saved_plan_that_was_made_to_do_more_is_refused(here: Path, fake: FakeWorkspace, demux: Demux) -> None:
    demux("apply")
    theirs = somebody_elses(fake, "nightly")
    demux("plan", "--out", "plan.json")
    plan = from_text((here / "plan.json").read_text(encoding="utf-8"), fake.url)
    change = JobChange(JobAction.DELETE, "x", "nightly", theirs, (JobCall.DELETE,), "tidy up")
    (here / "plan.json").write_text(
        plan_to_text(replace(plan, changes=(*plan.changes, change)), fake.url), encoding="utf-8"
    )
    with pytest.raises(PlanRefused, match="was changed after it was saved"):
        demux("apply", "--plan", "plan.json")
    assert theirs in fake.jobs.held


def test_a_saved_plan_with_fewer_removals_written_into_it_is_refused(
    here: Path, fake: FakeWorkspace, demux: Demux
) -> None:
    demux("apply")
    allow(here, "chess")
    demux("plan", "--out", "plan.json")
    content = json.loads((here / "plan.json").read_text(encoding="utf-8"))
    (here / "plan.json").write_text(json.dumps({**content, "removed_games": 0}), encoding="utf-8")
    with pytest.raises(PlanRefused, match="was changed after it was saved"):
        demux("apply", "--plan", "plan.json")
    assert len(tasks(fake)) == 4


def test_a_saved_plan_whose_wheel_is_gone_is_refused(here: Path, fake: FakeWorkspace, demux: Demux) -> None:
    path = f"/Volumes/main/ops/wheels/{WHEEL_NAME}"
    fake.files.held[path] = b"any"
    demux("plan", "--out", "plan.json", "--wheel", path)
    del fake.files.held[path]
    with pytest.raises(SettingsInvalid, match=f"There is no wheel {path} in the workspace"):
        demux("apply", "--plan", "plan.json", "--wheel", path)
    assert fake.jobs.held == {}


def test_a_plan_file_that_cannot_be_read_or_written_is_said(here: Path, demux: Demux) -> None:
    with pytest.raises(SettingsInvalid, match=r"The plan gone\.json cannot be read: No such file or directory"):
        demux("apply", "--plan", "gone.json")
    with pytest.raises(StorageFailed, match=r"The plan cannot be saved to nowhere/plan\.json"):
        demux("plan", "--out", "nowhere/plan.json")


def test_more_than_a_quarter_of_the_games_goes_only_by_force(here: Path, fake: FakeWorkspace, demux: Demux) -> None:
    demux("apply")
    allow(here, "chess", "go")
    with pytest.raises(PlanRefused, match="The plan would remove 1 of 3 games") as refused:
        demux("apply", "--yes")
    assert "--force" in refused.value.remedy
    assert len(tasks(fake)) == 4
    demux("apply", "--yes", "--force")
    assert tasks(fake) == ["bronze", "deserialize_chess", "deserialize_go"]


def test_destroy_removes_only_ours(here: Path, fake: FakeWorkspace, demux: Demux) -> None:
    stranger = somebody_elses(fake, "nightly")
    demux("apply")
    demux("apply", "--set", "databricks.name=dev", "--root", "s3://bucket/dev")
    fake.files.held["/Volumes/main/ops/wheels/prod/notes.txt"] = b"by hand"
    text = demux("destroy", "--yes")
    assert "Game_Protobufs_wrapper_dev" not in text
    assert {job.settings["name"] for job in fake.jobs.held.values()} == {"nightly", "Game_Protobufs_wrapper_dev"}
    assert stranger in fake.jobs.held
    assert {path.split("/")[5] for path in fake.files.held} == {"deployment.dev", "dev", "prod"}
    assert "/Volumes/main/ops/wheels/prod/notes.txt" in fake.files.held


def test_a_wheel_that_another_deployment_runs_stays(fake: FakeWorkspace, demux: Demux) -> None:
    demux("apply")
    (path,) = wheels(fake)
    demux("apply", "--set", "databricks.name=prod-dev", "--root", "s3://bucket/dev", "--wheel", path)
    assert f"! leave  {path}: a job of another deployment runs it" in demux("destroy", "--yes")
    assert wheels(fake) == [path]


def test_destroy_without_a_terminal_needs_yes(fake: FakeWorkspace, demux: Demux) -> None:
    demux("apply")
    with pytest.raises(SettingsInvalid, match="--yes"):
        demux("destroy")
    assert 1001 in fake.jobs.held


def test_a_destroy_that_was_stopped_midway_goes_on(fake: FakeWorkspace, demux: Demux) -> None:
    demux("apply")
    fake.faults.plan(Fault(Way.DENIED, method="DELETE", path="/fs/files/"))
    with pytest.raises(WorkspaceRefused, match="were not permitted to remove"):
        demux("destroy", "--yes")
    assert (len(fake.jobs.held), len(wheels(fake))) == (0, 1)
    demux("destroy", "--yes")
    assert fake.files.held == {}


def test_an_apply_that_was_stopped_midway_goes_on(fake: FakeWorkspace, demux: Demux) -> None:
    fake.faults.plan(Fault(Way.DENIED, path="/jobs/create"))
    with pytest.raises(WorkspaceRefused, match="were not permitted to create the job"):
        demux("apply")
    assert (len(fake.jobs.held), len(wheels(fake))) == (0, 1)
    text = demux("apply")
    assert "upload" not in text
    assert text.endswith("+ create Game_Protobufs_wrapper_prod (job 1001): done\napplied")


def test_another_job_of_the_same_name_is_said_and_left_alone(fake: FakeWorkspace, demux: Demux) -> None:
    theirs = somebody_elses(fake, "Game_Protobufs_wrapper_prod", **{OWNER_TAG: "other"})
    before = dict(fake.jobs.held[theirs].settings)
    said = (
        f"! leave  job {theirs} has the name Game_Protobufs_wrapper_prod too, "
        "but belongs to the deployment other: it is not touched"
    )
    assert said in demux("plan")
    demux("apply")
    demux("destroy", "--yes")
    assert {number: job.settings for number, job in fake.jobs.held.items()} == {theirs: before}


def test_no_second_job_is_made_beside_one_that_lost_its_tag(fake: FakeWorkspace, demux: Demux) -> None:
    demux("apply")
    del fake.jobs.held[1001].settings["tags"][OWNER_TAG]
    with pytest.raises(
        PlanRefused, match="There are jobs without our tag whose names the plan would give once more: 1001"
    ):
        demux("apply")
    assert list(fake.jobs.held) == [1001]
    fake.jobs.held[1001].settings["tags"][OWNER_TAG] = "prod"
    assert "1 to keep" in demux("apply")
    del fake.jobs.held[1001].settings["tags"][OWNER_TAG]
    demux("apply", "--force")
    assert sorted(fake.jobs.held) == [1001, 1002]


def test_a_name_that_we_do_not_need_is_not_mentioned(fake: FakeWorkspace, demux: Demux) -> None:
    somebody_elses(fake, "Game_Protobufs_wrapper_prod_007")
    assert "leave" not in demux("plan")


def test_a_job_that_was_deleted_or_edited_by_hand_is_put_right(here: Path, fake: FakeWorkspace, demux: Demux) -> None:
    demux("apply")
    fake.jobs.held[1001].settings["tasks"][1]["max_retries"] = 9
    assert "task deserialize_chess: max_retries changed from 9 to 2" in demux("plan")
    fake.jobs.held.clear()
    assert "+ create Game_Protobufs_wrapper_prod: no such job yet" in demux("apply")


@pytest.mark.parametrize("words", [("plan",), ("apply",), ("destroy",), ("export", "bundle", "--out", "b")])
def test_a_wrong_token_is_one_sentence(
    fake: FakeWorkspace, demux: Demux, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("DATABRICKS_TOKEN", "dapi-hunter2")
    with pytest.raises(WorkspaceRefused) as refused:
        demux(*words)
    assert refused.value.message == f"The workspace {fake.url} does not accept our login: Invalid access token."
    assert "hunter2" not in str(refused.value)


def test_without_a_login_the_sentence_says_how_to_get_one(demux: Demux, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABRICKS_HOST", "DATABRICKS_TOKEN"):
        monkeypatch.delenv(name)
    with pytest.raises(WorkspaceRefused, match="There is no usable login for a workspace"):
        demux("plan")


def test_a_volume_that_is_not_there_is_said_before_any_job_is_made(
    here: Path, fake: FakeWorkspace, demux: Demux
) -> None:
    write_settings(here, databricks={"wheel_path": "/Volumes/main/gone/wheels"})
    with pytest.raises(DemuxError, match=r"Volume 'main\.gone\.wheels' does not exist"):
        demux("apply")
    assert fake.jobs.held == {}


@pytest.mark.parametrize(
    "words",
    [
        ("apply",),
        ("destroy", "--take-over"),
        ("export", "bundle", "--out", "b"),
        ("plan", "--out", "p"),
        ("plan", "--discovered"),
    ],
)
def test_without_a_name_there_is_no_deployment(here: Path, demux: Demux, words: tuple[str, ...]) -> None:
    (here / "demux.yml").write_text("root: data\n", encoding="utf-8")
    with pytest.raises(SettingsInvalid, match=r"databricks\.name is not set") as refused:
        demux(*words)
    assert refused.value.remedy == "Set databricks.name, or run the games on this machine by `demux run`."


def test_without_a_wheel_path_the_settings_say_so(here: Path, demux: Demux) -> None:
    write_settings(here, databricks={"wheel_path": None})
    with pytest.raises(SettingsInvalid, match="name needs wheel_path"):
        demux("plan")


def test_a_saved_plan_finds_no_more_games(fake: FakeWorkspace, demux: Demux) -> None:
    demux("plan", "--out", "plan.json")
    with pytest.raises(SettingsInvalid, match="--plan and --discovered exclude each other"):
        demux("apply", "--plan", "plan.json", "--discovered")
    assert fake.jobs.held == {}


def test_a_saved_plan_is_for_the_workspace_that_it_was_made_in(here: Path, fake: FakeWorkspace, demux: Demux) -> None:
    demux("plan", "--out", "plan.json")
    text = (here / "plan.json").read_text(encoding="utf-8").replace(fake.url, "https://dbc-1.example")
    (here / "plan.json").write_text(text, encoding="utf-8")
    with pytest.raises(PlanRefused, match=r"is for the workspace https://dbc-1\.example, and this is http://127"):
        demux("apply", "--plan", "plan.json")
    assert fake.jobs.held == {}


@pytest.mark.thorough
def test_a_person_is_asked_and_may_say_no(here: Path, fake: FakeWorkspace) -> None:
    code, text = on_terminal(here, "n\n", "apply", "--wheel", WHEEL_NAME)
    assert (code, fake.jobs.held) == (ExitCode.INTERRUPTED, {})
    assert "Apply this plan? [y/N]: n" in text
    assert "nothing was changed" in text
    code, text = on_terminal(here, "y\n", "apply", "--wheel", WHEEL_NAME)
    assert (code, list(fake.jobs.held)) == (ExitCode.OK, [1001])


def test_a_catalog_that_is_not_there_is_said_before_anything_is_changed(
    here: Path, fake: FakeWorkspace, demux: Demux
) -> None:
    demux("plan", "--out", "plan.json")
    write_settings(here, tables={"catalog": "nowhere"})
    for words in (["plan"], ["apply"], ["apply", "--plan", "plan.json"], ["export", "bundle", "--out", "bundle"]):
        with pytest.raises(SettingsInvalid, match="has no catalog nowhere, so no table could be made"):
            demux(*words)
    assert changing(fake) == []
    assert not (here / "bundle").exists()


def test_a_catalog_that_we_may_not_see_is_left_to_whom_the_jobs_run_as(
    here: Path, fake: FakeWorkspace, demux: Demux
) -> None:
    write_settings(here, tables={"catalog": "main"})
    fake.faults.plan(Fault(Way.DENIED, path="unity-catalog/catalogs/", times=ALWAYS))
    assert "1 to create" in demux("plan")
    assert len(fake.faults.happened) == 1


def test_a_bundle_with_a_task_that_changes_its_jobs_is_refused_before_the_workspace_is_asked(
    here: Path, fake: FakeWorkspace, demux: Demux
) -> None:
    write_settings(here, databricks={"auto_apply": True})
    with pytest.raises(SettingsInvalid, match=r"A bundle cannot have databricks\.auto_apply"):
        demux("export", "bundle", "--out", "bundle")
    assert (fake.calls, (here / "bundle").exists()) == ([], False)
