"""`demux destroy --tables --checkpoints`: what goes, what stays, and what a run finds when it was killed midway."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from demux.core.control.deployments_table import copy_record, has_deployment
from demux.core.root.layout import Layout
from demux.core.storage.files import Storage
from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.server import serving
from tests.support.databricks.deployments import WHEEL_NAME, small_wheel, write_settings
from tests.support.flow.crash import Crash
from tests.support.flow.process import Command
from tests.support.flow.root import Root

Copy = Callable[..., Root]

BOTH = ("--tables", "--checkpoints")


@pytest.fixture(scope="module")
def hostile(sent: Root, tmp_path_factory: pytest.TempPathFactory) -> Root:
    """Two games with hostile names and one without a schema, run. To be copied, not changed."""
    root = Root.at(sent.spark, tmp_path_factory.mktemp("hostile") / "root")
    root.produce(events=60, games=1, hostile=2, versions=1, fault_rate=0.3)
    root.run()
    return root


def files(folder: Path) -> set[str]:
    """All files below the folder but locks and logs."""
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return {name for name in found if not name.startswith((".demux.", "logs/"))}


def test_tables_and_checkpoints_go_and_nothing_else_and_a_run_makes_them_again(
    hostile: Root, copy: Copy, command: Command
) -> None:
    root = copy(hostile)
    where = ("--root", str(root.folder))
    # not ours, though it stands among what is
    theirs = root.folder / "silver" / "Mine" / "notes.txt"
    theirs.parent.mkdir()
    theirs.write_text("mine")
    before = files(root.folder)
    said = command("destroy", *BOTH, *where, "--yes")
    assert (said.code, said.err) == (0, "")
    listed = [line for line in said.out.splitlines() if line.startswith("- remove ") and not line.endswith(": done")]
    assert f"- remove table {root.folder}/bronze ({len(root.source()) - _refused(hostile)} rows)" in listed
    assert f"- remove checkpoint {root.folder}/checkpoints/bronze" in listed
    assert said.out.count(": done") == len(listed)
    assert said.out.endswith("destroyed\n")
    stays = {name for name in before if name.split("/")[0] in {"source", "registry"}} | {"silver/Mine/notes.txt"}
    left = files(root.folder)
    assert stays <= left
    assert {name.split("/")[0] for name in left - stays} <= {"control"}
    assert [name for name in left - stays if "_delta_log" in name or name.endswith(".parquet")] == []

    again = command("destroy", *BOTH, *where, "--yes")
    assert (again.code, again.out) == (0, "nothing to remove\n")
    shutil.rmtree(theirs.parent)
    assert command("run", *where).code == 0
    assert root.everything() == hostile.everything()


def _refused(root: Root) -> int:
    return sum(row["stage"] == "bronze" for row in root.quarantine())


@pytest.mark.parametrize(("option", "condition"), [("--tables", "TABLE_LOST"), ("--checkpoints", "CHECKPOINT_LOST")])
def test_when_only_half_of_it_goes_a_run_refuses_and_a_rebuild_makes_the_same_tables(
    done: Root, copy: Copy, command: Command, option: str, condition: str
) -> None:
    root = copy(done)
    where = ("--root", str(root.folder))
    said = command("destroy", option, *where, "--yes")
    assert said.code == 0
    assert f"`demux run` will refuse with {condition}" in said.out
    stays = "checkpoints" if option == "--tables" else "tables"
    assert said.out.endswith(f"destroyed; the {stays} are as they were\n")
    refused = command("run", *where)
    assert (refused.code, refused.err.split(" ")[0]) == (1, condition)
    assert "Run `demux rebuild --bronze`" in refused.err

    assert command("rebuild", "--bronze", *where).code == 0
    assert command("run", *where).code == 0
    assert root.everything() == done.everything()


# after nothing, in the middle of the checkpoints, between them and the tables, among the tables, at the very last
@pytest.mark.parametrize("survived", [*(pytest.param(at, marks=pytest.mark.long) for at in (1, 4, 6)), 0, 3, 99])
def test_a_destroy_that_is_killed_leaves_a_root_that_nobody_works_on_until_it_is_finished(
    streamed: Root, copy: Copy, command: Command, monkeypatch: pytest.MonkeyPatch, survived: int
) -> None:
    root = copy(streamed)
    where = ("--root", str(root.folder))
    removed: list[str] = []

    delete_folder = Storage.delete_folder

    def remove_or_die(storage: Storage, folder: str) -> None:
        if len(removed) == survived or (folder == root.layout.removal and survived == 99):
            # half of a folder is gone
            for path in sorted(Path(folder).rglob("*"))[::2]:
                path.unlink(missing_ok=True) if path.is_file() else None
            raise Crash(folder)
        removed.append(folder)
        delete_folder(storage, folder)

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "delete_folder", remove_or_die)
        assert command("destroy", *BOTH, *where, "--yes").code != 0
    working = (("run",), ("ingest",), ("deserialize", "--game", "chess"), ("rebuild", "--bronze"), ("apply",))
    for words in (*working, ("status",), ("show", "chess"), ("plan",)):
        refused = command(*words, *where)
        assert (refused.code, refused.err) == (
            1,
            f"REMOVAL_UNFINISHED `demux destroy` has not finished removing tables or checkpoints of {root.folder}.\n"
            "If it does not run any more, run `demux destroy --tables --checkpoints` again: it removes the rest.\n",
        )
    assert command("destroy", *where, "--yes").err.startswith("REMOVAL_UNFINISHED ")
    assert command("destroy", *BOTH, *where, "--yes").code == 0
    assert {name.split("/")[0] for name in files(root.folder)} <= {"source", "registry", "control"}
    assert not Path(root.layout.removal).exists()

    assert command("run", *where).code == 0
    assert root.everything() == streamed.everything()


def test_a_root_by_uri_is_destroyed_too(
    done: Root, copy: Copy, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copy(done)
    # log files of a root elsewhere are written beside us
    monkeypatch.chdir(tmp_path)
    uri = root.folder.as_uri()
    said = command("destroy", *BOTH, "--root", uri, "--yes")
    assert said.code == 0
    assert f"- remove table {uri}/silver/chess" in said.out
    assert root.bronze() == root.quarantine() == root.silver("chess") == []
    assert not Path(Layout(str(root.folder)).bronze_checkpoint).exists()


def test_a_table_that_somebody_removed_is_noticed_and_its_rebuild_gives_the_same_table(
    streamed: Root, copy: Copy, command: Command
) -> None:
    root = copy(streamed)
    shutil.rmtree(root.silver_path("chess"))
    root.produce(events=12, games=1, versions=1, fault_rate=0)
    said = command("run", "--root", str(root.folder))
    assert said.code == 3
    assert "failed: chess: TABLE_LOST" in said.out
    assert "Run `demux rebuild --game chess` to make it again from bronze, or put the table back." in said.out
    assert command("rebuild", "--game", "chess", "--root", str(root.folder)).code == 0
    known = {row["_record_id"] for row in streamed.silver("chess")}
    assert len([row for row in root.silver("chess") if row["_record_id"] in known]) == len(known)
    assert len(root.silver("chess")) > len(known)
    # it failed the last time, so it is looked at once more
    again = command("run", "--root", str(root.folder))
    assert (again.code, "0 games had new rows, " in again.out) == (0, True)


@pytest.fixture
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWorkspace]:
    """A workspace, and a working directory with the settings of a deployment there."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    small_wheel(here)
    write_settings(here)
    fake = FakeWorkspace()
    fake.catalog.add("volume", "main.ops.wheels")
    with serving(fake):
        for name, value in fake.environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(here / "no.cfg"))
        yield fake


def test_a_deployment_is_forgotten_where_its_checkpoints_go_and_the_tables_stay(
    done: Root, copy: Copy, command: Command, deployment: FakeWorkspace, tmp_path: Path
) -> None:
    root = copy(done)
    layout = Layout(str(root.folder))
    assert command("apply", "--wheel", WHEEL_NAME, "--yes").code == 0
    folder = tmp_path / "deployment.prod"
    folder.mkdir()
    newest = deployment.files.held["/Volumes/main/ops/wheels/deployment.prod/00000002.json"]
    (folder / "00000002.json").write_bytes(newest)
    assert copy_record(root.spark, layout, folder)
    said = command("destroy", "--checkpoints", "--root", str(root.folder), "--yes")
    assert (said.code, said.err) == (0, "")
    assert "- forget where the games of prod ran (control/deployments)\n" in said.out
    assert not has_deployment(root.spark, layout, "prod")
    again = command("destroy", "--checkpoints", "--root", str(root.folder), "--yes")
    assert "forget" not in again.out


def test_with_a_deployment_its_jobs_go_first_and_then_the_tables(
    done: Root, copy: Copy, command: Command, deployment: FakeWorkspace
) -> None:
    root = copy(done)
    assert command("apply", "--wheel", WHEEL_NAME, "--yes").code == 0
    said = command("destroy", *BOTH, "--root", str(root.folder), "--yes")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    gone = [line for line in lines if line.endswith(": done")]
    assert gone[0].startswith("- delete Game_Protobufs_wrapper_prod")
    assert gone[-1] == f"- remove table {root.folder}/control/games: done"
    assert lines.index(f"- remove checkpoint {root.folder}/checkpoints/bronze") < lines.index(gone[0])
    assert lines[-1] == "destroyed"
    assert deployment.jobs.held == {}
    assert root.bronze() == root.quarantine() == root.silver("chess") == []
