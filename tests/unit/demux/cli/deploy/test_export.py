"""`demux export bundle` against a workspace over HTTP, as a user calls it."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from demux.core.errors import SettingsInvalid, StorageFailed
from tests.fakes.workspace.fake import FakeWorkspace
from tests.support.databricks.deployments import Demux


def test_the_bundle_is_what_apply_would_install(here: Path, fake: FakeWorkspace, demux: Demux) -> None:
    text = demux("export", "bundle", "--out", "b")
    assert text.endswith("Engine stream.\nwrote databricks.yml, resources/all.yml below b")
    assert len(fake.files.held) == 1
    assert fake.jobs.held == {}
    (job,) = YAML(typ="safe").load(here / "b/resources/all.yml")["resources"]["jobs"].values()
    demux("apply")
    assert [task["task_key"] for task in job["tasks"]] == [
        task["task_key"] for task in fake.jobs.held[1001].settings["tasks"]
    ]


def test_a_bundle_written_again_replaces_its_own_files_and_no_others(here: Path, demux: Demux) -> None:
    demux("export", "bundle", "--out", "b")
    own = here / "b/resources/001.yml"
    own.write_bytes((here / "b/resources/all.yml").read_bytes())
    (here / "b/resources/mine.yml").write_text("resources: {}\n", encoding="utf-8")
    demux("export", "bundle", "--out", "b")
    assert sorted(path.name for path in (here / "b/resources").iterdir()) == ["all.yml", "mine.yml"]
    (here / "b/databricks.yml").write_text("bundle: {name: mine}\n", encoding="utf-8")
    with pytest.raises(SettingsInvalid, match=r"b/databricks\.yml was not written by `demux export bundle`"):
        demux("export", "bundle", "--out", "b")
    assert (here / "b/databricks.yml").read_text(encoding="utf-8") == "bundle: {name: mine}\n"


@pytest.mark.parametrize("folder", ["demux.yml", "x" * 300])
def test_a_folder_that_cannot_be_is_said_before_anything_is_uploaded(
    fake: FakeWorkspace, demux: Demux, folder: str
) -> None:
    with pytest.raises(StorageFailed, match=f"The bundle cannot be written below {folder}: "):
        demux("export", "bundle", "--out", folder)
    assert fake.files.held == {}
