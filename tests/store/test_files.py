"""A folder of this machine, a bucket, a container and a bucket of Google's do the same."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demux.core.errors import StorageFailed
from demux.core.storage.access import StoreAccess
from demux.core.storage.files import Storage
from tests.fakes.gcs_server import GcsServer, serving_gcs
from tools.servers.stores.azure import ACCOUNT
from tools.servers.stores.s3 import ACCESS_KEY, ObjectStore

NAMES = ["plain", "a b", "100%", "p%20q", "game_name=a%2Fb", "a+b=c&d", "ü漢字🎮", "[x]{y}~^`|", "#1?", 'q"\\w', "..x"]


@dataclass(frozen=True, slots=True)
class Place:
    storage: Storage
    root: str

    def __truediv__(self, path: str) -> str:
        return f"{self.root}/{path}"


@pytest.fixture(params=["folder", "bucket", "azure", "gcs"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty folder with a hostile name, here or in the store."""
    name = f"{tmp_path.name} %41+ü"
    if request.param == "folder":
        return Place(Storage(), str(tmp_path / name))
    if request.param == "azure":
        return Place(request.getfixturevalue("in_azure"), f"abfss://demux@{ACCOUNT}.dfs.core.windows.net/{name}")
    if request.param == "gcs":
        return Place(request.getfixturevalue("in_gcs"), f"gs://demux/{name}")
    return Place(request.getfixturevalue("in_store"), f"s3a://demux/{name}")


def test_what_is_written_is_read_and_found_whatever_its_name(place: Place) -> None:
    # Azure takes a backslash for a slash
    names = [name for name in NAMES if "\\" not in name or not place.root.startswith("abfss:")]
    for number, name in enumerate(names):
        place.storage.write(place / f"t/{name}/{name}", b"%d" % number)
    assert [place.storage.read(place / f"t/{name}/{name}") for name in names] == [
        b"%d" % number for number in range(len(names))
    ]
    assert place.storage.names(place / "t") == sorted(names)
    assert {file.key: file.bytes for file in place.storage.files(place / "t")} == {
        f"{name}/{name}": len(str(number)) for number, name in enumerate(names)
    }
    place.storage.delete([place / f"t/{names[0]}/{names[0]}", place / "t/never"])
    place.storage.delete_folder(place / f"t/{names[1]}")
    assert {file.key.partition("/")[0] for file in place.storage.files(place / "t")} == {*names[2:]}
    place.storage.delete_folder(place / "t")
    place.storage.delete_folder(place / "t")
    assert place.storage.names(place / "t") == []
    assert list(place.storage.files(place / "t")) == []


def test_a_folder_is_no_prefix_of_another_name(place: Place) -> None:
    for name in ("a/1", "ab/2", "a.b/3"):
        place.storage.write(place / name, b"")
    assert [file.key for file in place.storage.files(place / "a")] == ["1"]
    place.storage.delete_folder(place / "a")
    assert place.storage.names(place / "") == ["a.b", "ab"]


def test_a_missing_file_is_said_so_by_each_way_of_reading(place: Place) -> None:
    place.storage.write(place / "there", b"0123456789")
    assert place.storage.read_range(place / "there", 3, 4) == b"3456"
    assert place.storage.read_range(place / "there", 8, 100) == b"89"
    assert (place.storage.size(place / "there"), place.storage.size(place / "gone")) == (10, None)
    assert (place.storage.exists(place / "there"), place.storage.exists(place / "gone")) == (True, False)
    for read in (
        place.storage.read,
        place.storage.read_tagged,
        lambda path: place.storage.read_range(path, 0, 1),
        lambda path: place.storage.open(path, 5).read(),
        lambda path: place.storage.open(path).read(),
    ):
        with pytest.raises(FileNotFoundError):
            read(place / "gone")


def test_one_of_many_writers_creates_a_file_and_is_told_so_again(place: Place) -> None:
    writers, gate = [b"writer %d" % number for number in range(16)], threading.Barrier(16)

    def create(data: bytes) -> bool:
        gate.wait()
        return place.storage.create(place / "log/1.json", data)

    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(create, writers))
    (winner,) = (data for data, was_made in zip(writers, made, strict=True) if was_made)
    assert place.storage.read(place / "log/1.json") == winner
    # an answer that was lost: the same call again
    assert [place.storage.create(place / "log/1.json", data) for data in writers] == made
    assert place.storage.names(place / "log") == ["1.json"]


def test_a_version_is_replaced_once(place: Place) -> None:
    place.storage.write(place / "lease", b"free")
    tag = place.storage.read_tagged(place / "lease").tag
    writers = [b"owner %d" % number for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        tags = list(pool.map(lambda data: place.storage.replace(place / "lease", data, tag), writers))
    ((winner, new),) = ((data, found) for data, found in zip(writers, tags, strict=True) if found is not None)
    now = place.storage.read_tagged(place / "lease")
    assert (now.data, now.tag) == (winner, new)
    # an answer that was lost: the same call again
    assert place.storage.replace(place / "lease", winner, tag) == new


def test_a_file_of_any_size_is_written_and_read_in_parts(place: Place) -> None:
    rows = pa.table({"number": pa.array(range(5_000_000), pa.int64())})
    sink = place.storage.writer(place / "deep/er/rows.parquet")
    writer = pq.ParquetWriter(sink, rows.schema, compression="none", use_dictionary=False)
    writer.write_table(rows, row_group_size=500_000)
    writer.close()
    size = sink.tell()
    sink.close()
    assert place.storage.size(place / "deep/er/rows.parquet") == size > 32 * 2**20
    for known in (size, None):
        with place.storage.open(place / "deep/er/rows.parquet", known) as file:
            assert pq.ParquetFile(file).read_row_group(7).column(0)[0].as_py() == 3_500_000


def test_an_abandoned_file_is_not_there(place: Place) -> None:
    sink = place.storage.writer(place / "half")
    sink.write(b"half")
    sink.abandon()
    assert sink.closed
    assert place.storage.names(place / "") == []


def test_a_listing_goes_on_behind_a_name_and_over_pages(place: Place) -> None:
    names = [f"{number:020}.json" for number in range(1_100)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: place.storage.write(place / f"log/{name}", b""), names))
    assert (
        sorted(file.key for file in place.storage.files(place / "log")) == names == place.storage.names(place / "log")
    )
    assert sorted(file.key for file in place.storage.files(place / "log", after=names[1_090])) == names[1_091:]


def test_tasks_get_a_storage_that_works(place: Place) -> None:
    place.storage.write(place / "x", b"x")
    assert pickle.loads(pickle.dumps(place.storage)).read(place / "x") == b"x"


def test_a_bucket_that_is_not_there_and_a_wrong_key_are_refused_in_a_sentence(
    in_store: Storage, object_store: ObjectStore
) -> None:
    with pytest.raises(StorageFailed) as no_bucket:
        in_store.write("s3://nowhere/x", b"x")
    assert no_bucket.value.message == "The store did not write s3://nowhere/x: the bucket does not exist."
    stranger = Storage(StoreAccess(object_store.url, access_key=ACCESS_KEY, secret_key="wrong"))
    with pytest.raises(StorageFailed) as refused:
        stranger.write("s3://demux/x", b"x")
    assert refused.value.message.startswith("The store refused to write s3://demux/x: ")
    assert "Check the credentials" in refused.value.remedy
    with pytest.raises(StorageFailed, match="Check the credentials"):
        stranger.table("s3://demux/x")
    assert "wrong" not in str(refused.value)


def test_an_object_that_another_writer_has_replaced_by_the_same_bytes_is_another_version(
    in_gcs: Storage, gcs: GcsServer, tmp_path: Path
) -> None:
    path = f"gs://demux/{tmp_path.name}/lease"
    assert in_gcs.create(path, b"one")
    tag = in_gcs.read_tagged(path).tag
    in_gcs.write(path, b"one")
    refused = gcs.refused
    # an entity tag would be the same
    assert in_gcs.replace(path, b"two", tag) is None
    assert (gcs.refused, in_gcs.read(path)) == (refused + 1, b"one")
    assert in_gcs.replace(path, b"two", in_gcs.read_tagged(path).tag) == in_gcs.read_tagged(path).tag


def test_a_listing_comes_in_pages_and_begins_behind_a_name(in_gcs: Storage, gcs: GcsServer, tmp_path: Path) -> None:
    root, names = f"gs://demux/{tmp_path.name}", [f"{number:02}" for number in range(25)]
    for name in names:
        in_gcs.write(f"{root}/t/{name}", b"")
    before, gcs.page = gcs.pages, 10
    try:
        assert in_gcs.names(f"{root}/t") == names
        assert gcs.pages - before == 3
        assert [file.key for file in in_gcs.files(f"{root}/t", after="19")] == names[20:]
    finally:
        gcs.page = 1000


def test_a_token_of_another_service_account_is_refused_with_the_permission(gcs: GcsServer) -> None:
    with serving_gcs(GcsServer()) as other:
        storage = Storage(StoreAccess(gcs.url, service_account=other.service_account))
        with pytest.raises(StorageFailed, match=r"storage\.objects\.create"):
            storage.write("gs://demux/file", b"")
