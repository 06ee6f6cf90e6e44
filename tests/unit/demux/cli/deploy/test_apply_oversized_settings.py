"""Settings that are too long for a task's parameters, from the first plan to destroy."""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from pathlib import Path

import pytest

from demux.core.errors import PlanRefused
from demux.core.settings.loading.loader import load
from install_workflow.databricks.apply.wheel import wheels_of
from install_workflow.databricks.jobs.job import OWNER_TAG
from install_workflow.databricks.jobs.oversized_settings import MAX_BYTES, is_our_settings, size_of
from tests.fakes.workspace.fake import FakeWorkspace
from tests.support.databricks.deployments import Demux, write_settings

# a plan of 900 games takes a second, and each test makes several
pytestmark = pytest.mark.thorough

MANY = [f"game_{number:04}" for number in range(900)]


def long(folder: Path, *more: str) -> None:
    write_settings(folder, games={"allow": [*MANY, *more]}, databricks={"auto_apply": True, "granularity": "cluster"})


def files(fake: FakeWorkspace) -> list[str]:
    """The settings files in the workspace."""
    return [path for path in sorted(fake.files.held) if is_our_settings(path)]


def parameters(fake: FakeWorkspace, key: str) -> list[str]:
    (task,) = (task for task in fake.jobs.held[1001].settings["tasks"] if task["task_key"] == key)
    found: list[str] = task["python_wheel_task"]["parameters"]
    return found


@pytest.fixture
def workspace(here: Path, fake: FakeWorkspace) -> FakeWorkspace:
    long(here)
    return fake


def test_the_plan_shows_the_upload_and_apply_makes_it_once(workspace: FakeWorkspace, demux: Demux) -> None:
    line = demux("plan").splitlines()[1]
    assert line.startswith("+ upload /Volumes/main/ops/wheels/prod/settings.")
    assert json.loads(demux("plan", "--json"))["settings_files"] == [line.removeprefix("+ upload ")]
    assert files(workspace) == []
    assert f"{line}: done" in demux("apply").splitlines()
    assert files(workspace) == [line.removeprefix("+ upload ")]
    assert "upload" not in demux("apply")


def test_the_task_reads_the_settings_that_were_written(
    here: Path, workspace: FakeWorkspace, demux: Demux, tmp_path: Path
) -> None:
    demux("apply")
    words = parameters(workspace, "apply_discovered")
    assert size_of(words) < MAX_BYTES
    path = words[words.index("--settings") + 1]
    here_too = tmp_path / "copy.yml"
    here_too.write_bytes(workspace.files.held[path])
    given = dict(each.split("=", 1) for option, each in pairwise(words) if option == "--set")
    assert load(here_too, {}, given) == load(here / "demux.yml", {}, {})


def test_it_comes_back_when_it_was_removed_by_hand(workspace: FakeWorkspace, demux: Demux) -> None:
    demux("apply")
    (path,) = files(workspace)
    del workspace.files.held[path]
    text = demux("apply")
    assert text.startswith(f"+ upload {path}\n")
    assert text.endswith(f"+ upload {path}: done\napplied")
    assert files(workspace) == [path]


def test_other_settings_have_another_file_and_destroy_removes_both(
    here: Path, workspace: FakeWorkspace, demux: Demux
) -> None:
    demux("apply")
    long(here, "one_more")
    demux("apply")
    assert len(files(workspace)) == 2
    text = demux("destroy", "--yes")
    assert text.count("settings.") == 4
    assert workspace.files.held == {}


def test_a_saved_plan_takes_its_file_along_or_is_refused(here: Path, workspace: FakeWorkspace, demux: Demux) -> None:
    demux("plan", "--out", "plan.json")
    long(here, "one_more")
    with pytest.raises(PlanRefused, match="which is not in the workspace and not made by these settings"):
        demux("apply", "--plan", "plan.json")
    long(here)
    demux("apply", "--plan", "plan.json")
    assert len(files(workspace)) == 1


def test_a_bundle_has_it_uploaded(workspace: FakeWorkspace, demux: Demux) -> None:
    one_file = ("--set", "databricks.auto_apply=false", "--set", "source.path=s3://bucket/события")
    demux("export", "bundle", "--out", "bundle", *one_file)
    assert len(files(workspace)) == 1


def test_a_file_that_a_job_of_another_deployment_reads_stays(workspace: FakeWorkspace, demux: Demux) -> None:
    demux("apply")
    (path,) = files(workspace)
    settings = copy.deepcopy(workspace.jobs.held[1001].settings)
    settings["tags"][OWNER_TAG] = "dev"
    (wheel,) = wheels_of([settings])
    workspace.jobs.make(settings)
    said = demux("destroy", "--yes")
    assert f"! leave  {wheel}: a job of another deployment runs it" in said
    assert f"! leave  {path}: a job of another deployment reads it" in said
    assert sorted(workspace.files.held) == sorted([wheel, path])
