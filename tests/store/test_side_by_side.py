"""Files of a store are sent side by side: a store that answers late delays them once, not one after the other."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.parquet_writer import TableFile, TableWriter
from demux.core.errors import BronzeRewritten, StorageFailed
from demux.core.schemas.ref import SchemaRef
from demux.core.storage.access import StoreAccess
from demux.core.storage.files import Storage
from deserializer.decoders.arrow import INPUT
from deserializer.decoders.schema_decision import decide
from deserializer.fleet.worker import GameFiles, WrittenGame, write_games
from tests.support.data.chess import VERSION_1, compiled, payload
from tools.servers.stores.proxy import Fault, Request, StoreProxy
from tools.servers.stores.s3 import ACCESS_KEY, SECRET_KEY, ObjectStore

COLUMNS = Struct((Column("game_name", Primitive.STRING), Column("number", Primitive.BIGINT)))
V1 = compiled(VERSION_1, 11, 1)
DECISIONS = decide(Struct(()), {SchemaRef(11): V1})
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


def works(storage: Storage, root: str, count: int) -> list[GameFiles]:
    """Games with a file of bronze each, of a good row and a bad one."""
    found = []
    for number in range(count):
        path, sink = f"{root}/bronze/{number}.parquet", pa.BufferOutputStream()
        rows = [
            {"schema_id": 11, "payload": payload(V1, user_name=f"anna {number}"), "record_id": f"{number} good"},
            {"schema_id": 11, "payload": b"\xff", "record_id": f"{number} bad"},
        ]
        pq.write_table(pa.Table.from_pylist(rows, pa.schema(arrow_fields(INPUT))), sink)
        storage.write(path, sink.getvalue().to_pybytes())
        size = sink.getvalue().size
        found.append(GameFiles(storage, f"game {number}", (path,), (size,), f"{root}/silver/{number}", DECISIONS, 7))
    return found


def written(storage: Storage, todo: list[GameFiles], root: str) -> tuple[dict[str, WrittenGame], list[str]]:
    """What became of the games, and the ids of the records that are for quarantine."""
    ended = list(write_games(storage, todo, f"{root}/quarantine", "query", datetime.now(timezone.utc)))
    bad = [one for one in ended if isinstance(one, TableFile)]
    tables = [pq.read_table(storage.open(f"{root}/quarantine/{one.path}", one.bytes)) for one in bad]
    ids = sorted(each for table in tables for each in table.column("record_id").to_pylist())
    return {one.game: one for one in ended if isinstance(one, WrittenGame)}, ids


def test_files_of_games_are_read_and_sent_side_by_side(storage: Storage, proxy: StoreProxy, tmp_path: Path) -> None:
    root = f"s3://demux/{tmp_path.name}"
    todo = works(storage, root, 8)
    # nobody is answered before eight wait, first of the files of bronze and then of those of silver
    reads, sends = threading.Barrier(8), threading.Barrier(8)

    def wait(request: Request) -> None:
        match request.kind:
            case "GET" if "/bronze/" in request.path:
                reads.wait(30)
            case "PUT" if "/silver/" in request.path:
                sends.wait(30)

    proxy.decide = wait
    games, _ = written(storage, todo, root + "/x")
    proxy.decide = lambda _: None
    assert [(game, one.error, one.rows_in, one.rows_bad, len(one.silver)) for game, one in games.items()] == [
        (work.game, None, 2, 1, 1) for work in todo
    ]
    for work in todo:
        (file,) = games[work.game].silver
        table = pq.read_table(storage.open(f"{work.table}/{file.path}", file.bytes))
        assert table.column("user_name").to_pylist() == [f"anna {work.game.removeprefix('game ')}"]


def test_a_game_whose_file_is_refused_or_gone_fails_alone_and_leaves_no_row_in_quarantine(
    storage: Storage, proxy: StoreProxy, tmp_path: Path
) -> None:
    root = f"s3://demux/{tmp_path.name}"
    todo = works(storage, root, 40)
    proxy.decide = lambda request: Fault.DENIED if request.kind == "PUT" and "/silver/3/" in request.path else None
    storage.delete([f"{root}/bronze/5.parquet"])
    games, bad = written(storage, todo, root)
    proxy.decide = lambda _: None
    failed = {game: type(one.error) for game, one in games.items() if one.error is not None}
    assert failed == {"game 3": StorageFailed, "game 5": BronzeRewritten}
    assert list(games) == [work.game for work in todo]
    others = [number for number in range(40) if number not in (3, 5)]
    assert bad == sorted(f"{number} bad" for number in others)
    assert len({file.key for file in storage.files(f"{root}/silver")}) == len(others)
