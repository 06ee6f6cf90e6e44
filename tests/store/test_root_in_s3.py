"""A root in an S3 server: the same tables as on a disk, written by files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demux.storage.files import Storage
from tests.flow import process
from tests.flow.root import Root, Rows, lasting
from tools.servers.object_store import ACCESS_KEY, SECRET_KEY, ObjectStore

NAME = "games 100%+ü"


def run(root: str, local: Root, server: ObjectStore, logs: Path) -> process.Said:
    """How `demux run` ended, on a root in the store, with the source and the registry of a local one."""
    said = {
        "source.path": local.settings.source_path,
        "registry.path": local.settings.registry_path,
        "store.endpoint": server.url,
        "store.access_key": "secret:env/STORE_KEY",
        "store.secret_key": "secret:env/STORE_SECRET",
        "run.sink": "files",
        "spark.master": "local[2]",
    }
    words = [word for key, value in said.items() for word in ("--set", f"{key}={value}")]
    keys = {"STORE_KEY": ACCESS_KEY, "STORE_SECRET": SECRET_KEY}
    return process.run([process.DEMUX, "run", "--root", root, *words], environment=keys, folder=logs)


def everything(storage: Storage, root: str) -> Mapping[str, tuple[list[str], Rows]]:
    """All rows and columns of bronze, quarantine and silver, as `Root.everything` gives them."""
    found = {}
    for table in ("bronze", "quarantine", *(f"silver/{key}" for key in storage.names(f"{root}/silver"))):
        rows = storage.table(f"{root}/{table}").to_pyarrow_table()
        key = "_record_id" if "_record_id" in rows.column_names else "record_id"
        found[table] = (rows.column_names, [lasting(row) for row in rows.sort_by(key).to_pylist()])
    return found


@pytest.mark.slow
def test_a_round_by_files_gives_the_tables_of_a_local_root(
    spark: SparkSession, in_store: Storage, object_store: ObjectStore, tmp_path: Path
) -> None:
    local, root = Root.at(spark, tmp_path / "local"), f"s3://demux/{tmp_path.name}/{NAME}"
    for events in (200, 60):
        local.produce(events=events, games=3, versions=2, fault_rate=0.2)
        assert [end.error for end in local.run().ended if end.error] == []
        ended = run(root, local, object_store, tmp_path)
        assert ended.code == 0, ended.out + ended.err
        assert everything(in_store, root) == local.everything()
    commits = in_store.table(f"{root}/silver/{in_store.names(f'{root}/silver')[0]}").history()
    assert [commit.get("engineInfo") for commit in commits][:2] == ["protobuf-demux", "protobuf-demux"]
