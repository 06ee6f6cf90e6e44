"""Where a path or a URI leads."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.errors import StorageFailed
from demux.core.root.lock import is_elsewhere
from demux.core.storage.files import Storage
from demux.core.storage.location import WORKSPACE, Location, Scheme, has_scheme, locate


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/data/root", Location(Scheme.FILE, "", "/data/root")),
        ("data/./root//x/", Location(Scheme.FILE, "", "data/root/x")),
        ("file:/data/a%20b", Location(Scheme.FILE, "", "/data/a%20b")),
        ("file:///data/x", Location(Scheme.FILE, "", "/data/x")),
        ("s3://bucket", Location(Scheme.S3, "bucket", "")),
        ("s3a://bucket/a//b/../c/", Location(Scheme.S3, "bucket", "a/c")),
        ("S3://bucket/Übung +%41", Location(Scheme.S3, "bucket", "Übung +%41")),
        ("abfss://c@account.dfs.core.windows.net/a", Location(Scheme.AZURE, "c@account.dfs.core.windows.net", "a")),
        ("gs://bucket/a?b#c", Location(Scheme.GCS, "bucket", "a?b#c")),
        ("file://localhost/data", Location(Scheme.FILE, "", "/data")),
        ("file://host/share", Location(Scheme.OTHER, "host", "share")),
        ("dbfs:/mnt/root", Location(Scheme.OTHER, "", "mnt/root")),
        ("hdfs://host:9000/root", Location(Scheme.OTHER, "host:9000", "root")),
    ],
)
def test_a_path_and_a_uri_are_read_as_hadoop_reads_them(path: str, location: Location) -> None:
    assert locate(path) == location


def test_a_percent_sign_is_never_an_escape_and_the_url_escapes_it() -> None:
    assert locate("s3a://b/game_name=a%2Fb/ü +").url == "s3://b/game_name%3Da%252Fb/%C3%BC%20%2B"


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"), min_size=1))
def test_every_name_below_a_bucket_keeps_its_characters(name: str) -> None:
    if name not in {".", ".."}:
        assert locate(f"s3://bucket/root/{name}").key == f"root/{name}"


def test_a_root_is_reached_where_its_client_reads_its_name() -> None:
    storage = Storage()
    paths = [
        "root/a%41",
        "s3://b/a b+ü 100%",
        "abfss://c@host/x",
        "gs://b/x",
        "s3://b/a%41",
        "hdfs://host/x",
        "dbfs:/x",
    ]
    assert [storage.reaches(path) for path in paths] == [True, True, True, True, False, False, False]


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/Volumes/main/lake/root", Location(Scheme.MOUNT, "", "/Volumes/main/lake/root")),
        ("dbfs:/Volumes/main//lake/./root/", Location(Scheme.MOUNT, "", "/Volumes/main/lake/root")),
        ("dbfs:///mnt/root", Location(Scheme.MOUNT, "", "/dbfs/mnt/root")),
        # Spark's path of the same folder
        ("/mnt/root", Location(Scheme.MOUNT, "", "/dbfs/mnt/root")),
        ("/Volumesque/x", Location(Scheme.MOUNT, "", "/dbfs/Volumesque/x")),
        ("DBFS:/../x", Location(Scheme.MOUNT, "", "/dbfs/x")),
        ("/Workspace/x", Location(Scheme.MOUNT, "", "/Workspace/x")),
        ("file:/tmp/x", Location(Scheme.FILE, "", "/tmp/x")),
        ("s3://bucket/Volumes/x", Location(Scheme.S3, "bucket", "Volumes/x")),
        ("hdfs://host/x", Location(Scheme.OTHER, "host", "x")),
    ],
)
def test_a_cluster_of_databricks_has_the_file_systems_of_its_workspace(path: str, location: Location) -> None:
    assert locate(path, WORKSPACE) == location


def test_a_mount_is_found_by_its_longest_prefix_and_only_by_whole_names() -> None:
    mounts = {"hdfs://lake": "/mnt/lake", "hdfs://lake/a b": "/mnt/ab/", "viewfs://t/": "/x"}
    found = [
        locate(path, mounts)
        for path in ("hdfs://lake/a", "hdfs://lake/a b/c%20", "hdfs://lake", "hdfs://lakes/a", "viewfs://t/y")
    ]
    assert [one.key for one in found] == ["/mnt/lake/a", "/mnt/ab/c%20", "/mnt/lake", "a", "/x/y"]
    assert [one.scheme for one in found] == [Scheme.MOUNT, Scheme.MOUNT, Scheme.MOUNT, Scheme.OTHER, Scheme.MOUNT]


def test_files_of_a_mount_are_those_of_its_folder_and_its_tables_are_left_to_spark(tmp_path: Path) -> None:
    storage = Storage(mounts={"hdfs://lake": str(tmp_path)})
    storage.write_text("hdfs://lake/a/b.txt", "text")
    assert (tmp_path / "a" / "b.txt").read_text() == "text"
    assert (storage.read_text("hdfs://lake/a/b.txt"), storage.names("hdfs://lake/a")) == ("text", ["b.txt"])
    assert [storage.reaches("hdfs://lake/a"), storage.is_folder("hdfs://lake/a"), storage.is_store("hdfs://lake")] == [
        False,
        False,
        False,
    ]


@pytest.mark.parametrize("path", ["hdfs://host/x", "dbfs:/x", "file://host/share", "wasbs://c@a/x"])
def test_a_file_system_without_a_client_is_refused_with_what_to_do(path: str) -> None:
    with pytest.raises(StorageFailed, match="No client reaches") as refused:
        Storage().names(path)
    assert refused.value.remedy == (
        "Name a folder, s3://, abfss:// or gs://; or mount its file system on every machine, and set `store.mounts`."
    )


@pytest.mark.parametrize(
    ("path", "has"),
    [
        ("s3://b", True),
        ("dbfs:/x", True),
        ("file:/x", True),
        ("a:b", False),
        ("/a:/b", False),
        ("x/y", False),
        ("", False),
    ],
)
def test_a_path_with_a_scheme_is_none_of_this_machine(path: str, has: bool) -> None:
    assert (has_scheme(path), is_elsewhere(path)) == (has, has)
