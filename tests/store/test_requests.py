"""What a round by the fleet, and the status, ask of a store: requests are money and latency."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.parquet_writer import TableWriter
from demux.core.names import names_of
from demux.core.reports import GameReport
from demux.core.root.layout import Layout
from demux.core.settings.settings import Engine, Settings
from demux.core.storage.access import StoreAccess
from demux.core.storage.files import Storage
from demux.core.tables import GAMES
from demux.operations.status.reader import StatusReader
from demux.pipeline.context import place_of
from demux.pipeline.engines import decode_of
from demux.pipeline.round import run_round
from demux.pipeline.task_pool import TaskEnd
from deserializer.silver.file_table import SilverTable
from install_workflow.planning.plan import Task
from tests.support.flow.fleet import without_errors
from tests.support.flow.root import Root
from tools.servers.stores.proxy import Request, StoreProxy
from tools.servers.stores.s3 import ACCESS_KEY, SECRET_KEY, ObjectStore

NAMES = ("chess", "go", "ludo")


@pytest.fixture
def proxy(object_store: ObjectStore) -> Iterator[StoreProxy]:
    made = StoreProxy(object_store.url)
    yield made
    made.close()


def test_an_active_game_costs_four_requests_for_its_table_and_an_idle_one_none(
    spark_in_store: SparkSession, proxy: StoreProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORE_KEY", ACCESS_KEY)
    monkeypatch.setenv("STORE_SECRET", SECRET_KEY)
    local = Root.at(spark_in_store, tmp_path / "local")
    keys = {"access_key": "secret:env/STORE_KEY", "secret_key": "secret:env/STORE_SECRET"}
    settings = Settings.model_validate(
        {
            "root": f"s3://demux/{tmp_path.name}/root",
            "source": {"path": local.settings.source_path},
            "registry": {"path": local.settings.registry_path},
            "store": {"endpoint": proxy.url, **keys},
        }
    )
    place = place_of(settings, spark_in_store, threading.Event())
    fleet, asked = decode_of(place, Engine.FLEET), list[Request]()

    def decode(tasks: tuple[Task, ...]) -> Iterator[TaskEnd[GameReport]]:
        asked.clear()
        proxy.decide = asked.append
        ended = list(fleet(tasks))
        proxy.decide = lambda _: None
        yield from ended

    def round_of(games: int) -> list[str]:
        local.produce(events=20 * games, games=games, versions=1, fault_rate=0.0)
        return [end.task.game for end in without_errors(run_round(place, decode)).ended]

    everybody = round_of(6)
    round_of(6)
    active = round_of(3)
    assert (len(everybody), len(active)) == (6, 3)

    def about(game: str) -> Counter[str]:
        return Counter(request.kind for request in asked if f"/silver/{names_of(game).key}/" in request.path)

    # whether its newest commit is still that one, the rows, and the commit
    assert {game: about(game) for game in active} == {
        game: Counter({"HEAD": 1, "PUT": 1, "conditional PUT": 1}) for game in active
    }
    assert {game: about(game) for game in set(everybody) - set(active)} == {
        game: Counter() for game in set(everybody) - set(active)
    }
    rest = Counter(request.kind for request in asked if "/silver/" not in request.path)
    # bronze's log: its new names and commits; a file of each active game; where quarantine is
    assert rest["GET"] + rest["ranged GET"] <= len(active) + 4
    assert rest["LIST"] <= 3
    assert set(rest) <= {"GET", "ranged GET", "LIST", "HEAD"}


def test_a_games_table_is_listed_once_and_only_its_new_commits_are_read(proxy: StoreProxy, tmp_path: Path) -> None:
    storage = Storage(StoreAccess(proxy.url, access_key=ACCESS_KEY, secret_key=SECRET_KEY))
    layout = Layout(f"s3://demux/{tmp_path.name}", storage)
    fields = arrow_fields(GAMES)
    known = [{field.name: name if field.name == "game_name" else None for field in fields} for name in NAMES]
    storage.write_table(layout.games, pa.Table.from_pylist(known, pa.schema(fields)), "append")
    for name in NAMES:
        for _ in range(3):
            storage.write_table(layout.silver(name), pa.table({"a": [1, 2]}), "append")
    reader, asked = StatusReader(layout), list[Request]()

    def look() -> Counter[str]:
        asked.clear()
        assert {game: one.files for game, one in reader.read().silver.items()} == dict.fromkeys(NAMES, 3)
        return Counter(request.kind for request in asked if "/silver/" in request.path)

    proxy.decide = asked.append
    assert look() == {"LIST": len(NAMES), "GET": 3 * len(NAMES)}
    assert look() == {"LIST": len(NAMES)}
    storage.table(layout.silver("go")).create_checkpoint()
    assert look() == {"LIST": len(NAMES), "GET": 1}


def test_sixteen_commits_with_upkeep_cost_a_game_four_requests_and_a_half_each(
    proxy: StoreProxy, tmp_path: Path
) -> None:
    storage = Storage(StoreAccess(proxy.url, access_key=ACCESS_KEY, secret_key=SECRET_KEY))
    path, columns = f"s3://demux/{tmp_path.name}/silver", Struct((Column("number", Primitive.BIGINT),))
    table = SilverTable.at(storage, path)
    table.create(columns, None, "")
    asked = list[Request]()

    def append(number: int) -> None:
        with TableWriter(storage, path, columns) as writer:
            writer.add(pa.record_batch({"number": pa.array([number], pa.int64())}))
            table.append(writer.close(), "app", number)

    for number in range(20):
        append(number)
    proxy.decide = asked.append
    for number in range(20, 36):
        append(number)
    proxy.decide = lambda _: None
    # each commit: its file, a look at the one before, itself; and once: 16 files or so are read and become one, in a
    # commit of its own; the log's end is found, and its checkpoint read and written
    assert Counter(request.kind for request in asked) == {
        "HEAD": 16,
        "PUT": 16 + 1 + 2,
        "conditional PUT": 16 + 1,
        "GET": 16 + 2,
        "LIST": 1,
    }
    assert sorted(pa.table(storage.table(path).to_pyarrow_table())["number"].to_pylist()) == list(range(36))
