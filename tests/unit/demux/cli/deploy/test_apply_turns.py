"""`demux plan`, `apply` and `destroy` while another command installs the same deployment."""

from __future__ import annotations

import getpass
import json
import os
import socket
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from demux.core.control.deployment_record import DeploymentRecord, InstallerClaim, deployment_format
from demux.core.errors import DeploymentLocked, ExitCode
from install_workflow.databricks.apply.deployment_lock import LocalPresence
from tests.fakes.workspace.fake import FakeWorkspace
from tests.support.databricks.deployments import WHEEL_NAME, Demux, write_settings
from tests.support.terminal import at_terminal

WHEELS = "/Volumes/main/ops/wheels"


def claim(fake: FakeWorkspace, version: int, until: datetime, by: str = "bob@build-7") -> None:
    """Write a version of the record, by which another command installs until then."""
    other = InstallerClaim(by, "12-ab", "27af7553c72c", until - timedelta(minutes=15), until)
    text = deployment_format("prod").to_text(DeploymentRecord((), other))
    fake.files.held[f"{WHEELS}/deployment.prod/{version:08}.json"] = text.encode()


@pytest.mark.parametrize("words", [("apply",), ("destroy", "--yes")])
def test_while_another_command_installs_nothing_is_changed_but_by_take_over(
    fake: FakeWorkspace, demux: Demux, words: tuple[str, ...]
) -> None:
    demux("apply")
    now = datetime.now(timezone.utc)
    claim(fake, 3, now + timedelta(minutes=9))
    fake.calls.clear()
    with pytest.raises(DeploymentLocked, match=r"Another command installs prod since .*\(bob@build-7, process 12-ab\)"):
        demux(*words)
    assert not any(call.path.startswith("/api/2.2/jobs") for call in fake.calls)
    assert demux("plan").startswith("! busy   another command installs prod since ")
    demux(*words, "--take-over")
    assert len(fake.jobs.held) == (1 if words == ("apply",) else 0)
    assert "busy" not in demux("plan")


def test_a_claim_whose_time_is_over_holds_nobody_up(fake: FakeWorkspace, demux: Demux) -> None:
    claim(fake, 1, datetime.now(timezone.utc) - timedelta(seconds=1))
    assert "busy" not in demux("plan")
    demux("apply")
    assert list(fake.jobs.held) == [1001]


@pytest.mark.thorough
def test_a_plan_that_went_stale_while_somebody_was_asked_is_not_applied(
    here: Path, fake: FakeWorkspace, demux: Demux
) -> None:
    with at_terminal(here, "apply", "--wheel", WHEEL_NAME) as (process, keyboard):
        assert process.stdout is not None
        text = ""
        while "[y/N]" not in text:
            text += process.stdout.read(1) or "[y/N] never came"
        demux("apply")
        os.write(keyboard, b"y\n")
        text += process.stdout.read()
    assert process.returncode == ExitCode.TRANSIENT
    assert "Another command changed the deployment prod at the same time" in text
    assert list(fake.jobs.held) == [1001]
    assert "1 to keep" in demux("plan")


def test_the_record_is_below_workspace_where_the_wheel_is(here: Path, fake: FakeWorkspace, demux: Demux) -> None:
    write_settings(here, databricks={"wheel_path": "/Workspace/Shared/wheels"})
    demux("apply")
    assert "--deployment-record" in fake.jobs.held[1001].settings["tasks"][0]["python_wheel_task"]["parameters"]
    records = [path for path in fake.tree.held if "deployment.prod/" in path]
    assert records == [f"/Workspace/Shared/wheels/deployment.prod/{version:08}.json" for version in (1, 2)]
    fake.tree.held[records[-1].replace("2.json", "3.json")] = fake.tree.held[records[0]]
    with pytest.raises(DeploymentLocked):
        demux("apply")
    demux("destroy", "--yes", "--take-over")
    assert [path for path in fake.tree.held if "deployment.prod" in path] == []


OURSELVES = f"{getpass.getuser()}@{socket.gethostname()}"


@pytest.mark.parametrize("words", [("apply",), ("destroy", "--yes")])
def test_a_command_of_ours_that_was_killed_is_just_run_again(
    here: Path, fake: FakeWorkspace, demux: Demux, words: tuple[str, ...]
) -> None:
    demux("apply")
    claim(fake, 3, datetime.now(timezone.utc) + timedelta(minutes=9), OURSELVES)
    killed = LocalPresence(here / "cache" / "protobuf-demux" / "installers")
    # it may be on a machine that has our machine's name
    with pytest.raises(DeploymentLocked):
        demux(*words)
    killed.hold("12-ab")
    with pytest.raises(DeploymentLocked):
        demux(*words)
    assert demux("plan").startswith("! busy   another command installs prod since ")
    del killed
    assert "busy" not in demux("plan")
    demux(*words)
    assert len(fake.jobs.held) == (1 if words == ("apply",) else 0)


@pytest.mark.parametrize("parent", ["/Volumes/main/ops/wheels", "/Workspace/Shared"])
@pytest.mark.parametrize("there", [False, True])
def test_destroy_removes_the_folders_that_apply_made_and_no_other(
    here: Path, fake: FakeWorkspace, demux: Demux, parent: str, there: bool
) -> None:
    write_settings(here, databricks={"wheel_path": f"{parent}/team/demux"})
    if there:
        fake.tree.held[f"{parent}/team"] = None
        fake.files.folders.add(f"{parent}/team")

    def folders() -> set[str]:
        return {
            path for path in {*fake.tree.held, *fake.files.held, *fake.files.folders} if path.startswith(f"{parent}/")
        }

    before = folders()
    demux("apply")
    assert f"{parent}/team/demux/deployment.prod" in {path.rpartition("/")[0] for path in folders()}
    demux("apply", "--set", "databricks.retries=7")
    said = demux("destroy", "--yes")
    assert f"- remove {parent}/team/demux, if nothing else is in it" in said
    assert (f"- remove {parent}/team: done" in said) is not there
    assert folders() == before


def test_a_folder_of_wheels_that_another_deployment_uses_stays(here: Path, fake: FakeWorkspace, demux: Demux) -> None:
    write_settings(here, databricks={"wheel_path": f"{WHEELS}/team"})
    demux("apply")
    fake.files.held[f"{WHEELS}/team/dev/a.whl"] = b"1"
    demux("destroy", "--yes")
    assert fake.files.held == {f"{WHEELS}/team/dev/a.whl": b"1"}
    assert fake.files.folders == {f"{WHEELS}/team"}


@pytest.mark.parametrize("left", ["prod", "deployment.prod", "grants.prod"])
def test_a_second_destroy_removes_the_empty_folder_that_a_killed_one_left(
    fake: FakeWorkspace, demux: Demux, left: str
) -> None:
    fake.files.folders |= {f"{WHEELS}/{left}", f"{WHEELS}/of_others"}
    assert f"- remove {WHEELS}/{left}" in demux("destroy", "--yes").splitlines()
    assert fake.files.folders == {f"{WHEELS}/of_others"}
    assert "- remove" not in demux("destroy", "--yes")


def test_changes_by_hand_are_in_plan_and_json_and_a_saved_plan_sets_them_back(
    here: Path, fake: FakeWorkspace, demux: Demux
) -> None:
    demux("apply")
    settings = fake.jobs.held[1001].settings
    settings["run_as"] = {"service_principal_name": "robot"}
    for each in settings["job_clusters"]:
        each["new_cluster"]["runtime_engine"] = "PHOTON"
        each["new_cluster"]["aws_attributes"] = {"availability": "SPOT", "zone_id": "us-east-1f"}
    said = demux("plan", "--out", "plan.json").splitlines()
    assert said[1:4] == [
        "    ~ cluster bronze: aws_attributes.availability changed from SPOT to SPOT_WITH_FALLBACK: changed by hand",
        "    ~ cluster bronze: aws_attributes.zone_id changed from us-east-1f to us-east-1c: changed by hand",
        "    - cluster bronze: runtime_engine PHOTON removed: set by hand",
    ]
    assert said[7] == "    ~ job: run_as changed from robot to ann@example.org"
    details = json.loads(demux("plan", "--json"))["changes"][0]["details"]
    assert {detail["reason"] for detail in details} == {"changed by hand", "set by hand", ""}
    demux("apply", "--plan", "plan.json")
    assert fake.jobs.held[1001].runs_as == "ann@example.org"
    assert "1 to keep" in demux("plan")
