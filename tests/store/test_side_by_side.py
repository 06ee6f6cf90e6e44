"""Files of a store are sent side by side: a store that answers late delays them once, not one after the other."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.parquet_writer import TableWriter
from demux.core.storage.access import StoreAccess
from demux.core.storage.files import Storage
from tools.servers.stores.proxy import Request, StoreProxy
from tools.servers.stores.s3 import ACCESS_KEY, SECRET_KEY, ObjectStore

COLUMNS = Struct((Column("game_name", Primitive.STRING), Column("number", Primitive.BIGINT)))
GAMES = [f"game {number}" for number in range(40)]


@pytest.fixture
def proxy(object_store: ObjectStore) -> Iterator[StoreProxy]:
    made = StoreProxy(object_store.url)
    yield made
    made.close()


@pytest.fixture
def storage(proxy: StoreProxy) -> Storage:
    return Storage(StoreAccess(proxy.url, access_key=ACCESS_KEY, secret_key=SECRET_KEY))


def rows() -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(GAMES), pa.array(range(40))], schema=pa.schema(arrow_fields(COLUMNS)))


def test_the_files_of_a_batch_are_sent_side_by_side(storage: Storage, proxy: StoreProxy, tmp_path: Path) -> None:
    table = f"s3://demux/{tmp_path.name}/bronze"
    # nobody is answered before eight wait
    together = threading.Barrier(8)

    def wait(_: Request) -> None:
        together.wait(30)

    proxy.decide = wait
    with TableWriter(storage, table, COLUMNS, "game_name") as writer:
        writer.add(rows())
        files = writer.close()
    proxy.decide = lambda _: None
    assert sorted(file.partition or "" for file in files) == sorted(GAMES)
    assert {file.key for file in storage.files(table)} == {file.path for file in files}


def test_a_request_that_asks_before_it_sends_is_answered_at_once(proxy: StoreProxy) -> None:
    # Spark's client waits three seconds for that answer
    host, port = proxy.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=2) as connection:
        connection.sendall(b"PUT /demux/x HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
