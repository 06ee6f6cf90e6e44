"""A root in an S3 server: every command works there, and leaves the tables that it leaves in a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demux.core.storage.files import Storage
from tests.support.flow.process import Command, Said
from tests.support.flow.root import Root, Rows, lasting
from tools.servers.stores.s3 import ACCESS_KEY, SECRET_KEY, ObjectStore

NAME = "games 100%+ü"
GAME = "chess"


def everything(storage: Storage, root: str) -> Mapping[str, tuple[list[str], Rows]]:
    """All rows and columns of bronze, quarantine and silver, as `Root.everything` gives them."""
    found = {}
    for table in ("bronze", "quarantine", *(f"silver/{key}" for key in storage.names(f"{root}/silver"))):
        rows = storage.table(f"{root}/{table}").to_pyarrow_table()
        key = "_record_id" if "_record_id" in rows.column_names else "record_id"
        found[table] = (rows.column_names, [lasting(row) for row in rows.sort_by(key).to_pylist()])
    return found


@pytest.fixture
def both(
    command: Command,
    spark_in_store: SparkSession,
    in_store: Storage,
    object_store: ObjectStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[Root, Callable[..., tuple[Said, Said]], Callable[[], None]]:
    """A root in a folder, what runs a command there and in the store, and what compares the tables of both."""
    local, root = Root.at(spark_in_store, tmp_path / "local"), f"s3://demux/{tmp_path.name}/{NAME}"
    monkeypatch.setenv("STORE_KEY", ACCESS_KEY)
    monkeypatch.setenv("STORE_SECRET", SECRET_KEY)
    monkeypatch.chdir(tmp_path)
    said = {
        "source.path": local.settings.source_path,
        "registry.path": local.settings.registry_path,
        "store.endpoint": object_store.url,
        "store.access_key": "secret:env/STORE_KEY",
        "store.secret_key": "secret:env/STORE_SECRET",
    }
    settings = [word for key, value in said.items() for word in ("--set", f"{key}={value}")]

    def run(*words: str) -> tuple[Said, Said]:
        ended = tuple(command(*words, "--root", where, *settings) for where in (str(local.folder), root))
        assert ended[0].code == ended[1].code, ended
        return ended[0], ended[1]

    def same() -> None:
        assert everything(in_store, root) == local.everything()

    return local, run, same


@pytest.mark.slow
def test_every_command_does_in_a_store_what_it_does_in_a_folder(
    both: tuple[Root, Callable[..., tuple[Said, Said]], Callable[[], None]], in_store: Storage, tmp_path: Path
) -> None:
    local, run, same = both
    local.produce(events=100, games=2, versions=2, fault_rate=0.2)
    for words in (["ingest"], ["plan"], ["apply"], ["deserialize", "--game", GAME], ["run"]):
        assert run(*words)[1].code == 0, words
    same()
    root = f"s3://demux/{tmp_path.name}/{NAME}"
    # by files, not by Spark
    history = in_store.table(f"{root}/bronze").history()
    assert {str(commit.get("engineInfo", "delta-rs")).partition(":")[0] for commit in history} == {"delta-rs"}

    local.produce(events=40, games=2, versions=3, fault_rate=0.1)
    assert run("run", "--set", "run.engine=stream")[1].code == 0
    same()

    looks = (
        ["status"],
        ["show", GAME],
        ["plan", "--json"],
        ["quarantine", "list"],
        ["quarantine", "show", "--game", GAME],
        ["schemas", "list"],
        ["maintain", "--dry-run"],
        ["backfill", "--from", "2000-01-01", "--dry-run"],
        ["reconcile"],
    )
    for words in looks:
        here, there = run(*words)
        assert (there.code, len(there.out.splitlines())) == (0, len(here.out.splitlines())), (words, here, there)
    here, there = (json.loads(said.out) for said in run("reconcile", "--json"))
    assert here == there

    person = local.silver(GAME)[0]["user_name"]
    for words in (
        ["backfill", "--from", "2000-01-01"],
        ["rebuild", "--game", GAME],
        ["quarantine", "replay"],
        ["backfill", "--rescued"],
        ["quarantine", "drop", "--older-than", "0s", "--cause", "MALFORMED_PAYLOAD", "--yes"],
        ["forget", "--where", f"user_name = '{person}'", "--unreadable-too", "--yes"],
        ["maintain", "--set", "maintain.keep=0s", "--force"],
    ):
        here, there = run(*words)
        # 7: some records could not be searched, here as there
        assert there.code in ({0, 7} if words[0] == "forget" else {0}), (words, there)
        same()
    assert run("reconcile")[1].code == 0

    assert run("destroy", "--tables", "--checkpoints", "--yes")[1].code == 0
    # an object without bytes stands for a folder
    left = [file.key for file in in_store.files(root) if file.bytes and not file.key.startswith("control/")]
    assert left == []
    assert "nothing" in run("destroy", "--tables", "--checkpoints", "--yes")[1].out.lower()


def test_the_demonstration_has_everything_in_the_store_and_goes_on_there(
    command: Command,
    spark_in_store: SparkSession,
    in_store: Storage,
    object_store: ObjectStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    root = f"s3://demux/{tmp_path.name}/demo"
    words = ("demo", "--store", "s3", "--events", "60", "--games", "2", "--root", root)
    said = command(*words, "--set", f"store.endpoint={object_store.url}")
    assert (said.code, said.err) == (0, "")
    assert {"source", "registry", "bronze", "silver"} <= set(in_store.names(root))
    assert in_store.table(f"{root}/source").count() == 60
    assert "produce --versions 4 -c demux-data-store/demo.yml" in said.out
    settings = ("-c", "demux-data-store/demo.yml")
    assert ACCESS_KEY not in Path("demux-data-store/demo.yml").read_text("utf-8").split()
    assert command("produce", "--versions", "4", "--games", "2", "--events", "40", *settings).code == 0
    assert command("run", *settings).code == 0
    assert in_store.table(f"{root}/bronze").count() > 60
