"""The wheel: the same for the same content, under a path that another content never has."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from shutil import copytree

import pytest

from demux.core.errors import SettingsInvalid
from install_workflow.databricks.apply.wheel import Wheel, find_wheel, is_our_wheel, wheels_of
from install_workflow.databricks.jobs.job import wheel_folder
from tests.support.databricks.deployments import WHEEL_NAME, small_wheel

CHECKOUT = Path(__file__).parents[5]

FOLDER = "/Volumes/main/ops/wheels/prod"


def test_the_path_has_the_hash_of_what_is_in_the_wheel(tmp_path: Path) -> None:
    one = find_wheel(str(small_wheel(tmp_path / "a", "one")), FOLDER)
    two = find_wheel(str(small_wheel(tmp_path / "b", "two")), FOLDER)
    assert one.content == (tmp_path / "a" / WHEEL_NAME).read_bytes()
    assert one.path != two.path
    assert is_our_wheel(one.path)
    assert is_our_wheel(two.path)
    assert one.path.startswith(f"{FOLDER}/protobuf_demux-0.1.0-0")
    assert one.path.endswith("-py3-none-any.whl")


def test_another_compression_of_the_same_files_is_the_same_wheel(tmp_path: Path) -> None:
    stored = find_wheel(str(small_wheel(tmp_path / "a", "x" * 9999)), FOLDER)
    deflated = find_wheel(str(small_wheel(tmp_path / "b", "x" * 9999, zipfile.ZIP_DEFLATED)), FOLDER)
    assert (tmp_path / "a" / WHEEL_NAME).read_bytes() != (tmp_path / "b" / WHEEL_NAME).read_bytes()
    assert stored == deflated


def test_a_build_in_the_name_is_replaced_by_ours(tmp_path: Path) -> None:
    plain = small_wheel(tmp_path)
    built = plain.rename(tmp_path / "protobuf_demux-0.1.0-7local-py3-none-any.whl")
    assert find_wheel(str(built), FOLDER).path == find_wheel(str(small_wheel(tmp_path)), FOLDER).path


@pytest.mark.parametrize("path", ["/Volumes/main/ops/x.whl", "/Workspace/Shared/x.whl"])
def test_a_path_of_the_workspace_is_taken_as_it_is(path: str) -> None:
    assert find_wheel(path, FOLDER) == Wheel(path, None)
    assert not is_our_wheel(path)


def test_a_wheel_of_somebody_else_is_not_ours_to_remove() -> None:
    assert not is_our_wheel(f"{FOLDER}/{WHEEL_NAME}")
    assert not is_our_wheel(f"{FOLDER}/other-1-0123456789abc-py3-none-any.whl")


def test_what_is_no_wheel_is_said(tmp_path: Path) -> None:
    named = small_wheel(tmp_path)
    other = named.rename(tmp_path / "other-1.0-py3-none-any.whl")
    broken = tmp_path / WHEEL_NAME
    broken.write_bytes(b"no zip")
    for given, reason in (
        (str(other), "it is not named protobuf_demux-VERSION-….whl"),
        (str(broken), "File is not a zip file"),
        (str(tmp_path / "gone" / WHEEL_NAME), "No such file or directory"),
    ):
        with pytest.raises(SettingsInvalid, match=reason) as refused:
            find_wheel(given, FOLDER)
        assert refused.value.remedy == "Name a wheel of this project with --wheel FILE."


def test_a_wheel_that_cannot_be_unpacked_is_said(tmp_path: Path) -> None:
    whole = small_wheel(tmp_path, "x" * 999, zipfile.ZIP_DEFLATED).read_bytes()
    central, data = whole.index(b"PK\x01\x02"), whole.index(b"demux/__init__.py") + len("demux/__init__.py")
    for position, value, reason in (
        (data, 0xFF, "invalid block type"),
        (central + 8, 1, "encrypted"),
        (central + 10, 99, "not supported"),
    ):
        broken = bytearray(whole)
        broken[position] = value
        (tmp_path / WHEEL_NAME).write_bytes(broken)
        with pytest.raises(SettingsInvalid, match=reason):
            find_wheel(str(tmp_path / WHEEL_NAME), FOLDER)


def test_an_archive_without_the_metadata_of_a_wheel_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / WHEEL_NAME, "w") as archive:
        archive.writestr("demux/__init__.py", "")
    with pytest.raises(SettingsInvalid, match=r"it has no protobuf_demux-….dist-info/METADATA"):
        find_wheel(str(tmp_path / WHEEL_NAME), FOLDER)


def test_the_checkout_gives_the_same_bytes_twice_whenever_its_files_were_written(tmp_path: Path) -> None:
    first = find_wheel(None, FOLDER, CHECKOUT)
    for name in ("demux", "producer", "bronze_ingest", "install_workflow", "deserializer", "proto"):
        copytree(CHECKOUT / name, tmp_path / name)
    for name in ("pyproject.toml", "README.md", ".gitignore"):
        (tmp_path / name).write_bytes((CHECKOUT / name).read_bytes())
    for path in tmp_path.rglob("*.py"):
        os.utime(path, (1, 1))
    second = find_wheel(None, FOLDER, tmp_path)
    assert first == second
    (tmp_path / "demux" / "names.py").write_text("changed = True\n", encoding="utf-8")
    assert find_wheel(None, FOLDER, tmp_path).path != first.path


def test_without_a_checkout_a_wheel_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid, match="There is no checkout here") as refused:
        find_wheel(None, FOLDER, tmp_path)
    assert "--wheel FILE" in refused.value.remedy


def test_a_build_that_fails_says_why_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n', encoding="utf-8")
    with pytest.raises(SettingsInvalid, match="The wheel cannot be built") as refused:
        find_wheel(None, FOLDER, tmp_path)
    assert "\n" not in refused.value.message


def test_each_deployment_has_a_folder_of_its_own() -> None:
    assert wheel_folder("/Volumes/main/ops/wheels/", "prod") == FOLDER


def test_the_wheels_of_jobs_are_those_of_their_tasks() -> None:
    tasks = [{"libraries": [{"whl": "/a.whl"}, {"pypi": {"package": "x"}}]}, {"libraries": []}, {"run_job_task": {}}]
    assert wheels_of([{"tasks": tasks}, {}]) == {"/a.whl"}
    environment = {"environment_key": "default", "spec": {"dependencies": ["/b.whl", "confluent-kafka>=2.8"]}}
    assert wheels_of([{"tasks": tasks}, {"environments": [environment]}]) == {"/a.whl", "/b.whl"}
