"""Each kind of request that fails once: what was asked is done once, and nobody notices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from demux.errors import Kind, TaskInterrupted
from demux.storage.access import StoreAccess
from demux.storage.files import Storage
from tools.servers.object_store import ACCESS_KEY, SECRET_KEY, ObjectStore
from tools.servers.store_proxy import Fault, StoreProxy


@pytest.fixture(scope="module")
def proxy(object_store: ObjectStore) -> Iterator[StoreProxy]:
    made = StoreProxy(object_store.url)
    yield made
    made.close()


@pytest.fixture
def storage(proxy: StoreProxy) -> Storage:
    return Storage(StoreAccess(proxy.url, access_key=ACCESS_KEY, secret_key=SECRET_KEY))


def _create(storage: Storage, root: str) -> object:
    return storage.create(f"{root}/new", b"mine"), storage.read(f"{root}/new")


def _replace(storage: Storage, root: str) -> object:
    tag = storage.replace(f"{root}/there", b"other", storage.read_tagged(f"{root}/there").tag)
    return tag == storage.read_tagged(f"{root}/there").tag, storage.read(f"{root}/there")


def _write(storage: Storage, root: str) -> object:
    storage.write(f"{root}/new", b"mine")
    return storage.read(f"{root}/new")


def _upload(storage: Storage, root: str) -> object:
    sink = storage.writer(f"{root}/new")
    sink.write(b"x" * 12_000_000)
    sink.close()
    return storage.size(f"{root}/new")


def _remove(storage: Storage, root: str) -> object:
    storage.delete([f"{root}/there"])
    return storage.exists(f"{root}/there")


OPERATIONS: list[tuple[str, Callable[[Storage, str], object], object]] = [
    ("GET", lambda storage, root: storage.read(f"{root}/there"), b"there"),
    ("ranged GET", lambda storage, root: storage.read_range(f"{root}/there", 1, 3), b"her"),
    ("HEAD", lambda storage, root: storage.size(f"{root}/there"), 5),
    ("LIST", lambda storage, root: storage.names(root), ["there"]),
    ("LIST", lambda storage, root: [file.key for file in storage.files(root)], ["there"]),
    ("PUT", _write, b"mine"),
    ("PUT", _upload, 12_000_000),
    ("conditional PUT", _create, (True, b"mine")),
    ("conditional PUT", _replace, (True, b"other")),
    ("POST", _remove, False),
]


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.value)
@pytest.mark.parametrize(("kind", "operation", "result"), OPERATIONS)
def test_a_request_that_fails_once_is_made_good(
    storage: Storage,
    proxy: StoreProxy,
    tmp_path: Path,
    kind: str,
    operation: Callable[[Storage, str], object],
    result: object,
    fault: Fault,
) -> None:
    root = f"s3://demux/{tmp_path.name}"
    storage.write(f"{root}/there", b"there")
    with proxy.failing(kind, fault) as hit:
        assert operation(storage, root) == result
    assert len(hit) == 1


def test_what_another_writer_has_created_is_not_taken_for_ours_after_a_lost_answer(
    storage: Storage, proxy: StoreProxy, tmp_path: Path
) -> None:
    path = f"s3://demux/{tmp_path.name}/1.json"
    assert storage.create(path, b"theirs")
    with proxy.failing("conditional PUT", Fault.LOST):
        assert not storage.create(path, b"mine")
    assert storage.read(path) == b"theirs"


def test_a_page_of_a_listing_that_fails_ends_no_listing_early(
    storage: Storage, proxy: StoreProxy, tmp_path: Path
) -> None:
    root, names = f"s3://demux/{tmp_path.name}", [f"{number:04}" for number in range(1_010)]
    for name in names:
        storage.write(f"{root}/{name}", b"")
    found = storage.files(root)
    first = [next(found).key for _ in range(5)]
    with proxy.failing("LIST", Fault.RESET, times=2):
        assert first + [file.key for file in found] == names


def test_a_store_that_goes_on_refusing_is_a_failure_that_may_pass(
    storage: Storage, proxy: StoreProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("demux.storage.bucket._PAUSES_S", ())
    proxy.decide = lambda request: Fault.RESET if request.kind == "conditional PUT" else None
    try:
        with pytest.raises(TaskInterrupted) as failed:
            storage.create(f"s3://demux/{tmp_path.name}/x", b"x")
    finally:
        proxy.decide = lambda _: None
    assert failed.value.kind is Kind.TRANSIENT
    assert f"write s3://demux/{tmp_path.name}/x" in failed.value.cause


def test_each_operation_asks_once(storage: Storage, proxy: StoreProxy, tmp_path: Path) -> None:
    root = f"s3://demux/{tmp_path.name}"
    proxy.counts.clear()
    storage.create(f"{root}/log", b"x")
    storage.read(f"{root}/log")
    storage.open(f"{root}/log", 1).read()
    storage.exists(f"{root}/log")
    storage.names(root)
    assert dict(proxy.counts) == {"conditional PUT": 1, "GET": 2, "HEAD": 1, "LIST": 1}
