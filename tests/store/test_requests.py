"""What a round by the fleet asks of a store: requests are money and latency."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demux.core.names import names_of
from demux.core.reports import GameReport
from demux.core.settings.settings import Engine, Settings
from demux.pipeline.context import place_of
from demux.pipeline.engines import decode_of
from demux.pipeline.round import run_round
from demux.pipeline.task_pool import TaskEnd
from install_workflow.planning.plan import Task
from tests.support.flow.fleet import without_errors
from tests.support.flow.root import Root
from tools.servers.stores.proxy import Request, StoreProxy
from tools.servers.stores.s3 import ACCESS_KEY, SECRET_KEY, ObjectStore


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
