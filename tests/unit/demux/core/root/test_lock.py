"""One command at a time on a root."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from demux.core.errors import RootLocked, StorageFailed
from demux.core.root.lock import hold_root, is_elsewhere, table_lock

PATIENCE_S = 30.0


def test_the_second_command_is_refused_and_told_who_is_at_work(tmp_path: Path) -> None:
    root = str(tmp_path)
    with (
        hold_root(root, "run", wait=False),
        pytest.raises(RootLocked) as refused,
        hold_root(root, "ingest", wait=False),
    ):
        pass
    assert refused.value.message == f"`demux run` (process {os.getpid()}) is at work on {root}."
    assert "--wait" in refused.value.remedy


def test_a_root_is_free_again_after_the_command_and_after_a_failure(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="in the middle"), hold_root(str(tmp_path), "run", wait=False):
            raise ValueError("in the middle")
    with hold_root(str(tmp_path), "run", wait=False):
        pass


def test_a_command_that_waits_begins_when_the_first_one_ends(tmp_path: Path) -> None:
    order: list[str] = []
    waits = threading.Event()

    def second() -> None:
        waits.set()
        with hold_root(str(tmp_path), "ingest", wait=True):
            order.append("second")

    thread = threading.Thread(target=second)
    with hold_root(str(tmp_path), "run", wait=False):
        thread.start()
        assert waits.wait(PATIENCE_S)
        order.append("first")
    thread.join(PATIENCE_S)
    assert order == ["first", "second"]


def test_two_roots_do_not_know_of_each_other(tmp_path: Path) -> None:
    with hold_root(str(tmp_path / "a"), "run", wait=False), hold_root(str(tmp_path / "b"), "run", wait=False):
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_root_that_is_not_there_is_made_with_its_parents(tmp_path: Path) -> None:
    with hold_root(str(tmp_path / "deep" / "root"), "run", wait=False):
        assert (tmp_path / "deep" / "root").is_dir()


@pytest.mark.parametrize("root", ["s3://bucket/root", "file:///data/root", "/Volumes/main/demux/files/root"])
def test_a_root_elsewhere_has_no_lock_and_no_folder_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.chdir(tmp_path)
    with hold_root(root, "run", wait=False), hold_root(root, "run", wait=False):
        assert list(tmp_path.iterdir()) == []
    assert not Path("/Volumes").exists()


@pytest.mark.parametrize(
    ("root", "system", "elsewhere"),
    [
        ("s3://bucket/root", "Linux", True),
        ("/Volumes/main/demux/files", "Linux", True),
        ("/Volumes/Disk/data/root", "Darwin", False),
        ("/Volumes2/root", "Linux", False),
        ("/data/Volumes/root", "Linux", False),
    ],
)
def test_a_volume_is_elsewhere_but_on_a_mac_it_is_a_disk(
    monkeypatch: pytest.MonkeyPatch, root: str, system: str, elsewhere: bool
) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    assert is_elsewhere(root) is elsewhere


def test_a_root_that_cannot_be_a_folder_is_a_failure_of_the_storage(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("here first", encoding="utf-8")
    with pytest.raises(StorageFailed) as failed, hold_root(str(file / "root"), "run", wait=False):
        pass
    assert failed.value.message == f"The root {file / 'root'} cannot be written: Not a directory."
    assert file.read_text(encoding="utf-8") == "here first"


def test_a_holder_that_cannot_be_written_leaves_the_root_free(tmp_path: Path) -> None:
    (tmp_path / ".demux.holder").mkdir()
    with pytest.raises(StorageFailed) as failed, hold_root(str(tmp_path), "run", wait=False):
        pass
    assert failed.value.message == f"The root {tmp_path} cannot be written: Is a directory."
    (tmp_path / ".demux.holder").rmdir()
    with hold_root(str(tmp_path), "run", wait=False):
        pass


def test_a_holder_that_cannot_be_read_is_another_command(tmp_path: Path) -> None:
    root = str(tmp_path)
    with hold_root(root, "run", wait=False):
        (tmp_path / ".demux.holder").unlink()
        with pytest.raises(RootLocked, match="Another command is at work"), hold_root(root, "run", wait=False):
            pass


def test_a_table_is_written_by_one_at_a_time_and_another_table_is_not_held_up(tmp_path: Path) -> None:
    order: list[str] = []
    begun = threading.Event()

    def second() -> None:
        begun.set()
        with table_lock(str(tmp_path))(f"{tmp_path}/quarantine"):
            order.append("second")

    thread = threading.Thread(target=second)
    with table_lock(str(tmp_path))(f"{tmp_path}/quarantine"), table_lock(str(tmp_path))(f"{tmp_path}/control/schemas"):
        thread.start()
        assert begun.wait(PATIENCE_S)
        order.append("first")
    thread.join(PATIENCE_S)
    assert order == ["first", "second"]


def test_a_root_by_a_file_uri_has_the_same_table_locks_as_its_folder(tmp_path: Path) -> None:
    root = tmp_path / "a b"
    root.mkdir()
    for name in (str(root), root.as_uri()):
        with table_lock(name)(f"{name}/control/schemas"):
            assert [path.name for path in root.iterdir()] == [".demux.table.control.schemas.lock"]


@pytest.mark.parametrize("root", ["s3://bucket/root", "hdfs://host/root", "/Volumes/main/demux/files/root"])
def test_a_table_elsewhere_has_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.chdir(tmp_path)
    with table_lock(root)(f"{root}/quarantine"), table_lock(root)(f"{root}/quarantine"):
        assert list(tmp_path.iterdir()) == []
