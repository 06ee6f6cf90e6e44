"""A root in a store whose games have hostile names, and whose listings come in pages, is as one in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from demux.core.storage.files import Storage
from tests.support.flow.fleet import EVENT, FLEET, without_errors
from tests.support.flow.root import Root, wrapper
from tests.support.store.stored import access_at, bucket_in, spark_reaches, stored
from tools.servers.stores.s3 import ACCESS_KEY, SECRET_KEY, ObjectStore

BUCKET = "hostile"
GAMES = ["100% chess", "%41", "a b+c", "p%20q&r=s", "象棋 🎮 ü", "a/../b?#", "chess"]


@pytest.fixture
def pair(
    spark: SparkSession, object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Root, Root]]:
    """A root in a folder and one in the store, with one source."""
    bucket_in(object_store, BUCKET)
    monkeypatch.setenv("STORE_KEY", ACCESS_KEY)
    monkeypatch.setenv("STORE_SECRET", SECRET_KEY)
    local = Root.at(spark, tmp_path / "local", run=FLEET)
    shared: dict[str, Any] = {
        "source": {"path": local.settings.source_path},
        "registry": {"path": local.settings.registry_path},
    }
    with spark_reaches(spark, Storage(access_at(object_store.url)), BUCKET):
        yield local, stored(spark, object_store, f"{BUCKET}/{tmp_path.name} 100%+ü", **shared)


def run_both(pair: tuple[Root, Root]) -> None:
    """Run a round of each, and compare."""
    for root in pair:
        without_errors(root.run())
    assert pair[1].everything() == pair[0].everything()


def send(local: Root, first: int) -> None:
    """Send a good and a bad row of each game."""
    values = []
    for game in GAMES:
        schema_id = local.register(game, EVENT)
        payload = local.message(schema_id)(name=game).SerializeToString()
        values += [wrapper(game, schema_id, payload), wrapper(game, schema_id, b"\xff")]
    local.send(values, first_offset=first)


def test_games_with_hostile_names_have_their_rows_in_a_store_as_in_a_folder(pair: tuple[Root, Root]) -> None:
    local, there = pair
    for number in range(2):
        send(local, number * 2 * len(GAMES))
        run_both(pair)
    assert {game: [row["name"] for row in there.silver(game)] for game in GAMES} == {game: [game] * 2 for game in GAMES}
    assert sorted(row["game_name"] for row in there.quarantine()) == sorted(GAMES * 2)


def test_logs_whose_listing_has_several_pages_are_read_to_their_end(pair: tuple[Root, Root]) -> None:
    local, there = pair
    send(local, 0)
    run_both(pair)
    storage, layout = there.layout.storage, there.layout
    # names before those of the commits, as of writers that died
    logs = [f"{table}/_delta_log" for table in (layout.bronze, f"{layout.root}/silver/chess", layout.rounds)]
    names = [f"{log}/.{number:04}.tmp" for log in logs for number in range(1_005)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: storage.write(name, b""), names))
    send(local, 2 * len(GAMES))
    run_both(pair)
    assert len(there.silver("chess")) == 2
