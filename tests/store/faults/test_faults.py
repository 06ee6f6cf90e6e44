"""Each kind of request that fails: once, and what was asked is done once; for good, and a sentence says so."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from demux.core.columns.spark import spark_struct
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.app_transactions import Batch
from demux.core.delta.parquet_writer import TableWriter, commit_files
from demux.core.delta.record_table import RecordTable
from demux.core.delta.rewrite_rows import join
from demux.core.error_mapping import as_demux_error
from demux.core.errors import ErrorKind, ServiceUnavailable, StorageFailed
from demux.core.storage.files import Storage
from tests.support.store.stored import access_at
from tools.servers.stores.proxy import PASSING, Fault, Request, StoreProxy
from tools.servers.stores.s3 import ObjectStore

# a busy machine answers later than a second
TIMEOUT_S = 4.0
COLUMNS = Struct((Column("name", Primitive.STRING), Column("number", Primitive.BIGINT)))


@pytest.fixture(scope="module")
def proxy(object_store: ObjectStore) -> Iterator[StoreProxy]:
    made = StoreProxy(object_store.url)
    made.silence_s = TIMEOUT_S + 0.5
    yield made
    made.close()


@pytest.fixture
def storage(proxy: StoreProxy) -> Storage:
    return Storage(access_at(proxy.url, TIMEOUT_S))


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
    ("begin upload", _upload, 12_000_000),
    ("PUT part", _upload, 12_000_000),
    ("complete upload", _upload, 12_000_000),
    ("conditional PUT", _create, (True, b"mine")),
    ("conditional PUT", _replace, (True, b"other")),
    ("bulk DELETE", _remove, False),
]


@pytest.mark.parametrize("fault", PASSING, ids=lambda fault: fault.value)
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


def _numbers(table: RecordTable) -> list[tuple[str, int]]:
    return sorted((row["name"], row["number"]) for row in table.select("SELECT * FROM {records}"))


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.SILENT, Fault.CUT], ids=lambda fault: fault.value)
def test_records_whose_commit_is_answered_by_nobody_are_in_their_table_once(
    storage: Storage, proxy: StoreProxy, tmp_path: Path, fault: Fault
) -> None:
    table = RecordTable(None, storage, f"s3://demux/{tmp_path.name}/records", COLUMNS)
    table.append([("ann", 1)])
    with proxy.failing("conditional PUT", fault) as hit:
        table.append([("bob", 2)])
    assert len(hit) == 1
    assert _numbers(table) == [("ann", 1), ("bob", 2)]


def test_records_of_many_who_append_at_the_same_time_are_all_there(storage: Storage, tmp_path: Path) -> None:
    path = f"s3://demux/{tmp_path.name}/records"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: RecordTable(None, storage, path, COLUMNS).append([("x", number)]), range(24)))
    assert _numbers(RecordTable(None, storage, path, COLUMNS)) == [("x", number) for number in range(24)]


@pytest.mark.parametrize(
    ("operation", "after"),
    [
        (lambda storage, table: table.update({"name": "ann"}, {"number": 3}), [("ann", 3), ("bob", 2)]),
        (lambda storage, table: table.replace([("cid", 4)]), [("cid", 4)]),
        (
            lambda storage, table: storage.create_table(f"{table.path}-new", spark_struct(COLUMNS).jsonValue()),
            [("ann", 1), ("bob", 2)],
        ),
    ],
    ids=["update", "replace", "make a table"],
)
def test_what_changes_nothing_when_it_is_done_again_is_done_again(
    storage: Storage,
    proxy: StoreProxy,
    tmp_path: Path,
    operation: Callable[[Storage, RecordTable], object],
    after: list[tuple[str, int]],
) -> None:
    table = RecordTable(None, storage, f"s3://demux/{tmp_path.name}/records", COLUMNS)
    table.append([("ann", 1)])
    table.append([("bob", 2)])
    with proxy.failing("conditional PUT", Fault.LOST) as hit:
        operation(storage, table)
    assert len(hit) == 1
    assert _numbers(table) == after


def test_files_that_were_joined_without_an_answer_hold_each_row_once(
    storage: Storage, proxy: StoreProxy, tmp_path: Path
) -> None:
    table = RecordTable(None, storage, f"s3://demux/{tmp_path.name}/records", COLUMNS)
    for number in range(3):
        table.append([("x", number)])
    with proxy.failing("conditional PUT", Fault.LOST) as hit, pytest.raises(OSError, match="Generic S3") as failed:
        join(storage.table(table.path), 2**20)
    assert len(hit) == 1
    assert as_demux_error(failed.value).kind is ErrorKind.TRANSIENT
    join(storage.table(table.path), 2**20)
    assert _numbers(table) == [("x", 0), ("x", 1), ("x", 2)]


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.SILENT], ids=lambda fault: fault.value)
def test_a_batch_whose_commit_is_answered_by_nobody_is_in_its_table_once(
    storage: Storage, proxy: StoreProxy, tmp_path: Path, fault: Fault
) -> None:
    path = f"s3://demux/{tmp_path.name}/batches"
    table = storage.create_table(path, spark_struct(COLUMNS).jsonValue(), partition_by="name")
    rows = pa.RecordBatch.from_pydict({"name": ["ann", "bob"], "number": [1, 2]})
    for kind, batch in (("conditional PUT", 0), ("never", 0), ("never", 1)):
        with TableWriter(storage, path, COLUMNS, "name") as writer:
            writer.add(rows)
            files = writer.close()
        with proxy.failing(kind, fault):
            commit_files(storage, path, files, "name", Batch("query", batch, retried=False), table)
    assert sorted(storage.table(path).to_pyarrow_table()["number"].to_pylist()) == [1, 1, 2, 2]


def test_what_waits_for_a_store_lets_the_other_threads_run(storage: Storage, proxy: StoreProxy, tmp_path: Path) -> None:
    table = RecordTable(None, storage, f"s3://demux/{tmp_path.name}/records", COLUMNS)
    table.append([("ann", 1)])
    # the proxy's threads are this process's, as the one that renews a lease is
    assert _numbers(table) == [("ann", 1)]
    assert proxy.counts["GET"] + proxy.counts["ranged GET"] > 0


@pytest.mark.parametrize("kind", ["begin upload", "PUT part", "complete upload"])
def test_an_upload_that_is_cut_leaves_no_object_and_the_next_one_writes_it(
    storage: Storage, proxy: StoreProxy, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("demux.core.storage.bucket._PAUSES_S", ())
    root = f"s3://demux/{tmp_path.name}"
    with proxy.failing(kind, Fault.DENIED, times=1_000) as hit, pytest.raises(StorageFailed) as failed:
        _upload(storage, root)
    assert hit
    assert "`s3:PutObject`" in failed.value.remedy
    assert not storage.exists(f"{root}/new")
    assert _upload(storage, root) == 12_000_000
    assert storage.names(root) == ["new"]


PERMISSIONS: list[tuple[str, Callable[[Storage, str], object], str]] = [
    ("GET", lambda storage, root: storage.read(f"{root}/there"), "`s3:GetObject`"),
    ("LIST", lambda storage, root: storage.names(root), "`s3:ListBucket`"),
    ("LIST", lambda storage, root: list(storage.files(root)), "`s3:ListBucket`"),
    ("PUT", _write, "`s3:PutObject`"),
    ("conditional PUT", _create, "`s3:PutObject`"),
    ("conditional PUT", _replace, "`s3:PutObject`"),
    ("bulk DELETE", _remove, "`s3:DeleteObject`"),
    (
        "conditional PUT",
        lambda storage, root: storage.create_table(root, spark_struct(COLUMNS).jsonValue()),
        "`s3:PutO",
    ),
]


@pytest.mark.parametrize(("kind", "operation", "permission"), PERMISSIONS)
def test_a_request_that_is_denied_is_asked_once_and_names_its_permission(
    storage: Storage,
    proxy: StoreProxy,
    tmp_path: Path,
    kind: str,
    operation: Callable[[Storage, str], object],
    permission: str,
) -> None:
    root = f"s3://demux/{tmp_path.name}"
    storage.write(f"{root}/there", b"there")
    with proxy.failing(kind, Fault.DENIED, times=100) as hit, pytest.raises(StorageFailed) as failed:
        operation(storage, root)
    assert len(hit) == 1
    assert failed.value.message.startswith("The store refused to ")
    assert permission in failed.value.remedy


def test_expired_credentials_are_named_and_renewed_ones_go_on(
    storage: Storage, proxy: StoreProxy, tmp_path: Path
) -> None:
    table = RecordTable(None, storage, f"s3://demux/{tmp_path.name}/records", COLUMNS)
    table.append([("ann", 1)])
    proxy.decide = lambda _: Fault.EXPIRED
    try:
        for operation in (lambda: storage.read(table.path), lambda: table.append([("bob", 2)])):
            with pytest.raises(StorageFailed, match="the credentials have expired") as failed:
                operation()
            assert "Renew the credentials" in failed.value.remedy
    finally:
        proxy.decide = lambda _: None
    table.append([("cid", 3)])
    assert _numbers(table) == [("ann", 1), ("cid", 3)]


def test_a_prefix_that_is_throttled_for_some_time_delays_what_is_below_it_and_nothing_else(
    storage: Storage, proxy: StoreProxy, tmp_path: Path
) -> None:
    root, until = f"s3://demux/{tmp_path.name}", time.monotonic() + 1.5
    refused: list[Request] = []

    def decide(request: Request) -> Fault | None:
        if "/slow/" not in request.path or time.monotonic() > until:
            return None
        refused.append(request)
        return Fault.SLOW_DOWN

    proxy.decide = decide
    try:
        storage.write(f"{root}/quick/x", b"x")
        assert storage.create(f"{root}/slow/commit", b"mine")
        assert storage.read(f"{root}/slow/commit") == b"mine"
    finally:
        proxy.decide = lambda _: None
    assert len(refused) > 1


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
    monkeypatch.setattr("demux.core.storage.bucket._PAUSES_S", ())
    proxy.decide = lambda request: Fault.RESET if request.kind == "conditional PUT" else None
    try:
        with pytest.raises(ServiceUnavailable) as failed:
            storage.create(f"s3://demux/{tmp_path.name}/x", b"x")
    finally:
        proxy.decide = lambda _: None
    assert failed.value.kind is ErrorKind.TRANSIENT
    assert f"write s3://demux/{tmp_path.name}/x" in failed.value.message


def test_each_operation_asks_once(storage: Storage, proxy: StoreProxy, tmp_path: Path) -> None:
    root = f"s3://demux/{tmp_path.name}"
    proxy.counts.clear()
    storage.create(f"{root}/log", b"x")
    storage.read(f"{root}/log")
    storage.open(f"{root}/log", 1).read()
    storage.exists(f"{root}/log")
    storage.names(root)
    assert dict(proxy.counts) == {"conditional PUT": 1, "GET": 2, "HEAD": 1, "LIST": 1}
