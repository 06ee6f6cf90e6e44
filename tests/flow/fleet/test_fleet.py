"""The fleet engine on whole roots: the same tables as by a stream for each game, whatever happens in between."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.rdd import RDD

from bronze_ingest.rebuild import rebuild_bronze
from demux import api
from demux.core.causes import Cause
from demux.core.control.games_and_rounds import TaskOutcome
from demux.core.delta.commit import Replacement
from demux.core.errors import PositionLost, SchemaInvalid, ServiceUnavailable, TableUnsuited
from demux.core.settings.settings import Sink
from demux.core.storage.files import Storage
from demux.operations.quarantine.filter import QuarantineFilter
from deserializer.fleet.worker import GameFiles, WrittenGame, write_games
from deserializer.redecode.redecoder import Redecoder, rebuild
from deserializer.redecode.replay import replay
from deserializer.silver.file_quarantine import Quarantine
from deserializer.silver.file_table import SilverTable
from deserializer.silver.spark_quarantine import QuarantineBySpark
from deserializer.silver.spark_table import SilverBySpark
from tests.support.flow.fleet import EVENT, FLEET, STREAM, crash_after, without_errors
from tests.support.flow.root import Root, wrapper

Copy = Callable[..., Root]


@pytest.mark.slow
@pytest.mark.both_lanes
def test_a_round_with_new_games_new_versions_and_every_fault_gives_the_same_tables_whoever_writes_them(
    streamed: Root, copy: Copy, tmp_path: Path
) -> None:
    streams = copy(streamed, run=STREAM)
    fleets = [streamed.copied_to(tmp_path / sink, run={**FLEET, "sink": sink}) for sink in ("files", "spark")]
    for root in (streams, *fleets):
        root.produce(events=160, games=3, versions=3, fault_rate=0.3)
    by_stream = without_errors(streams.run())
    for fleet in fleets:
        assert [end.report for end in without_errors(fleet.run()).ended] == [end.report for end in by_stream.ended]
        assert fleet.everything() == streams.everything()


@pytest.mark.both_lanes
@pytest.mark.parametrize(
    ("owner", "method"),
    [(RDD, "collect"), (Quarantine, "append"), (SilverTable, "append")],
    ids=["files are written", "quarantine is committed", "a game is committed"],
)
def test_a_round_that_died_is_finished_by_the_next_one(
    taken_in: Root, done: Root, copy: Copy, owner: type, method: str
) -> None:
    root = copy(taken_in, run=FLEET)
    with crash_after(owner, method), pytest.raises(KeyboardInterrupt):
        root.run()
    without_errors(root.run())
    assert root.everything() == done.everything()


def test_a_game_that_cannot_be_written_holds_up_no_other_and_catches_up_by_itself(
    taken_in: Root, done: Root, copy: Copy
) -> None:
    root = copy(taken_in, run=FLEET)
    silver = root.folder / "silver"
    silver.mkdir()
    # not even root can make a folder where a file is
    (silver / "chess").write_text("in the way")
    ended = {end.task.game: end.error for end in root.run().ended}
    assert ended.pop("chess") is not None
    assert list(ended.values()) == [None]
    (silver / "chess").unlink()
    assert [end.task.game for end in without_errors(root.run()).ended] == ["chess"]
    assert root.everything() == done.everything()


def test_a_game_that_kills_its_worker_fails_alone(taken_in: Root, copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    root = copy(taken_in, run={**FLEET, "retries": 0})

    def deadly(storage: Storage, works: Sequence[GameFiles], *args: Any) -> Iterator[object]:
        if any(work.game == "chess" for work in works):
            os._exit(7)
        yield from write_games(storage, works, *args)

    monkeypatch.setattr("deserializer.fleet.spark_job.write_games", deadly)
    ended = {end.task.game: end.error for end in root.run().ended}
    assert ended.pop("chess") is not None
    assert list(ended.values()) == [None]


def test_a_game_with_many_rows_takes_its_share_of_a_round_and_the_rest_waits(root: Root) -> None:
    root = Root.at(root.spark, root.folder, run={**FLEET, "rows_per_game": 10})
    schema_id = root.register("chess", 'syntax = "proto3"; message Event { string name = 1; }')
    root.register("go", 'syntax = "proto3"; message Event { string name = 1; }')
    payload = root.message(schema_id)(name="ann").SerializeToString()
    place = root.workplace()
    for batch in range(3):
        root.send([wrapper("chess", schema_id, payload)] * 8, first_offset=8 * batch)
        place.ingest()
    reports = []
    outcomes = []
    for _ in range(4):
        ended = without_errors(root.run(place)).ended
        reports += [(end.report.rows_in, end.report.rows_waiting) for end in ended if end.report is not None]
        outcomes.append(place.control.history().last["chess"].outcome)
    assert reports == [(8, 16), (8, 8), (8, 0)]
    assert outcomes == [TaskOutcome.BEHIND, TaskOutcome.BEHIND, TaskOutcome.DONE, TaskOutcome.DONE]
    assert [row["_offset"] for row in root.silver("chess")] == sorted(range(24), key=lambda offset: f"t/0/{offset}")


def test_a_rebuild_of_a_fleets_game_makes_the_same_table(taken_in: Root, done: Root, copy: Copy) -> None:
    root = copy(taken_in, run=FLEET)
    without_errors(root.run())
    rebuild(Redecoder(root.spark, root.layout, root.workplace().schemas), "chess")
    assert root.everything() == done.everything()
    root.produce(events=60, games=2, versions=2, fault_rate=0.3)
    without_errors(root.run())
    assert len(root.silver("chess")) > len(done.silver("chess"))


def test_a_table_with_rows_and_no_position_is_refused(streamed: Root, copy: Copy) -> None:
    root = copy(streamed, run={**FLEET, "retries": 0})
    rows = DeltaTable(root.silver_path("chess")).to_pyarrow_table()
    shutil.rmtree(root.silver_path("chess"))
    write_deltalake(root.silver_path("chess"), rows)
    root.produce(events=60, games=2, versions=2, fault_rate=0.3)
    for engine in (FLEET, STREAM):
        each = Root.at(root.spark, root.folder, run={**engine, "retries": 0})
        errors = {end.task.game: end.error for end in each.run().ended}
        assert isinstance(errors["chess"], PositionLost)
        assert "demux rebuild --game chess" in errors["chess"].remedy
    assert len(root.silver("chess")) == len(streamed.silver("chess"))
    rebuild(Redecoder(root.spark, root.layout, root.workplace().schemas), "chess")
    without_errors(root.run())
    assert api.Root(root.settings).reconcile().balances


def test_a_game_that_was_left_out_for_some_rounds_loses_no_row(root: Root) -> None:
    with_chess = {"policy": "allow-list", "allow": ["chess", "go"]}
    without = {"policy": "allow-list", "allow": ["go"]}
    ids = {game: root.register(game, EVENT) for game in ("chess", "go")}
    payload = root.message(ids["go"])(name="ann").SerializeToString()
    for number, games in enumerate((with_chess, without, with_chess)):
        root.send([wrapper(game, ids[game], payload) for game in ids], first_offset=2 * number)
        without_errors(Root.at(root.spark, root.folder, run=FLEET, games=games).run())
    assert [row["_offset"] for row in root.silver("chess")] == [0, 2, 4]


def test_a_rebuild_of_bronze_after_a_crash_brings_every_row_back(taken_in: Root, done: Root, copy: Copy) -> None:
    root = copy(taken_in, run=FLEET)
    with crash_after(Quarantine, "append"), pytest.raises(KeyboardInterrupt):
        root.run()
    rebuild_bronze(root.spark, root.settings)
    without_errors(root.run())
    assert {game: len(root.silver(game)) for game in ("chess", "go")} == {
        game: len(done.silver(game)) for game in ("chess", "go")
    }
    assert len(root.quarantine()) == len(done.quarantine())


def test_a_fleet_goes_on_where_rebuilds_died_and_the_same_rebuild_again_ends_them(
    taken_in: Root, done: Root, copy: Copy
) -> None:
    root = copy(taken_in, run={**FLEET, "retries": 0})
    without_errors(root.run())
    steps: tuple[tuple[Sink, type, str], ...] = (
        (Sink.SPARK, QuarantineBySpark, "append"),
        (Sink.SPARK, SilverBySpark, "replace"),
        (Sink.AUTO, Quarantine, "append"),
        (Sink.AUTO, Replacement, "commit"),
    )
    for sink, owner, method in steps:
        with crash_after(owner, method), pytest.raises(KeyboardInterrupt):
            rebuild(Redecoder(root.spark, root.layout, root.workplace().schemas, sink), "chess")
    undisturbed = done.copied_to(root.folder.parent / "undisturbed")
    for each in (root, undisturbed):
        each.produce(events=40, games=2, versions=2, fault_rate=0.3)
        without_errors(each.run())
    assert root.everything()["silver/chess"] == undisturbed.everything()["silver/chess"]
    assert {row["record_id"] for row in root.quarantine()} == {row["record_id"] for row in undisturbed.quarantine()}
    rebuild(Redecoder(root.spark, root.layout, root.workplace().schemas), "chess")
    assert root.everything() == undisturbed.everything()


def test_a_worker_that_raises_says_so_and_a_passing_failure_is_tried_again(
    taken_in: Root, done: Root, copy: Copy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = copy(taken_in, run=FLEET)
    tried = tmp_path / "tried"

    def failing(storage: Storage, works: Sequence[GameFiles], *args: Any) -> Iterator[object]:
        if any(work.game == "chess" for work in works) and not tried.exists():
            tried.touch()
            yield from (
                WrittenGame(work.game, work.paths, error=ServiceUnavailable("The disk was busy.", "Again."))
                for work in works
            )
        else:
            yield from write_games(storage, works, *args)

    monkeypatch.setattr("deserializer.fleet.spark_job.write_games", failing)
    without_errors(root.run())
    assert root.everything() == done.everything()

    def refusing(storage: Storage, works: Sequence[GameFiles], *args: Any) -> Iterator[object]:
        yield from (WrittenGame(w.game, w.paths, error=SchemaInvalid("It is wrong.", "Correct it.")) for w in works)

    monkeypatch.setattr("deserializer.fleet.spark_job.write_games", refusing)
    root.produce(events=40, games=2, versions=2, fault_rate=0.0)
    assert {end.error.message for end in root.run().ended if end.error} == {"It is wrong."}


def test_a_replay_between_the_fleet_and_a_stream_is_no_lost_checkpoint(taken_in: Root, copy: Copy) -> None:
    root = copy(taken_in, run=FLEET)
    without_errors(root.run())
    streams = Root.at(root.spark, root.folder, run=STREAM)
    place = streams.workplace()
    for game in ("chess", "go"):
        place.deserialize(game)
        replay(root.spark, root.layout, place.schemas, game, QuarantineFilter(causes=(Cause.MALFORMED_PAYLOAD,)))
    streams.produce(events=60, games=2, versions=2, fault_rate=0.3)
    before = len(root.silver("chess"))
    without_errors(streams.run())
    assert len(root.silver("chess")) > before


def test_a_table_that_asks_more_of_its_writers_is_refused_where_files_are_wished(done: Root, copy: Copy) -> None:
    root = copy(done, run={**FLEET, "sink": "files", "retries": 0})
    table = root.silver_path("chess")
    root.spark.sql(f"ALTER TABLE delta.`{table}` ADD CONSTRAINT whole CHECK (_offset >= 0)")
    root.produce(events=60, games=2, versions=2, fault_rate=0.3)
    errors = {end.task.game: end.error for end in root.run().ended}
    assert isinstance(errors["chess"], TableUnsuited)
    assert errors["go"] is None
    without_errors(Root.at(root.spark, root.folder).run())
    assert len(root.silver("chess")) > len(done.silver("chess"))


def test_a_new_game_begins_where_bronzes_log_begins_later(root: Root) -> None:
    root = Root.at(root.spark, root.folder, run=FLEET)
    names = ["chess", "a b%20c#d?", "将棋"]
    ids = {game: root.register(game, EVENT) for game in names}
    payload = root.message(ids["chess"])(name="ann").SerializeToString()
    for number in range(3):
        root.send([wrapper(game, ids[game], payload) for game in names], first_offset=3 * number)
        root.workplace().ingest()
    log = root.folder / "bronze" / "_delta_log"
    DeltaTable(root.layout.bronze).create_checkpoint()
    for old in sorted(log.glob("*.json"))[:3]:
        old.unlink()
    without_errors(root.run())
    assert [len(root.silver(game)) for game in names] == [3, 3, 3]
    root.send([wrapper(game, ids[game], payload) for game in names], first_offset=9)
    without_errors(root.run())
    assert [len(root.silver(game)) for game in names] == [4, 4, 4]
