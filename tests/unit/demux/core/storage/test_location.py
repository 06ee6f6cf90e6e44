"""Where a path or a URI leads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.storage.files import Storage
from demux.core.storage.location import Location, Scheme, locate


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
    # as on a cluster of Databricks
    assert not Storage(plain=Scheme.OTHER).reaches("/Volumes/root")
