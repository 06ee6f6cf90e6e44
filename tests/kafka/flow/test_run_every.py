"""`demux run --every` on a topic: bronze takes in the next batch while games are decoded, and nothing is lost by it."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from demux.core.reports import GameReport
from demux.core.root.lock import Access, hold_root
from demux.pipeline.bronze_stream import BronzeStream
from demux.pipeline.engines import decode_of
from demux.pipeline.round import run_round
from demux.pipeline.task_pool import TaskEnd
from deserializer.redecode.redecoder import Redecoder, rebuild
from install_workflow.planning.plan import Task
from tests.support.flow.fleet import without_errors
from tests.support.flow.process import DEMUX, running, wait_until
from tests.support.flow.root import wrapper
from tests.support.kafka.pipeline import deliver, kafka_root
from tools.servers.broker import Broker

GAMES = ("chess", "go")
PATIENCE_S = 120.0
EVENT = 'syntax = "proto3";\npackage every;\nmessage Event { int64 number = 1; }\n'
NO_WRAPPER = b"\xff"


class Topic:
    """A root and its topic; records are numbered as they are sent, each for another game, every tenth is bad."""

    def __init__(self, spark: SparkSession, broker: Broker, folder: Path, name: str) -> None:
        self.root = kafka_root(spark, folder / "root", broker.bootstrap, name)
        self.ids = {game: self.root.register(game, f"{EVENT}// {game}\n") for game in GAMES}
        self.sent = 0

    def send(self, count: int) -> None:
        deliver(self.root, [self._value(number) for number in range(self.sent, self.sent + count)])
        self.sent += count

    def _value(self, number: int) -> bytes:
        if number % 10 == 9:
            return NO_WRAPPER
        game = GAMES[number % len(GAMES)]
        # half a field: the payload is malformed
        payload = b"\x08" if number % 10 == 5 else self.root.message(self.ids[game])(number=number).SerializeToString()
        return wrapper(game, self.ids[game], payload)

    def in_silver(self) -> int:
        return sum(len(self.root.silver(game)) for game in GAMES)

    def expect_all_once(self) -> None:
        """Fail unless each record is in one place, once."""
        numbers = sorted(row["number"] for game in GAMES for row in self.root.silver(game))
        assert numbers == [number for number in range(self.sent) if number % 10 not in {5, 9}]
        bad = sorted(row["offset"] for row in self.root.quarantine())
        assert bad == [number for number in range(self.sent) if number % 10 in {5, 9}]


@pytest.fixture
def topic(spark: SparkSession, broker: Broker, tmp_path: Path) -> Topic:
    return Topic(spark, broker, tmp_path, f"every-{tmp_path.name}")


def test_bronze_takes_in_the_next_batch_while_games_are_decoded(topic: Topic) -> None:
    root = topic.root
    place = root.workplace()
    engine = decode_of(place, root.settings.round_engine)

    def decode(tasks: tuple[Task, ...]) -> Iterator[TaskEnd[GameReport]]:
        if tasks:
            before = DeltaTable(root.here.bronze).version()
            topic.send(20)
            # nothing but bronze's own query can do that now: the round is here
            wait_until(lambda: DeltaTable(root.here.bronze).version() > before)
        yield from engine(tasks)

    topic.send(20)
    bronze = BronzeStream(lambda trigger, on_batch: place.ingest(trigger, on_batch=on_batch), 0.1)
    with bronze.running():
        first = without_errors(run_round(place, decode, bronze.take))
        assert (first.ingested.rows_in, first.ended) == (0, ())
        assert bronze.wait(PATIENCE_S)
        second = without_errors(run_round(place, decode, bronze.take))
        assert second.ingested.rows_in == 20
        assert {end.task.game for end in second.ended} == set(GAMES)
        assert bronze.wait(PATIENCE_S)
        third = without_errors(run_round(place, engine, bronze.take))
        assert third.ingested.rows_in == 20
    without_errors(run_round(place, engine))
    topic.expect_all_once()


def test_another_command_has_the_root_in_between_and_a_stop_in_the_middle_loses_nothing(
    topic: Topic, tmp_path: Path
) -> None:
    root = topic.root
    settings = tmp_path / "demux.yml"
    settings.write_text(json.dumps(root.said()), encoding="utf-8")
    topic.send(40)
    with running([DEMUX, "run", "--every", "1s", "--settings", str(settings)]) as process:
        wait_until(lambda: topic.in_silver() == 32, process)
        with hold_root(str(root.folder), "rebuild", wait=True, access=Access.TURNS):
            before = DeltaTable(root.here.bronze).version()
            topic.send(20)
            place = root.workplace()
            for game in GAMES:
                rebuild(Redecoder(root.spark, root.layout, place.schemas), game)
            assert DeltaTable(root.here.bronze).version() == before
        wait_until(lambda: topic.in_silver() == 48, process)
        topic.send(200)
        wait_until(lambda: DeltaTable(root.here.bronze).version() > before + 1, process)
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, "Traceback" in printed) == (0, False)
    topic.send(20)
    without_errors(root.run())
    topic.expect_all_once()
