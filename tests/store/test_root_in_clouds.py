"""What needs no connector of Spark's works on a root in Azure and in GCS as in a folder: the fleet, and repairs.

Azurite lacks the API of Data Lake Storage, which Spark's connector speaks, and Google's connector is not tried: bronze
is copied there.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demux.core.names import names_of
from demux.core.settings.settings import Settings
from demux.core.storage.files import Storage
from demux.pipeline.engines import decode_of
from install_workflow.planning.plan import Task
from tests.support.flow.fleet import FLEET
from tests.support.flow.process import Command
from tests.support.flow.root import Root
from tools.servers.stores.azure import ACCOUNT

GAMES = ("chess", "go")
# when rows were quarantined, and when a command began
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ][0-9:.]*")


@pytest.fixture
def local(spark: SparkSession, tmp_path: Path) -> Root:
    """A root in a folder that is taken in."""
    root = Root.at(spark, tmp_path / "local", run=FLEET)
    root.produce(events=80, games=2, versions=2, fault_rate=0.3)
    root.workplace().ingest()
    return root


@pytest.fixture(params=["azure", "gcs"])
def remote(request: pytest.FixtureRequest, local: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    """A copy of it in a store."""
    if request.param == "azure":
        url, key = f"abfss://demux@{ACCOUNT}.dfs.core.windows.net/{tmp_path.name}", "account_key"
    else:
        url, key = f"gs://demux/{tmp_path.name}", "service_account"
    storage: Storage = request.getfixturevalue(f"in_{request.param}")
    for table in ("bronze", "quarantine", "checkpoints"):
        for file in (path for path in (local.folder / table).rglob("*") if path.is_file()):
            storage.write(f"{url}/{file.relative_to(local.folder).as_posix()}", file.read_bytes())
    monkeypatch.setenv("STORE_SECRET", getattr(storage.access, key))
    said = {
        "root": url,
        "source": {"path": local.settings.source_path},
        "registry": {"path": local.settings.registry_path},
        "store": {"endpoint": storage.access.endpoint, key: "secret:env/STORE_SECRET"},
        "run": FLEET,
    }
    return Root(local.spark, Settings.model_validate(said))


def decode(root: Root) -> None:
    """Decode both games as a round of the fleet does."""
    place = root.workplace()
    tasks = tuple(Task(game, names_of(game).task_key, "here") for game in GAMES)
    assert [str(end.error) for end in decode_of(place, root.settings.round_engine)(tasks) if end.error] == []


def fetched(root: Root, folder: Path) -> Root:
    """Return the same root in a folder."""
    storage = root.layout.storage
    for file in storage.files(root.settings.root):
        path = folder / file.key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(storage.read(f"{root.settings.root}/{file.key}"))
    return Root.at(root.spark, folder)


def settings_of(root: Root, folder: Path) -> Path:
    """Return the file of a root's settings."""
    settings = folder / "demux.yml"
    settings.write_text(root.settings.model_dump_json(exclude_unset=True), encoding="utf-8")
    return settings


def test_the_fleet_makes_the_same_tables_and_what_reads_them_says_the_same(
    local: Root, remote: Root, tmp_path: Path, command: Command
) -> None:
    for root in (local, remote):
        decode(root)
        # a second time there is nothing to do
        decode(root)
    assert fetched(remote, tmp_path / "fetched").everything() == local.everything()
    assert len(local.quarantine()) > 1
    settings = settings_of(remote, tmp_path)
    for words in (("quarantine", "list", "--json"), ("reconcile", "--json")):
        here, there = command(*words, "--root", local.settings.root), command(*words, "-c", str(settings))
        assert (there.code, there.err) == (0, "")
        assert _TIME.sub("", there.out) == _TIME.sub("", here.out)
    page = command("status", "--html", str(tmp_path / "page.html"), "-c", str(settings))
    assert page.code == 0, page.err
    assert os.environ["STORE_SECRET"] not in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_repairs_go_by_files_and_make_the_same_tables(
    local: Root, remote: Root, tmp_path: Path, command: Command
) -> None:
    for root in (local, remote):
        decode(root)
    settings = settings_of(remote, tmp_path)
    person = local.silver("chess")[0]["user_name"]
    for words in (
        ("backfill", "--from", "2000-01-01", "--dry-run"),
        ("backfill", "--from", "2000-01-01"),
        ("rebuild", "--game", "chess"),
        ("quarantine", "replay"),
        ("backfill", "--rescued"),
        ("quarantine", "drop", "--older-than", "0s", "--cause", "MALFORMED_PAYLOAD", "--yes"),
        ("forget", "--where", f"user_name = '{person}'", "--unreadable-too", "--yes"),
    ):
        here, there = command(*words, "--root", local.settings.root), command(*words, "-c", str(settings))
        assert (there.code, here.code) == (0, 0), (words, there.err, here.err)
        found = fetched(remote, tmp_path / f"after {words[0]} {words[1]}").everything()
        assert found == local.everything(), words
